package training

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	aiplatform "cloud.google.com/go/aiplatform/apiv1"
	"cloud.google.com/go/aiplatform/apiv1/aiplatformpb"
	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const parent = "projects/local/locations/us-central1"

// startEmulator starts an emulator for the test, and returns what leads clients to it.
func startEmulator(t *testing.T) []option.ClientOption {
	t.Helper()
	ctx := t.Context()
	emulator, err := testcontainers.Run(ctx, "vertex-emulator",
		testcontainers.WithExposedPorts("8600/tcp"),
		testcontainers.WithHostConfigModifier(func(host *container.HostConfig) {
			host.Binds = []string{"/var/run/docker.sock:/var/run/docker.sock"}
			host.AutoRemove = true // its end is that of its jobs
		}),
		testcontainers.WithWaitStrategy(wait.ForHTTP("/healthz").WithStatusCodeMatcher(func(status int) bool {
			return status == http.StatusUnauthorized // it answers, and wants the token
		})),
	)
	testcontainers.CleanupContainer(t, emulator)
	if err != nil {
		t.Fatal(err)
	}
	address, err := emulator.PortEndpoint(ctx, "8600/tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	file, err := emulator.CopyFileFromContainer(ctx, "/data/token")
	if err != nil {
		t.Fatal(err)
	}
	token, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return []option.ClientOption{
		option.WithEndpoint(address),
		option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		option.WithGRPCDialOption(grpc.WithPerRPCCredentials(bearer(strings.TrimSpace(string(token))))),
	}
}

// bearer is the emulator's token, which does not leave this machine.
type bearer string

func (token bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(token)}, nil
}

func (bearer) RequireTransportSecurity() bool { return false }

// jobSpec is that of one replica, which runs a program in Python.
func jobSpec(program string) *aiplatformpb.CustomJobSpec {
	return &aiplatformpb.CustomJobSpec{WorkerPoolSpecs: []*aiplatformpb.WorkerPoolSpec{{
		MachineSpec:  &aiplatformpb.MachineSpec{MachineType: "n1-standard-4"},
		ReplicaCount: 1,
		Task: &aiplatformpb.WorkerPoolSpec_ContainerSpec{ContainerSpec: &aiplatformpb.ContainerSpec{
			ImageUri: "python:3.11-slim-bookworm",
			Command:  []string{"python3", "-c", program},
		}},
	}}}
}

// ended gets a job or a pipeline until it has ended.
func ended[Job interface {
	GetName() string
	GetEndTime() *timestamppb.Timestamp
}](job Job, err error, get func(name string) (Job, error)) (Job, error) {
	for err == nil && job.GetEndTime() == nil {
		time.Sleep(100 * time.Millisecond)
		job, err = get(job.GetName())
	}
	return job, err
}

// train runs a job to its end.
func train(ctx context.Context, client *aiplatform.JobClient, program string) (*aiplatformpb.CustomJob, error) {
	job, err := client.CreateCustomJob(ctx, &aiplatformpb.CreateCustomJobRequest{
		Parent:    parent,
		CustomJob: &aiplatformpb.CustomJob{DisplayName: "train", JobSpec: jobSpec(program)},
	})
	return ended(job, err, func(name string) (*aiplatformpb.CustomJob, error) {
		return client.GetCustomJob(ctx, &aiplatformpb.GetCustomJobRequest{Name: name})
	})
}

// search runs two trials with different rates, to the end.
func search(ctx context.Context, client *aiplatform.JobClient, program string) (*aiplatformpb.HyperparameterTuningJob, error) {
	study := &aiplatformpb.StudySpec{
		Metrics: []*aiplatformpb.StudySpec_MetricSpec{{
			MetricId: "accuracy",
			Goal:     aiplatformpb.StudySpec_MetricSpec_MAXIMIZE,
		}},
		Parameters: []*aiplatformpb.StudySpec_ParameterSpec{{
			ParameterId: "rate",
			ParameterValueSpec: &aiplatformpb.StudySpec_ParameterSpec_DoubleValueSpec_{
				DoubleValueSpec: &aiplatformpb.StudySpec_ParameterSpec_DoubleValueSpec{MinValue: 0.1, MaxValue: 1},
			},
		}},
	}
	job, err := client.CreateHyperparameterTuningJob(ctx, &aiplatformpb.CreateHyperparameterTuningJobRequest{
		Parent: parent,
		HyperparameterTuningJob: &aiplatformpb.HyperparameterTuningJob{
			DisplayName:        "search",
			StudySpec:          study,
			MaxTrialCount:      2,
			ParallelTrialCount: 1,
			TrialJobSpec:       jobSpec(program),
		},
	})
	return ended(job, err, func(name string) (*aiplatformpb.HyperparameterTuningJob, error) {
		return client.GetHyperparameterTuningJob(ctx, &aiplatformpb.GetHyperparameterTuningJobRequest{Name: name})
	})
}

// runPipeline runs a pipeline of a custom job to its end.
func runPipeline(ctx context.Context, client *aiplatform.PipelineClient, program string) (*aiplatformpb.TrainingPipeline, error) {
	text, err := protojson.Marshal(jobSpec(program))
	if err != nil {
		return nil, err
	}
	inputs := &structpb.Value{}
	if err := protojson.Unmarshal(text, inputs); err != nil {
		return nil, err
	}
	pipeline, err := client.CreateTrainingPipeline(ctx, &aiplatformpb.CreateTrainingPipelineRequest{
		Parent: parent,
		TrainingPipeline: &aiplatformpb.TrainingPipeline{
			DisplayName:            "pipeline",
			TrainingTaskDefinition: "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml",
			TrainingTaskInputs:     inputs,
		},
	})
	return ended(pipeline, err, func(name string) (*aiplatformpb.TrainingPipeline, error) {
		return client.GetTrainingPipeline(ctx, &aiplatformpb.GetTrainingPipelineRequest{Name: name})
	})
}

func TestTraining(t *testing.T) {
	options := startEmulator(t)
	client, err := aiplatform.NewJobClient(t.Context(), options...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	pipelines, err := aiplatform.NewPipelineClient(t.Context(), options...)
	if err != nil {
		t.Fatal(err)
	}
	defer pipelines.Close()

	t.Run("succeeds", func(t *testing.T) {
		job, err := train(t.Context(), client, "print('trained')")
		if err != nil || job.GetState() != aiplatformpb.JobState_JOB_STATE_SUCCEEDED {
			t.Errorf("%v, %v", job, err)
		}
	})
	t.Run("fails", func(t *testing.T) {
		job, err := train(t.Context(), client, "raise SystemExit(3)")
		if err != nil || job.GetState() != aiplatformpb.JobState_JOB_STATE_FAILED {
			t.Errorf("%v, %v", job, err)
		}
		if reason := job.GetError().GetMessage(); !strings.Contains(reason, "non-zero status of 3") {
			t.Error(reason)
		}
	})
	t.Run("searches", func(t *testing.T) {
		job, err := search(t.Context(), client, `
import json, sys
rate = sys.argv[1].removeprefix("--rate=")
with open("/tmp/hypertune/output.metrics", "w") as file:
    json.dump({"timestamp": 1, "global_step": "1", "accuracy": rate}, file)
`)
		if err != nil || len(job.GetTrials()) != 2 {
			t.Fatalf("%v, %v", job, err)
		}
		for _, trial := range job.GetTrials() {
			rate := trial.GetParameters()[0].GetValue().GetNumberValue()
			if accuracy := trial.GetFinalMeasurement().GetMetrics()[0].GetValue(); accuracy != rate {
				t.Error(trial)
			}
		}
	})
	t.Run("is a pipeline", func(t *testing.T) {
		pipeline, err := runPipeline(t.Context(), pipelines, "print('trained')")
		if err != nil || pipeline.GetState() != aiplatformpb.PipelineState_PIPELINE_STATE_SUCCEEDED {
			t.Errorf("%v, %v", pipeline, err)
		}
	})
	t.Run("is refused", func(t *testing.T) {
		_, err := client.GetCustomJob(t.Context(), &aiplatformpb.GetCustomJobRequest{
			Name: parent + "/customJobs/1",
		})
		if status.Code(err) != codes.NotFound {
			t.Error(err)
		}
	})
}
