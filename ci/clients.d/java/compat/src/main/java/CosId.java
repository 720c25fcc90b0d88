import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import me.ahoo.cosid.machine.AbstractMachineIdDistributor;
import me.ahoo.cosid.machine.ClockBackwardsSynchronizer;
import me.ahoo.cosid.machine.InMemoryMachineStateStorage;
import me.ahoo.cosid.machine.InstanceId;
import me.ahoo.cosid.machine.MachineState;
import me.ahoo.cosid.segment.IdSegmentDistributor;
import me.ahoo.cosid.segment.IdSegmentDistributorDefinition;
import me.ahoo.cosid.segment.SegmentChainId;
import me.ahoo.cosid.segment.grouped.DefaultGroupedIdSegmentDistributor;
import me.ahoo.cosid.segment.grouped.date.YearMonthDayGroupBySupplier;
import me.ahoo.cosid.snowflake.MillisecondSnowflakeId;
import me.ahoo.cosid.snowflake.SnowflakeId;

/**
 * CosId's own generators. The registry does not serve its module cosid-proxy, whose calls are these: of
 * ProxyIdSegmentDistributor, its factory and ProxyMachineIdDistributor.
 */
final class CosId {
    private static final String NAMESPACE = "shop";
    private static final int MACHINE_BITS = 10;
    /** Small segments: a chain of the usual ones would last through all events. */
    private static final long STEP = 10;
    private static final int IDS = 50;
    private static final Duration GUARD = Duration.ofMinutes(1);

    private CosId() {}

    private static IdSegmentDistributor distributor(Http http, IdSegmentDistributorDefinition definition) {
        String path = "/segments/distributor/" + definition.getNamespace() + "/" + definition.getName();
        http.call("POST", path + "?offset=" + definition.getOffset() + "&step=" + definition.getStep());
        return new IdSegmentDistributor() {
            @Override
            public String getNamespace() {
                return definition.getNamespace();
            }

            @Override
            public String getName() {
                return definition.getName();
            }

            @Override
            public long getStep() {
                return definition.getStep();
            }

            @Override
            public long nextMaxId(long step) {
                String path = "/segments/" + getNamespace() + "/" + getName();
                return Long.parseLong(http.call("PATCH", path + "?step=" + step));
            }
        };
    }

    static Loop.Client chain(Http http, String key, boolean isGrouped) {
        var definition = new IdSegmentDistributorDefinition(NAMESPACE, key, 0, STEP);
        IdSegmentDistributor distributor = isGrouped
            ? new DefaultGroupedIdSegmentDistributor(new YearMonthDayGroupBySupplier("yyyyMMdd"), definition, it -> distributor(http, it))
            : distributor(http, definition);
        SegmentChainId chain = new SegmentChainId(distributor);
        return source -> {
            List<Long> ids = new ArrayList<>();
            for (int nth = 0; nth < IDS; nth++) ids.add(chain.generate());
            return ids;
        };
    }

    /** Machine IDs over HTTP. */
    private static final class Machines extends AbstractMachineIdDistributor {
        private static final Pattern STATE = Pattern.compile("\"machineId\":([0-9]+),\"lastTimeStamp\":(-?[0-9]+)");
        private final Http http;

        Machines(Http http) {
            super(new InMemoryMachineStateStorage(), ClockBackwardsSynchronizer.DEFAULT);
            this.http = http;
        }

        private static String path(InstanceId instance) {
            return "/machines/" + NAMESPACE + "?instanceId=" + Http.query(instance.getInstanceId()) + "&stable=" + instance.isStable();
        }

        @Override
        protected MachineState distributeRemote(String namespace, int machineBit, InstanceId instance, Duration guard) {
            String body = http.call("POST", path(instance) + "&machineBit=" + machineBit + "&safeGuardDuration=" + guard);
            Matcher state = STATE.matcher(body);
            if (!state.find()) throw new IllegalStateException("no machine ID in " + body);
            return MachineState.of(Integer.parseInt(state.group(1)), Long.parseLong(state.group(2)));
        }

        @Override
        protected void revertRemote(String namespace, InstanceId instance, MachineState state) {
            http.call("DELETE", path(instance));
        }

        @Override
        protected void guardRemote(String namespace, InstanceId instance, MachineState state, Duration guard) {
            http.call("PATCH", path(instance) + "&safeGuardDuration=" + guard);
        }
    }

    /** Three processes of CosId: each guards its machine ID, then mints by its own clock. */
    static Loop.Client machines(Http http) {
        Machines machines = new Machines(http);
        List<InstanceId> instances = new ArrayList<>();
        List<SnowflakeId> generators = new ArrayList<>();
        for (int nth = 0; nth < 3; nth++) {
            InstanceId instance = InstanceId.of("127.0.0.1", (int) ProcessHandle.current().pid() + nth * 100_000, false);
            instances.add(instance);
            MachineState state = machines.distribute(NAMESPACE, MACHINE_BITS, instance, GUARD);
            generators.add(new MillisecondSnowflakeId(state.getMachineId()));
        }
        return source -> {
            List<Long> ids = new ArrayList<>();
            for (int nth = 0; nth < instances.size(); nth++) {
                machines.guard(NAMESPACE, instances.get(nth), GUARD);
                ids.add(generators.get(nth).generate());
            }
            return ids;
        };
    }
}
