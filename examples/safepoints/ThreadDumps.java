import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Work at a safepoint is expensive: a dump of all threads takes longer the more threads there are
 * and the deeper their stacks, even if all of them sleep.
 *
 * <p>{@code idle} threads are parked {@code depth} calls deep; one thread scans an array. {@code
 * main} dumps all threads every 100 ms, or only waits. It prints the mean time of a dump, and the
 * longest time in which the scanning thread could not go on.
 *
 * <p>Arguments: {@code idle} (default 100), {@code depth} (256), {@code dump} or {@code wait}
 * (dump), {@code seconds} (5).
 */
public final class ThreadDumps {
    private static final byte[] HAYSTACK = new byte[32 << 10];
    private static volatile boolean over;
    private static volatile long found;
    private static volatile long longestNs;

    private ThreadDumps() {}

    public static void main(String[] args) throws InterruptedException {
        int idle = args.length > 0 ? Integer.parseInt(args[0]) : 100;
        int depth = args.length > 1 ? Integer.parseInt(args[1]) : 256;
        boolean dumps = args.length <= 2 || args[2].equals("dump");
        int seconds = args.length > 3 ? Integer.parseInt(args[3]) : 5;
        CountDownLatch deep = new CountDownLatch(idle);
        for (int i = 0; i < idle; i++) {
            daemon("idle-" + i, () -> parkAt(depth, deep)).start();
        }
        deep.await();
        Thread scanning = daemon("scanning", ThreadDumps::scanAndMeasure);
        scanning.start();
        ThreadMXBean management = ManagementFactory.getThreadMXBean();
        Thread.sleep(500);
        longestNs = 0;
        System.out.println("ready");
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        long number = 0;
        long sumNs = 0;
        while (System.nanoTime() < end) {
            if (dumps) {
                long began = System.nanoTime();
                management.dumpAllThreads(false, false);
                sumNs += System.nanoTime() - began;
                number++;
            }
            Thread.sleep(100);
        }
        over = true;
        scanning.join();
        System.out.println("dumps " + number);
        System.out.println("dump ms " + sumNs / 1e6 / Math.max(1, number));
        System.out.println("longest ms " + longestNs / 1e6);
    }

    private static Thread daemon(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        return thread;
    }

    private static void parkAt(int depth, CountDownLatch deep) {
        if (depth > 1) {
            parkAt(depth - 1, deep);
            return;
        }
        deep.countDown();
        while (!over) {
            LockSupport.park();
        }
    }

    private static void scanAndMeasure() {
        long before = System.nanoTime();
        while (!over) {
            found += scan((byte) 1) ? 1 : 0;
            long now = System.nanoTime();
            longestNs = Math.max(longestNs, now - before);
            before = now;
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
