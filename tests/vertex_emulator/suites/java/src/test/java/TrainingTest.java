import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.github.dockerjava.api.model.Bind;
import com.google.api.gax.core.NoCredentialsProvider;
import com.google.api.gax.rpc.FixedHeaderProvider;
import com.google.api.gax.rpc.NotFoundException;
import com.google.cloud.aiplatform.v1.ContainerSpec;
import com.google.cloud.aiplatform.v1.CustomJob;
import com.google.cloud.aiplatform.v1.CustomJobSpec;
import com.google.cloud.aiplatform.v1.JobServiceClient;
import com.google.cloud.aiplatform.v1.JobServiceSettings;
import com.google.cloud.aiplatform.v1.JobState;
import com.google.cloud.aiplatform.v1.MachineSpec;
import com.google.cloud.aiplatform.v1.WorkerPoolSpec;
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

  @BeforeAll
  static void connect() throws Exception {
    String address = emulator.getHost() + ":" + emulator.getMappedPort(8600);
    String token = emulator.execInContainer("cat", "/data/token").getStdout().strip();
    jobs =
        JobServiceClient.create(
            JobServiceSettings.newBuilder()
                .setCredentialsProvider(NoCredentialsProvider.create())
                .setHeaderProvider(FixedHeaderProvider.create("authorization", "Bearer " + token))
                .setTransportChannelProvider(
                    JobServiceSettings.defaultGrpcTransportProviderBuilder()
                        .setEndpoint(address)
                        .setChannelConfigurator(ManagedChannelBuilder::usePlaintext)
                        .build())
                .build());
  }

  /** Stops it, with the containers of its jobs: Testcontainers would kill it. */
  @AfterAll
  static void stop() {
    jobs.close();
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
    String name = "projects/local/locations/us-central1/customJobs/1";
    assertThrows(NotFoundException.class, () -> jobs.getCustomJob(name));
  }

  /** Runs a job of one replica to its end. */
  private static CustomJob train(String program) throws Exception {
    WorkerPoolSpec pool =
        WorkerPoolSpec.newBuilder()
            .setMachineSpec(MachineSpec.newBuilder().setMachineType("n1-standard-4"))
            .setReplicaCount(1)
            .setContainerSpec(
                ContainerSpec.newBuilder()
                    .setImageUri("python:3.11-slim-bookworm")
                    .addAllCommand(List.of("python3", "-c", program)))
            .build();
    CustomJob job =
        jobs.createCustomJob(
            "projects/local/locations/us-central1",
            CustomJob.newBuilder()
                .setDisplayName("train")
                .setJobSpec(CustomJobSpec.newBuilder().addWorkerPoolSpecs(pool))
                .build());
    while (!job.hasEndTime()) {
      Thread.sleep(100);
      job = jobs.getCustomJob(job.getName());
    }
    return job;
  }
}
