import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.LongAdder;

/**
 * The more threads run, the longer it takes until all have stopped: each must first get a
 * processor, then come to its next poll.
 *
 * <p>{@code threads} threads scan an array of 32 KiB again and again; {@code main} has the JVM look
 * for deadlocks, at a safepoint, every {@code pause} ms. It prints how long a scan takes.
 *
 * <p>Arguments: {@code threads} (default 8), {@code seconds} (5), {@code pause} in ms (50).
 */
public final class MoreThreads {
    private static final byte[] HAYSTACK = new byte[32 << 10];
    private static final LongAdder SCANS = new LongAdder();
    private static final LongAdder FOUND = new LongAdder();
    /** Holds all threads until the last has started: running threads would delay the start. */
    private static final CountDownLatch ALL_THERE = new CountDownLatch(1);
    private static volatile boolean over;

    private MoreThreads() {}

    public static void main(String[] args) throws InterruptedException {
        int threads = args.length > 0 ? Integer.parseInt(args[0]) : 8;
        int seconds = args.length > 1 ? Integer.parseInt(args[1]) : 5;
        int pause = args.length > 2 ? Integer.parseInt(args[2]) : 50;
        for (int i = 0; i < 20_000; i++) {
            FOUND.add(scan((byte) 1) ? 1 : 0);
        }
        for (int i = 0; i < threads; i++) {
            Thread thread = new Thread(MoreThreads::scanAgainAndAgain, "scanning-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        ALL_THERE.countDown();
        ThreadMXBean management = ManagementFactory.getThreadMXBean();
        long began = System.nanoTime();
        long end = began + seconds * 1_000_000_000L;
        long asked = 0;
        for (; System.nanoTime() < end; asked++) {
            management.findDeadlockedThreads();
            Thread.sleep(pause);
        }
        over = true;
        double tookUs = (System.nanoTime() - began) / 1000.0;
        System.out.println("asked " + asked);
        System.out.println("scan us " + tookUs * threads / Math.max(1, SCANS.sum()));
    }

    private static void scanAgainAndAgain() {
        try {
            ALL_THERE.await();
        } catch (InterruptedException e) {
            return;
        }
        while (!over) {
            boolean found = scan((byte) 1);
            FOUND.add(found ? 1 : 0);
            SCANS.increment();
        }
    }

    private static boolean scan(byte needle) {
        byte[] haystack = HAYSTACK;
        for (int i = 0; i < haystack.length; i++) {
            if (haystack[i] == needle) {
                return true;
            }
        }
        return false;
    }
}
