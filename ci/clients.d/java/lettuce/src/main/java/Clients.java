import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.ArrayOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Lettuce with its defaults: synchronous, asynchronous, and its cluster client. */
public final class Clients {
    private static final ProtocolKeyword MINT = new ProtocolKeyword() {
        @Override
        public byte[] getBytes() {
            return "MINT".getBytes(StandardCharsets.US_ASCII);
        }

        @Override
        public String toString() {
            return "MINT";
        }
    };

    private static RedisURI uri(Loop.Address server) {
        RedisURI.Builder uri = RedisURI.builder().withHost(server.host()).withPort(server.port());
        if (Loop.CA != null) uri.withSsl(true);
        if (Loop.TOKEN != null) uri.withAuthentication(Loop.NAME, Loop.TOKEN);
        return uri.build();
    }

    private static CommandArgs<String, String> args(String key, int count) {
        return new CommandArgs<>(StringCodec.UTF8).addKey(key).add(count);
    }

    private static Loop.Client connect(String mode, List<Loop.Address> servers) {
        if (mode.equals("cluster")) {
            var uris = servers.stream().map(Clients::uri).toList();
            StatefulRedisClusterConnection<String, String> connection = RedisClusterClient.create(uris).connect();
            return new Loop.Client() {
                @Override
                public List<Long> incr(String key) {
                    return List.of(connection.sync().incr(key));
                }

                @Override
                public List<Long> mint(String key, int count) {
                    return Loop.numbers(connection.sync().dispatch(MINT, new ArrayOutput<>(StringCodec.UTF8), args(key, count)));
                }
            };
        }
        StatefulRedisConnection<String, String> connection = RedisClient.create(uri(servers.get(0))).connect();
        boolean isAsync = mode.equals("async");
        return new Loop.Client() {
            @Override
            public List<Long> incr(String key) throws Exception {
                return List.of(isAsync ? connection.async().incr(key).get(60, TimeUnit.SECONDS) : connection.sync().incr(key));
            }

            @Override
            public List<Long> mint(String key, int count) throws Exception {
                var output = new ArrayOutput<>(StringCodec.UTF8);
                return Loop.numbers(isAsync
                    ? connection.async().dispatch(MINT, output, args(key, count)).get(60, TimeUnit.SECONDS)
                    : connection.sync().dispatch(MINT, output, args(key, count)));
            }

            @Override
            public List<Long> multi(String key) {
                var redis = connection.sync();
                redis.multi();
                redis.incr(key);
                redis.incr(key);
                return redis.exec().stream().map(it -> (Long) it).toList();
            }
        };
    }

    public static void main(String[] args) throws Exception {
        Loop.run(args, Version.of(RedisClient.class), Clients::connect);
    }
}
