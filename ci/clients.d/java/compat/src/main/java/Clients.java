import java.util.Arrays;
import java.util.List;

/** Clients of other ID systems, over HTTP. Tinyid's is not in the registry, and Leaf has none: their calls are here. */
public final class Clients {
    private static Loop.Client connect(String mode, List<Loop.Address> servers) {
        Http http = new Http(servers);
        return switch (mode) {
            case "SegmentChainId" -> CosId.chain(http, "invoices", false);
            case "SegmentChainId, by day" -> CosId.chain(http, "invoices", true);
            case "SnowflakeId" -> CosId.machines(http);
            case "segments" -> new Segments(http);
            case "IDs" -> new Loop.Client() {
                private String path(String key, int count) {
                    String token = Loop.TOKEN == null ? "test" : Loop.TOKEN;
                    return "/tinyid/id/nextIdSimple?bizType=" + key + "&batchSize=" + count + "&token=" + token;
                }

                @Override
                public List<Long> incr(String key) {
                    return numbers(http.call("POST", path(key, 1)));
                }

                @Override
                public List<Long> mint(String key, int count) {
                    return numbers(http.call("POST", path(key, count)));
                }
            };
            case "segment" -> key -> numbers(http.call("GET", "/api/segment/get/" + key));
            case "snowflake" -> key -> numbers(http.call("GET", "/api/snowflake/get/" + key));
            default -> throw new IllegalArgumentException("unknown mode " + mode);
        };
    }

    private static List<Long> numbers(String texts) {
        return Arrays.stream(texts.trim().split(",")).map(Long::valueOf).toList();
    }

    /** Tinyid's client in the process: segments from a server, whose numbers it issues itself. */
    private static final class Segments implements Loop.Client {
        private static final int IDS = 500;
        private final Http http;
        private long current;
        private long last;
        private long delta;
        private long remainder;

        Segments(Http http) {
            this.http = http;
        }

        @Override
        public List<Long> incr(String key) {
            Long[] ids = new Long[IDS];
            for (int nth = 0; nth < IDS; nth++) ids[nth] = next(key);
            return List.of(ids);
        }

        private long next(String key) {
            while (true) {
                do current++;
                while (current <= last && current % delta != remainder);
                if (current <= last) return current;
                String token = Loop.TOKEN == null ? "test" : Loop.TOKEN;
                List<Long> segment = numbers(http.call("POST", "/tinyid/id/nextSegmentIdSimple?bizType=" + key + "&token=" + token));
                current = segment.get(0);
                last = segment.get(2);
                delta = segment.get(3);
                remainder = segment.get(4);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        String version = args[0].startsWith("cosid") ? Version.of(me.ahoo.cosid.snowflake.SnowflakeId.class) : "–";
        Loop.run(args, version, Clients::connect, true);
    }
}
