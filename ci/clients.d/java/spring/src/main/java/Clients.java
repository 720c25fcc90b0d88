import java.util.List;
import org.springframework.data.redis.connection.RedisClusterConfiguration;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.RedisNode;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.support.atomic.RedisAtomicLong;

/** Spring Data Redis with its defaults, over Lettuce: each ID from a new RedisAtomicLong, as at the start of a program. */
public final class Clients {
    private static Loop.Client connect(String mode, List<Loop.Address> servers) {
        RedisConfiguration configuration;
        if (mode.contains("cluster")) {
            RedisClusterConfiguration cluster = new RedisClusterConfiguration();
            servers.forEach(it -> cluster.addClusterNode(new RedisNode(it.host(), it.port())));
            cluster.setUsername(Loop.NAME);
            if (Loop.TOKEN != null) cluster.setPassword(Loop.TOKEN);
            configuration = cluster;
        } else {
            var single = new RedisStandaloneConfiguration(servers.get(0).host(), servers.get(0).port());
            single.setUsername(Loop.NAME);
            if (Loop.TOKEN != null) single.setPassword(Loop.TOKEN);
            configuration = single;
        }
        var client = LettuceClientConfiguration.builder();
        if (Loop.CA != null) client.useSsl();
        var factory = new LettuceConnectionFactory(configuration, client.build());
        factory.afterPropertiesSet();
        factory.start();
        return key -> List.of(new RedisAtomicLong(key, factory).incrementAndGet());
    }

    public static void main(String[] args) throws Exception {
        Loop.run(args, Version.of(RedisAtomicLong.class), Clients::connect);
    }
}
