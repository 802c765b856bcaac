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
)

// newJobClient starts an emulator for the test, and returns a client of it.
func newJobClient(t *testing.T) *aiplatform.JobClient {
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
	client, err := aiplatform.NewJobClient(ctx,
		option.WithEndpoint(address),
		option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		option.WithGRPCDialOption(grpc.WithPerRPCCredentials(bearer(strings.TrimSpace(string(token))))),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// bearer is the emulator's token, which does not leave this machine.
type bearer string

func (token bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(token)}, nil
}

func (bearer) RequireTransportSecurity() bool { return false }

// train runs a job of one replica to its end.
func train(ctx context.Context, client *aiplatform.JobClient, program string) (*aiplatformpb.CustomJob, error) {
	job, err := client.CreateCustomJob(ctx, &aiplatformpb.CreateCustomJobRequest{
		Parent: "projects/local/locations/us-central1",
		CustomJob: &aiplatformpb.CustomJob{
			DisplayName: "train",
			JobSpec: &aiplatformpb.CustomJobSpec{WorkerPoolSpecs: []*aiplatformpb.WorkerPoolSpec{{
				MachineSpec:  &aiplatformpb.MachineSpec{MachineType: "n1-standard-4"},
				ReplicaCount: 1,
				Task: &aiplatformpb.WorkerPoolSpec_ContainerSpec{ContainerSpec: &aiplatformpb.ContainerSpec{
					ImageUri: "python:3.11-slim-bookworm",
					Command:  []string{"python3", "-c", program},
				}},
			}}},
		},
	})
	for err == nil && job.GetEndTime() == nil {
		time.Sleep(100 * time.Millisecond)
		job, err = client.GetCustomJob(ctx, &aiplatformpb.GetCustomJobRequest{Name: job.GetName()})
	}
	return job, err
}

func TestTraining(t *testing.T) {
	client := newJobClient(t)

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
	t.Run("is refused", func(t *testing.T) {
		_, err := client.GetCustomJob(t.Context(), &aiplatformpb.GetCustomJobRequest{
			Name: "projects/local/locations/us-central1/customJobs/1",
		})
		if status.Code(err) != codes.NotFound {
			t.Error(err)
		}
	})
}
