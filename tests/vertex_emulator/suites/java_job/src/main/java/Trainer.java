import com.google.cloud.aiplatform.v1.CustomJob;
import com.google.cloud.aiplatform.v1.JobServiceClient;
import com.google.cloud.aiplatform.v1.JobServiceSettings;
import com.google.cloud.aiplatform.v1.LocationName;
import com.google.cloud.storage.BlobId;
import com.google.cloud.storage.BlobInfo;
import com.google.cloud.storage.Storage;
import com.google.cloud.storage.StorageOptions;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;

/** A trainer as for the cloud: no endpoint, no certificate and no credential. */
public class Trainer {
  public static void main(String[] arguments) throws Exception {
    Storage storage = StorageOptions.getDefaultInstance().getService();
    BlobId model = BlobId.fromGsUtilUri(System.getenv("AIP_MODEL_DIR") + "model.txt");
    storage.create(BlobInfo.newBuilder(model).build(), "42".getBytes(StandardCharsets.UTF_8));
    System.out.println("read " + new String(storage.readAllBytes(model), StandardCharsets.UTF_8));
    storage.list(model.getBucket()).iterateAll().forEach(each -> System.out.println("listed " + each.getName()));

    String region = System.getenv("CLOUD_ML_REGION");
    LocationName parent = LocationName.of(System.getenv("CLOUD_ML_PROJECT_ID"), region);
    JobServiceSettings settings =
        JobServiceSettings.newBuilder().setEndpoint(region + "-aiplatform.googleapis.com:443").build();
    try (JobServiceClient jobs = JobServiceClient.create(settings)) {
      for (CustomJob job : jobs.listCustomJobs(parent).iterateAll()) {
        System.out.println("job " + job.getDisplayName());
      }
    }

    URI object = URI.create("https://storage.googleapis.com/" + model.getBucket() + "/" + model.getName());
    HttpResponse<String> answer =
        HttpClient.newHttpClient().send(HttpRequest.newBuilder(object).build(), HttpResponse.BodyHandlers.ofString());
    System.out.println("by HTTP " + answer.body());
    System.out.println("own option " + System.getProperty("own"));
  }
}
