import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.github.dockerjava.api.model.Bind;
import com.google.api.gax.core.NoCredentialsProvider;
import com.google.api.gax.rpc.FixedHeaderProvider;
import com.google.api.gax.rpc.HeaderProvider;
import com.google.api.gax.rpc.NotFoundException;
import com.google.api.gax.rpc.TransportChannelProvider;
import com.google.cloud.aiplatform.v1.ContainerSpec;
import com.google.cloud.aiplatform.v1.CustomJob;
import com.google.cloud.aiplatform.v1.CustomJobSpec;
import com.google.cloud.aiplatform.v1.HyperparameterTuningJob;
import com.google.cloud.aiplatform.v1.JobServiceClient;
import com.google.cloud.aiplatform.v1.JobServiceSettings;
import com.google.cloud.aiplatform.v1.JobState;
import com.google.cloud.aiplatform.v1.MachineSpec;
import com.google.cloud.aiplatform.v1.PipelineServiceClient;
import com.google.cloud.aiplatform.v1.PipelineServiceSettings;
import com.google.cloud.aiplatform.v1.PipelineState;
import com.google.cloud.aiplatform.v1.StudySpec;
import com.google.cloud.aiplatform.v1.TrainingPipeline;
import com.google.cloud.aiplatform.v1.Trial;
import com.google.cloud.aiplatform.v1.WorkerPoolSpec;
import com.google.protobuf.Value;
import com.google.protobuf.util.JsonFormat;
import io.grpc.ManagedChannelBuilder;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.junit.jupiter.Container;
import org.testcontainers.junit.jupiter.Testcontainers;

@Testcontainers
class TrainingTest {
  private static final String PARENT = "projects/local/locations/us-central1";

  @Container
  private static final GenericContainer<?> emulator =
      new GenericContainer<>("vertex-emulator")
          .withExposedPorts(8600)
          .withCreateContainerCmdModifier(
              command ->
                  command
                      .getHostConfig()
                      .withBinds(Bind.parse("/var/run/docker.sock:/var/run/docker.sock"))
                      .withAutoRemove(true))
          .waitingFor(Wait.forHttp("/healthz").forStatusCode(401)); // it answers, and wants the token

  private static JobServiceClient jobs;
  private static PipelineServiceClient pipelines;

  @BeforeAll
  static void connect() throws Exception {
    String address = emulator.getHost() + ":" + emulator.getMappedPort(8600);
    String token = emulator.execInContainer("cat", "/data/token").getStdout().strip();
    HeaderProvider authorization = FixedHeaderProvider.create("authorization", "Bearer " + token);
    TransportChannelProvider channels =
        JobServiceSettings.defaultGrpcTransportProviderBuilder()
            .setEndpoint(address)
            .setChannelConfigurator(ManagedChannelBuilder::usePlaintext)
            .build();
    jobs =
        JobServiceClient.create(
            JobServiceSettings.newBuilder()
                .setCredentialsProvider(NoCredentialsProvider.create())
                .setHeaderProvider(authorization)
                .setTransportChannelProvider(channels)
                .build());
    pipelines =
        PipelineServiceClient.create(
            PipelineServiceSettings.newBuilder()
                .setCredentialsProvider(NoCredentialsProvider.create())
                .setHeaderProvider(authorization)
                .setTransportChannelProvider(channels)
                .build());
  }

  /** Stops it, with the containers of its jobs: Testcontainers would kill it. */
  @AfterAll
  static void stop() {
    jobs.close();
    pipelines.close();
    emulator.getDockerClient().stopContainerCmd(emulator.getContainerId()).exec();
  }

  @Test
  void aTrainingSucceeds() throws Exception {
    assertEquals(JobState.JOB_STATE_SUCCEEDED, train("print('trained')").getState());
  }

  @Test
  void aFailedTrainingSaysWhy() throws Exception {
    CustomJob job = train("raise SystemExit(3)");
    assertEquals(JobState.JOB_STATE_FAILED, job.getState());
    assertTrue(job.getError().getMessage().contains("non-zero status of 3"));
  }

  @Test
  void anUnknownJobIsNotFound() {
    assertThrows(NotFoundException.class, () -> jobs.getCustomJob(PARENT + "/customJobs/1"));
  }

  @Test
  void aSearchHasTrials() throws Exception {
    String program =
        """
        import json, sys
        rate = sys.argv[1].removeprefix("--rate=")
        with open("/tmp/hypertune/output.metrics", "w") as file:
            json.dump({"timestamp": 1, "global_step": "1", "accuracy": rate}, file)
        """;
    StudySpec.ParameterSpec rate =
        StudySpec.ParameterSpec.newBuilder()
            .setParameterId("rate")
            .setDoubleValueSpec(
                StudySpec.ParameterSpec.DoubleValueSpec.newBuilder().setMinValue(0.1).setMaxValue(1))
            .build();
    StudySpec.MetricSpec accuracy =
        StudySpec.MetricSpec.newBuilder()
            .setMetricId("accuracy")
            .setGoal(StudySpec.MetricSpec.GoalType.MAXIMIZE)
            .build();
    HyperparameterTuningJob search =
        jobs.createHyperparameterTuningJob(
            PARENT,
            HyperparameterTuningJob.newBuilder()
                .setDisplayName("search")
                .setStudySpec(StudySpec.newBuilder().addMetrics(accuracy).addParameters(rate))
                .setMaxTrialCount(2)
                .setParallelTrialCount(1)
                .setTrialJobSpec(jobSpec(program))
                .build());
    while (!search.hasEndTime()) {
      Thread.sleep(100);
      search = jobs.getHyperparameterTuningJob(search.getName());
    }
    assertEquals(2, search.getTrialsCount());
    for (Trial trial : search.getTrialsList()) {
      double tried = trial.getParameters(0).getValue().getNumberValue();
      assertEquals(tried, trial.getFinalMeasurement().getMetrics(0).getValue());
    }
  }

  @Test
  void aPipelineTrains() throws Exception {
    Value.Builder inputs = Value.newBuilder();
    JsonFormat.parser().merge(JsonFormat.printer().print(jobSpec("print('trained')")), inputs);
    TrainingPipeline pipeline =
        pipelines.createTrainingPipeline(
            PARENT,
            TrainingPipeline.newBuilder()
                .setDisplayName("pipeline")
                .setTrainingTaskDefinition(
                    "gs://google-cloud-aiplatform/schema/trainingjob/definition/custom_task_1.0.0.yaml")
                .setTrainingTaskInputs(inputs)
                .build());
    while (!pipeline.hasEndTime()) {
      Thread.sleep(100);
      pipeline = pipelines.getTrainingPipeline(pipeline.getName());
    }
    assertEquals(PipelineState.PIPELINE_STATE_SUCCEEDED, pipeline.getState());
  }

  /** What one replica runs: a program in Python. */
  private static CustomJobSpec jobSpec(String program) {
    WorkerPoolSpec pool =
        WorkerPoolSpec.newBuilder()
            .setMachineSpec(MachineSpec.newBuilder().setMachineType("n1-standard-4"))
            .setReplicaCount(1)
            .setContainerSpec(
                ContainerSpec.newBuilder()
                    .setImageUri("python:3.11-slim-bookworm")
                    .addAllCommand(List.of("python3", "-c", program)))
            .build();
    return CustomJobSpec.newBuilder().addWorkerPoolSpecs(pool).build();
  }

  /** Runs a job to its end. */
  private static CustomJob train(String program) throws Exception {
    CustomJob job =
        jobs.createCustomJob(
            PARENT,
            CustomJob.newBuilder().setDisplayName("train").setJobSpec(jobSpec(program)).build());
    while (!job.hasEndTime()) {
      Thread.sleep(100);
      job = jobs.getCustomJob(job.getName());
    }
    return job;
  }
}
