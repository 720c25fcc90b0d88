import glide.api.GlideClient;
import glide.api.GlideClusterClient;
import glide.api.models.Batch;
import glide.api.models.ClusterBatch;
import glide.api.models.configuration.GlideClientConfiguration;
import glide.api.models.configuration.GlideClusterClientConfiguration;
import glide.api.models.configuration.NodeAddress;
import glide.api.models.configuration.ServerCredentials;
import java.util.List;

/** Valkey GLIDE with its defaults, for one server and for a cluster. */
public final class Clients {
    private static Loop.Client connect(String mode, List<Loop.Address> servers) throws Exception {
        var addresses = servers.stream().map(it -> NodeAddress.builder().host(it.host()).port(it.port()).build()).toList();
        if (mode.equals("cluster")) {
            var config = GlideClusterClientConfiguration.builder().addresses(addresses);
            if (Loop.TOKEN != null) config.credentials(credentials()).useTLS(true);
            var client = GlideClusterClient.createClient(config.build()).get();
            return new Loop.Client() {
                @Override
                public List<Long> incr(String key) throws Exception {
                    return List.of(client.incr(key).get());
                }

                @Override
                public List<Long> mint(String key, int count) throws Exception {
                    String[] command = {"MINT", key, String.valueOf(count)};
                    return Loop.numbers(List.of((Object[]) client.customCommand(command).get().getSingleValue()));
                }

                @Override
                public List<Long> multi(String key) throws Exception {
                    return Loop.numbers(List.of(client.exec(new ClusterBatch(true).incr(key).incr(key), true).get()));
                }
            };
        }
        var config = GlideClientConfiguration.builder().addresses(addresses);
        if (Loop.TOKEN != null) config.credentials(credentials()).useTLS(true);
        var client = GlideClient.createClient(config.build()).get();
        return new Loop.Client() {
            @Override
            public List<Long> incr(String key) throws Exception {
                return List.of(client.incr(key).get());
            }

            @Override
            public List<Long> mint(String key, int count) throws Exception {
                String[] command = {"MINT", key, String.valueOf(count)};
                return Loop.numbers(List.of((Object[]) client.customCommand(command).get()));
            }

            @Override
            public List<Long> multi(String key) throws Exception {
                return Loop.numbers(List.of(client.exec(new Batch(true).incr(key).incr(key), true).get()));
            }
        };
    }

    private static ServerCredentials credentials() {
        return ServerCredentials.builder().username(Loop.NAME).password(Loop.TOKEN).build();
    }

    public static void main(String[] args) throws Exception {
        Loop.run(args, Version.of(GlideClient.class), Clients::connect);
    }
}
