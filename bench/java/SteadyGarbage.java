import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * Constant garbage: a number of threads make a number of objects each, all of which die young, and
 * use a part of their time for other work. The measured value is the CPU time of these threads
 * alone. The CPU time of the collector and of the compilers differs more from run to run than the
 * expected effect.
 */
public final class SteadyGarbage {
    private static final int OBJECTS_PER_ROUND = 100_000;

    static volatile Object sink;

    private SteadyGarbage() {}

    /** Lets threads do this number of rounds each, and returns their CPU time. */
    static long run(int threads, int rounds) throws InterruptedException {
        Thread[] all = new Thread[threads];
        long[] usedNs = new long[threads];
        for (int i = 0; i < threads; i++) {
            int number = i;
            all[i] = new Thread(() -> usedNs[number] = work(rounds), "steady-" + (i + 1));
            all[i].start();
        }
        long sum = 0;
        for (int i = 0; i < threads; i++) {
            all[i].join();
            sum += usedNs[i];
        }
        return sum;
    }

    private static long work(int rounds) {
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        long before = clock.getCurrentThreadCpuTime();
        long value = 1;
        for (int round = 0; round < rounds; round++) {
            value = round(value);
        }
        sink = value;
        return clock.getCurrentThreadCpuTime() - before;
    }

    private static long round(long start) {
        long value = start;
        for (int i = 0; i < OBJECTS_PER_ROUND; i++) {
            value = steps(value, make(i, value));
        }
        return value;
    }

    private static int make(int i, long value) {
        Object made;
        switch (i & 3) {
            case 0:
                made = new long[8 + (i & 31)];
                break;
            case 1:
                made = new byte[100 + (i & 255)];
                break;
            case 2:
                made = new Object[] {"a", "b"};
                break;
            default:
                made = Long.valueOf(value | 1L << 40);
                break;
        }
        sink = made;
        return i;
    }

    private static long steps(long start, int salt) {
        long value = start;
        for (int i = 0; i < 40; i++) {
            value = value * 6364136223846793005L + salt;
            value ^= value >>> 29;
        }
        return value;
    }
}
