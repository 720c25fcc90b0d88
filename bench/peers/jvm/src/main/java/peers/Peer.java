package peers;

import cn.hutool.core.lang.Snowflake;
import com.baomidou.mybatisplus.core.toolkit.Sequence;
import com.github.f4b6a3.tsid.TsidFactory;
import com.github.yitter.contract.IdGeneratorException;
import com.github.yitter.contract.IdGeneratorOptions;
import com.github.yitter.idgen.DefaultIdGenerator;
import com.hazelcast.config.Config;
import com.hazelcast.config.FlakeIdGeneratorConfig;
import com.hazelcast.core.Hazelcast;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import me.ahoo.cosid.CosId;
import me.ahoo.cosid.segment.IdSegmentDistributor;
import me.ahoo.cosid.segment.SegmentChainId;
import me.ahoo.cosid.snowflake.MillisecondSnowflakeId;

/** A generator that threads share. Each begins its sequence at 0 and reads the clock by its own rule. */
public enum Peer {
    /** The floor: what any counter that threads share costs. */
    FLOOR {
        @Override
        LongSupplier start() {
            return new AtomicLong()::incrementAndGet;
        }
    },
    COSID_SNOWFLAKE {
        @Override
        LongSupplier start() {
            return new MillisecondSnowflakeId(CosId.COSID_EPOCH, 41, 1, 21, 0)::generate;
        }
    },
    COSID_SNOWFLAKE_TWITTER {
        @Override
        LongSupplier start() {
            return new MillisecondSnowflakeId(0)::generate;
        }
    },
    /** Segments from a counter in the process: what remains is the chain. */
    COSID_SEGMENT_CHAIN {
        @Override
        LongSupplier start() {
            return new SegmentChainId(new IdSegmentDistributor.Atomic())::generate;
        }
    },
    HUTOOL {
        @Override
        LongSupplier start() {
            return new Snowflake(0, 0)::nextId;
        }
    },
    YITTER {
        @Override
        LongSupplier start() {
            var options = new IdGeneratorOptions((short) 1);
            options.WorkerIdBitLength = 1;
            options.SeqBitLength = 21;
            try {
                return new DefaultIdGenerator(options)::newLong;
            } catch (IdGeneratorException error) {
                throw new IllegalStateException(error);
            }
        }
    },
    MYBATIS_PLUS {
        @Override
        LongSupplier start() {
            return new Sequence(0, 0)::nextId;
        }
    },
    TSID_CREATOR {
        @Override
        LongSupplier start() {
            var factory = TsidFactory.builder().withNodeBits(0).withNode(0).build();
            return () -> factory.create().toLong();
        }
    },
    /** One member, batches of 100 IDs, as by default. */
    HAZELCAST_FLAKE {
        @Override
        LongSupplier start() {
            var config = new Config();
            config.setProperty("hazelcast.phone.home.enabled", "false");
            config.setProperty("hazelcast.logging.type", "none");
            config.setProperty("hazelcast.socket.bind.any", "false");
            config.getNetworkConfig().setPublicAddress("127.0.0.1");
            config.getNetworkConfig().getInterfaces().setEnabled(true).addInterface("127.0.0.1");
            config.getNetworkConfig().getJoin().getAutoDetectionConfig().setEnabled(false);
            config.getNetworkConfig().getJoin().getMulticastConfig().setEnabled(false);
            config.addFlakeIdGeneratorConfig(new FlakeIdGeneratorConfig("ids"));
            return Hazelcast.newHazelcastInstance(config).getFlakeIdGenerator("ids")::newId;
        }
    };

    /** Starts it; the calls share it. */
    abstract LongSupplier start();
}
