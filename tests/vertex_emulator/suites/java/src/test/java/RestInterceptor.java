import com.google.api.AnnotationsProto;
import com.google.api.HttpRule;
import com.google.cloud.aiplatform.v1.JobServiceProto;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.protobuf.Message;
import com.google.protobuf.util.JsonFormat;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.PrototypeMarshaller;
import io.grpc.Status;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Sends the gRPC calls of a JobServiceClient as the REST requests that the API's google.api.http options name. */
final class RestInterceptor implements ClientInterceptor {
  private static final Pattern VARIABLE = Pattern.compile("\\{(\\w+)=[^}]*}");

  private final HttpClient http = HttpClient.newHttpClient();
  private final String endpoint;
  private final String token;

  RestInterceptor(String endpoint, String token) {
    this.endpoint = endpoint;
    this.token = token;
  }

  @Override
  public <Q, A> ClientCall<Q, A> interceptCall(MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
    return new ClientCall<>() {
      private Listener<A> listener;
      private Q message;

      @Override
      public void start(Listener<A> listener, Metadata headers) {
        this.listener = listener;
      }

      @Override
      public void sendMessage(Q message) {
        this.message = message;
      }

      @Override
      public void halfClose() {
        try {
          HttpRequest request = toRest(method.getBareMethodName(), (Message) message);
          HttpResponse<String> response = http.send(request, HttpResponse.BodyHandlers.ofString());
          if (response.statusCode() != 200) {
            JsonObject error = JsonParser.parseString(response.body()).getAsJsonObject().getAsJsonObject("error");
            Status status = Status.Code.valueOf(error.get("status").getAsString()).toStatus();
            listener.onClose(status.withDescription(error.get("message").getAsString()), new Metadata());
            return;
          }
          listener.onMessage(parse(method, response.body()));
          listener.onClose(Status.OK, new Metadata());
        } catch (Exception error) {
          listener.onClose(Status.UNAVAILABLE.withCause(error), new Metadata());
        }
      }

      @Override
      public void request(int count) {}

      @Override
      public void cancel(String message, Throwable cause) {}
    };
  }

  private HttpRequest toRest(String method, Message message) throws Exception {
    HttpRule rule =
        JobServiceProto.getDescriptor()
            .findServiceByName("JobService")
            .findMethodByName(method)
            .getOptions()
            .getExtension(AnnotationsProto.http);
    String template =
        switch (rule.getPatternCase()) {
          case POST -> rule.getPost();
          case DELETE -> rule.getDelete();
          default -> rule.getGet();
        };
    JsonObject fields =
        JsonParser.parseString(JsonFormat.printer().preservingProtoFieldNames().print(message)).getAsJsonObject();
    Matcher variables = VARIABLE.matcher(template);
    String path = variables.replaceAll(found -> fields.remove(found.group(1)).getAsString());
    JsonElement body = rule.getBody().equals("*") ? fields : fields.remove(rule.getBody());
    String query =
        rule.getBody().equals("*")
            ? ""
            : fields.entrySet().stream()
                .map(field -> field.getKey() + "=" + encode(field.getValue()))
                .collect(Collectors.joining("&", "?", ""));
    return HttpRequest.newBuilder(URI.create(endpoint + path + query))
        .header("Authorization", "Bearer " + token)
        .header("Content-Type", "application/json")
        .method(
            rule.getPatternCase().name(),
            body == null
                ? HttpRequest.BodyPublishers.noBody()
                : HttpRequest.BodyPublishers.ofString(body.toString()))
        .build();
  }

  private static String encode(JsonElement value) {
    return URLEncoder.encode(value.getAsString(), StandardCharsets.UTF_8);
  }

  @SuppressWarnings("unchecked")
  private static <A> A parse(MethodDescriptor<?, A> method, String body) throws Exception {
    Message prototype = (Message) ((PrototypeMarshaller<A>) method.getResponseMarshaller()).getMessagePrototype();
    Message.Builder builder = prototype.newBuilderForType();
    JsonFormat.parser().ignoringUnknownFields().merge(body, builder);
    return (A) builder.build();
  }
}
