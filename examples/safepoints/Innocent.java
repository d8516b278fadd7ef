import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.atomic.LongAdder;

/**
 * One thread comes late to every safepoint, and another one pays for it.
 *
 * <p>The thread {@code culprit} scans an array of 32 KiB {@code k} times before it comes to a poll,
 * the thread {@code innocent} scans it once. {@code main} has the JVM look for deadlocks, at a
 * safepoint, every 100 ms. It prints the mean time of each thread's scans, and the longest scan of
 * the innocent one.
 *
 * <p>Arguments: {@code k} (default 1000), {@code index} of the culprit's loop, int or long (int),
 * {@code seconds} (5).
 */
public final class Innocent {
    private static final byte[] HAYSTACK = new byte[32 << 10];
    private static final LongAdder FOUND = new LongAdder();
    private static volatile boolean over;
    private static volatile long culpritScans;
    private static volatile long innocentScans;
    private static volatile long longestNs;

    private Innocent() {}

    public static void main(String[] args) throws InterruptedException {
        int k = args.length > 0 ? Integer.parseInt(args[0]) : 1000;
        boolean isLong = args.length > 1 && args[1].equals("long");
        int seconds = args.length > 2 ? Integer.parseInt(args[2]) : 5;
        for (int i = 0; i < 20_000; i++) {
            FOUND.add(scan((byte) 1) ? 1 : 0);
            FOUND.add(isLong ? scanManyByLong(1) : scanMany(1));
        }
        Thread culprit = new Thread(() -> {
            while (!over) {
                FOUND.add(isLong ? scanManyByLong(k) : scanMany(k));
                culpritScans += k;
            }
        }, "culprit");
        Thread innocent = new Thread(Innocent::scanAndMeasure, "innocent");
        culprit.setDaemon(true);
        culprit.start();
        // The loop shall be compiled, and the compiled one entered, before anything is measured.
        Thread.sleep(1000);
        innocent.start();
        ThreadMXBean management = ManagementFactory.getThreadMXBean();
        long scansBefore = culpritScans;
        long began = System.nanoTime();
        long end = began + seconds * 1_000_000_000L;
        while (System.nanoTime() < end) {
            management.findDeadlockedThreads();
            Thread.sleep(100);
        }
        double tookUs = (System.nanoTime() - began) / 1000.0;
        double scans = Math.max(1, culpritScans - scansBefore);
        over = true;
        innocent.join();
        System.out.println("culprit scan us " + tookUs / scans);
        System.out.println("innocent scan us " + tookUs / Math.max(1, innocentScans));
        System.out.println("innocent longest ms " + longestNs / 1e6);
    }

    private static void scanAndMeasure() {
        long before = System.nanoTime();
        while (!over) {
            FOUND.add(scan((byte) 1) ? 1 : 0);
            long now = System.nanoTime();
            longestNs = Math.max(longestNs, now - before);
            innocentScans++;
            before = now;
        }
    }

    /** Both loops are counted, so neither has a poll if the JVM omits polls in such loops. */
    private static int scanMany(int k) {
        int found = 0;
        for (int i = 0; i < k; i++) {
            found += scan((byte) (i | 1)) ? 1 : 0;
        }
        return found;
    }

    /** The same with a {@code long} index: that loop has a poll. */
    private static int scanManyByLong(long k) {
        int found = 0;
        for (long i = 0; i < k; i++) {
            found += scan((byte) (i | 1)) ? 1 : 0;
        }
        return found;
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
