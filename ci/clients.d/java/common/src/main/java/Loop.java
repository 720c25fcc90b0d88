import java.io.BufferedWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** The loop of each Java client of ci/clients. ../README.md describes the arguments and the output. */
public final class Loop {
    static final int KEYS = 32;
    public static final String NAME = System.getenv("CLIENTS_NAME");
    public static final String TOKEN = System.getenv("CLIENTS_TOKEN");
    public static final String CA = System.getenv("CLIENTS_CA");

    /** Mints by one library, from one server or a cluster. */
    public interface Client {
        List<Long> incr(String key) throws Exception;

        default List<Long> mint(String key, int count) throws Exception {
            throw new UnsupportedOperationException("no raw commands");
        }

        default List<Long> multi(String key) throws Exception {
            throw new UnsupportedOperationException("no transactions");
        }

        default List<Long> metadata(String key) throws Exception {
            throw new UnsupportedOperationException("no metadata");
        }
    }

    public record Address(String host, int port) {}

    /** Connects to one server, or to a cluster by some of its servers. */
    public interface Connect {
        Client connect(String mode, List<Address> servers) throws Exception;
    }

    private Loop() {}

    /** Returns the replies of a command that the library does not type. */
    public static List<Long> numbers(Object replies) {
        return ((List<?>) replies).stream().map(it -> ((Number) it).longValue()).toList();
    }

    public static void run(String[] args, String version, Connect connect) throws Exception {
        run(args, version, connect, args[0].contains("cluster"));
    }

    /** Mints until the file to stop at exists, by a client of all servers, or by one at a time. */
    public static void run(String[] args, String version, Connect connect, boolean isForAll) throws Exception {
        String name = args[0], source = args[2], mode = name.substring(name.indexOf('/') + 1);
        List<Address> servers = new ArrayList<>();
        for (String server : args[1].split(",")) {
            int colon = server.lastIndexOf(':');
            servers.add(new Address(server.substring(0, colon), Integer.parseInt(server.substring(colon + 1))));
        }
        String[] ops = args[3].split(",");
        Path stop = Path.of(args[5]);
        List<List<Address>> orders = isForAll ? List.of(servers) : servers.stream().map(List::of).toList();
        Client[] clients = new Client[orders.size()];
        Map<String, Integer> at = new HashMap<>();
        try (BufferedWriter out = Files.newBufferedWriter(Path.of(args[4]))) {
            out.write("version " + version + "\n");
            for (int rounds = 0; !Files.exists(stop); rounds++) {
                for (String op : ops) {
                    try {
                        int place = at.getOrDefault(op, 0) % orders.size();
                        if (clients[place] == null) clients[place] = connect.connect(mode, orders.get(place));
                        Client client = clients[place];
                        String key = switch (op) {
                            case "counter" -> "counters:{shared}";
                            case "keys" -> "counters:" + name.replace(" ", "") + "." + rounds % KEYS;
                            default -> source;
                        };
                        List<Long> ids = switch (op) {
                            case "batch" -> client.mint(key, 100);
                            case "multi" -> client.multi(key);
                            case "metadata" -> client.metadata(key);
                            default -> client.incr(key);
                        };
                        String text = ids.stream().map(String::valueOf).collect(Collectors.joining(" "));
                        out.write(System.currentTimeMillis() + " " + op + " " + key + " " + text + "\n");
                        out.flush();
                    } catch (Exception error) {
                        StringBuilder why = new StringBuilder();
                        for (Throwable it = error; it != null && why.length() < 600; it = it.getCause()) why.append(it).append("; ");
                        System.err.println(System.currentTimeMillis() + " " + op + " " + why.toString().replace('\n', ' '));
                        at.merge(op, 1, Integer::sum);
                        Thread.sleep(50);
                    }
                }
                Thread.sleep(100);
            }
        }
        // Threads of the library may not end by themselves.
        Runtime.getRuntime().halt(0);
    }
}
