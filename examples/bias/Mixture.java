import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * A thread with four kinds of work, each in a method of its own, whose CPU time it measures itself:
 * a counted loop without polls, copies of a large array, a loop that polls, and many calls of a
 * small method. On request a profiler in the same program takes thread dumps.
 *
 * <p>It prints {@code truth METHOD NS} by the thread's CPU clock, and {@code dumps METHOD N} by the
 * dumps: the topmost frame that is one of the four, or {@code other}.
 *
 * <p>Arguments: {@code seconds} (default 10), {@code dumps} or {@code none} (none).
 */
public final class Mixture {
    private static final String[] METHODS = {"counted", "copied", "polling", "calling"};
    private static final int[] NUMBERS = new int[1 << 16];
    private static final byte[] FROM = new byte[8 << 20];
    private static final byte[] TO = new byte[8 << 20];
    private static final ThreadMXBean MANAGEMENT = ManagementFactory.getThreadMXBean();
    private static volatile boolean over;
    private static volatile long sink;

    private Mixture() {}

    public static void main(String[] args) throws InterruptedException {
        int seconds = args.length > 0 ? Integer.parseInt(args[0]) : 10;
        boolean takesDumps = args.length > 1 && args[1].equals("dumps");
        long[] rounds = new long[METHODS.length];
        for (int which = 0; which < METHODS.length; which++) {
            rounds[which] = roundsOf(which);
        }
        long[] truth = new long[METHODS.length];
        Thread mixture = new Thread(() -> mix(rounds, truth), "mixture");
        mixture.start();
        Thread.sleep(200);
        if (takesDumps) {
            long[] seen = new DumpSampler(mixture, METHODS).run(seconds);
            for (int which = 0; which < seen.length; which++) {
                String name = which < METHODS.length ? METHODS[which] : "other";
                System.out.println("dumps " + name + " " + seen[which]);
            }
        } else {
            Thread.sleep(seconds * 1000L);
        }
        over = true;
        mixture.join();
        for (int which = 0; which < METHODS.length; which++) {
            System.out.println("truth " + METHODS[which] + " " + truth[which]);
        }
    }

    private static void mix(long[] rounds, long[] truth) {
        while (!over) {
            for (int which = 0; which < METHODS.length; which++) {
                long before = MANAGEMENT.getCurrentThreadCpuTime();
                work(which, rounds[which]);
                truth[which] += MANAGEMENT.getCurrentThreadCpuTime() - before;
            }
        }
    }

    private static void work(int which, long rounds) {
        switch (which) {
            case 0: sink += counted((int) rounds); break;
            case 1: sink += copied((int) rounds); break;
            case 2: sink += polling(rounds); break;
            default: sink += calling(rounds); break;
        }
    }

    private static long counted(int rounds) {
        long sum = 0;
        for (int round = 0; round < rounds; round++) {
            for (int i = 0; i < NUMBERS.length; i++) {
                sum += NUMBERS[i] ^ (sum << 3);
            }
        }
        return sum;
    }

    private static long copied(int rounds) {
        for (int round = 0; round < rounds; round++) {
            System.arraycopy(FROM, 0, TO, 0, FROM.length);
        }
        return TO[0];
    }

    /** The number of rounds is not known at the start, so each round polls. */
    private static long polling(long rounds) {
        long sum = 0;
        long left = rounds;
        while (left > 0) {
            sum += left ^ (sum << 3);
            left -= 1 + (sum & 1);
        }
        return sum;
    }

    private static long calling(long rounds) {
        long sum = 0;
        for (long i = 0; i < rounds; i++) {
            sum += Long.toString(i & 1023).hashCode();
        }
        return sum;
    }

    /** Number of rounds in about 2 ms of CPU time, after the last compilation of the method. */
    private static long roundsOf(int which) {
        long rounds = 1;
        long spent = 0;
        long took = 0;
        while (spent < 300_000_000L || took < 2_000_000) {
            long before = MANAGEMENT.getCurrentThreadCpuTime();
            work(which, rounds);
            took = MANAGEMENT.getCurrentThreadCpuTime() - before;
            spent += took;
            if (took < 2_000_000) {
                rounds *= 2;
            }
        }
        return rounds;
    }
}
