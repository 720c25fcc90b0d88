import java.util.HashSet;
import java.util.List;
import java.util.Set;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.commands.ProtocolCommand;

/** Jedis with its defaults: one connection, a pool of them, RESP3, and its cluster client. */
public final class Clients {
    private static final ProtocolCommand MINT = () -> "MINT".getBytes();

    private static Loop.Client connect(String mode, List<Loop.Address> servers) {
        var config = DefaultJedisClientConfig.builder().user(Loop.NAME).password(Loop.TOKEN).ssl(Loop.CA != null);
        if (mode.equals("RESP3")) config.protocol(RedisProtocol.RESP3);
        var first = new HostAndPort(servers.get(0).host(), servers.get(0).port());
        if (mode.equals("connection")) return new Connection(first, config.build());
        UnifiedJedis client;
        if (mode.equals("cluster")) {
            Set<HostAndPort> nodes = new HashSet<>();
            servers.forEach(it -> nodes.add(new HostAndPort(it.host(), it.port())));
            client = RedisClusterClient.builder().nodes(nodes).clientConfig(config.build()).build();
        } else {
            client = RedisClient.builder().hostAndPort(first).clientConfig(config.build()).build();
        }
        return new Loop.Client() {
            @Override
            public List<Long> incr(String key) {
                return List.of(client.incr(key));
            }

            @Override
            public List<Long> mint(String key, int count) {
                return Loop.numbers(client.sendCommand(key, MINT, key, String.valueOf(count)));
            }

            @Override
            public List<Long> multi(String key) {
                try (var transaction = client.multi()) {
                    transaction.incr(key);
                    transaction.incr(key);
                    return Loop.numbers(transaction.exec());
                }
            }
        };
    }

    /** One connection, which a program opens again when it is broken. */
    private static final class Connection implements Loop.Client {
        private final HostAndPort server;
        private final DefaultJedisClientConfig config;
        private Jedis jedis;

        Connection(HostAndPort server, DefaultJedisClientConfig config) {
            this.server = server;
            this.config = config;
        }

        private Jedis jedis() {
            if (jedis == null || jedis.isBroken()) jedis = new Jedis(server, config);
            return jedis;
        }

        @Override
        public List<Long> incr(String key) {
            return List.of(jedis().incr(key));
        }

        @Override
        public List<Long> mint(String key, int count) {
            return Loop.numbers(jedis().sendCommand(MINT, key, String.valueOf(count)));
        }

        @Override
        public List<Long> multi(String key) {
            try (var transaction = jedis().multi()) {
                transaction.incr(key);
                transaction.incr(key);
                return Loop.numbers(transaction.exec());
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Loop.run(args, Version.of(Jedis.class), Clients::connect);
    }
}
