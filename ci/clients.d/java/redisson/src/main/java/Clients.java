import java.util.List;
import org.redisson.Redisson;
import org.redisson.api.BatchOptions;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson with its defaults, for one server and for a cluster. It has no call for a command that it does not know. */
public final class Clients {
    private static Loop.Client connect(String mode, List<Loop.Address> servers) {
        Config config = new Config();
        String scheme = Loop.CA == null ? "redis://" : "rediss://";
        String[] addresses = servers.stream().map(it -> scheme + it.host() + ":" + it.port()).toArray(String[]::new);
        config.setUsername(Loop.NAME).setPassword(Loop.TOKEN);
        if (mode.equals("cluster")) config.useClusterServers().addNodeAddress(addresses);
        else config.useSingleServer().setAddress(addresses[0]);
        RedissonClient client = Redisson.create(config);
        return new Loop.Client() {
            @Override
            public List<Long> incr(String key) {
                return List.of(client.getAtomicLong(key).incrementAndGet());
            }

            @Override
            public List<Long> multi(String key) {
                var options = BatchOptions.defaults().executionMode(BatchOptions.ExecutionMode.REDIS_WRITE_ATOMIC);
                var batch = client.createBatch(options);
                batch.getAtomicLong(key).incrementAndGetAsync();
                batch.getAtomicLong(key).incrementAndGetAsync();
                return Loop.numbers(batch.execute().getResponses());
            }
        };
    }

    public static void main(String[] args) throws Exception {
        Loop.run(args, Version.of(Redisson.class), Clients::connect);
    }
}
