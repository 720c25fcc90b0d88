package peers;

import java.util.Arrays;

/** Counts the IDs that come twice from each generator: two threads, {@code args[0]} IDs each. */
public final class Unique {
    private Unique() {}

    public static void main(String[] args) throws InterruptedException {
        int count = Integer.parseInt(args[0]);
        for (Peer peer : Peer.values()) {
            var minter = peer.start();
            var ids = new long[2 * count];
            var threads = new Thread[2];
            for (int thread = 0; thread < threads.length; thread++) {
                int from = thread * count;
                threads[thread] = new Thread(() -> {
                    for (int at = from; at < from + count; at++) {
                        ids[at] = minter.getAsLong();
                    }
                });
                threads[thread].start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
            Arrays.sort(ids);
            int twice = 0;
            for (int at = 1; at < ids.length; at++) {
                if (ids[at] == ids[at - 1]) {
                    twice++;
                }
            }
            System.out.println(peer + " " + ids.length + " " + twice);
        }
        System.exit(0); // Hazelcast and CosId have threads that continue.
    }
}
