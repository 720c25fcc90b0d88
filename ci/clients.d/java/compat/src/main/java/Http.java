import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;

/** Requests to the first server that responds, as behind a balancer. */
final class Http {
    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(1)).build();
    private final List<Loop.Address> servers;
    private volatile int at;

    Http(List<Loop.Address> servers) {
        this.servers = servers;
    }

    static String query(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    /** Returns the body of a response with status 200. The others are errors, with their body. */
    String call(String method, String path) {
        RuntimeException last = null;
        for (int tries = 0; tries < servers.size(); tries++) {
            Loop.Address server = servers.get(at % servers.size());
            String base = (Loop.CA == null ? "http://" : "https://") + server.host() + ":" + server.port();
            var request = HttpRequest.newBuilder(URI.create(base + path)).timeout(Duration.ofSeconds(5))
                .method(method, HttpRequest.BodyPublishers.noBody());
            if (Loop.TOKEN != null) request.header("Authorization", "Bearer " + Loop.TOKEN);
            try {
                HttpResponse<String> response = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
                if (response.statusCode() == 200) return response.body();
                last = new IllegalStateException(method + " " + path + ": " + response.statusCode() + " " + response.body());
                if (response.statusCode() < 500) throw last;
            } catch (IOException error) {
                last = new IllegalStateException(method + " " + path, error);
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
            at++;
        }
        throw last;
    }
}
