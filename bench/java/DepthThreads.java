import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Threads at a stack depth, each using this share of a core: {@code DepthThreads
 * THREADS DEPTH DUTY}. Says {@code ready} when all are there; ends when its input does. The frames
 * are compiled ones, as far as the JVM compiles them.
 */
public final class DepthThreads {
    private static final int STEPS = 200_000;
    private static final int WARM_DEPTH = 200;
    private static final int WARM_ROUNDS = 5_000;
    private static final int CALIBRATION_ROUNDS = 1_000;
    private static final long STACK_BYTES_BASE = 1L << 20;
    private static final long STACK_BYTES_A_FRAME = 512;

    static volatile long sink;

    private final CountDownLatch arrived;
    private final long sleepNs;
    private final boolean working;

    private DepthThreads(int threads, long sleepNs, boolean working) {
        this.arrived = new CountDownLatch(threads);
        this.sleepNs = sleepNs;
        this.working = working;
    }

    public static void main(String[] args) throws InterruptedException, IOException {
        int threads = Integer.parseInt(args[0]);
        int depth = Integer.parseInt(args[1]);
        double duty = Double.parseDouble(args[2]);
        long burnNs = warmUp();
        long sleepNs = duty >= 1 ? 0 : (long) (burnNs * (1 - duty) / duty);
        DepthThreads program = new DepthThreads(threads, sleepNs, true);
        for (int i = 0; i < threads; i++) {
            // Spread, so that they do not work all at the same moment.
            long firstNs = sleepNs / threads * i;
            Runnable work = () -> sink = descend(depth, program, firstNs);
            Thread thread = new Thread(null, work, "depth-" + (i + 1),
                    STACK_BYTES_BASE + depth * STACK_BYTES_A_FRAME);
            thread.setDaemon(true);
            thread.start();
        }
        program.arrived.await();
        System.out.println("info burn_ns " + burnNs);
        System.out.println("ready");
        while (System.in.read() >= 0) {
            continue;
        }
    }

    /** Has everything compiled; gives the CPU time of one burst of work. */
    private static long warmUp() {
        DepthThreads idle = new DepthThreads(1, 0, false);
        for (int i = 0; i < WARM_ROUNDS; i++) {
            sink = descend(WARM_DEPTH, idle, 0);
        }
        burnAll();
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        long beganNs = clock.getCurrentThreadCpuTime();
        burnAll();
        return (clock.getCurrentThreadCpuTime() - beganNs) / CALIBRATION_ROUNDS;
    }

    private static void burnAll() {
        for (int i = 0; i < CALIBRATION_ROUNDS; i++) {
            sink = burn(i);
        }
    }

    private static long descend(int left, DepthThreads program, long firstNs) {
        if (left > 1) {
            return descend(left - 1, program, firstNs) + 1;
        }
        return program.working ? program.work(firstNs) : 0;
    }

    private long work(long firstNs) {
        arrived.countDown();
        LockSupport.parkNanos(firstNs);
        long value = 0;
        while (value != 1) {
            value = burn(value) | 2;
            if (sleepNs > 0) {
                LockSupport.parkNanos(sleepNs);
            }
        }
        return value;
    }

    private static long burn(long start) {
        long value = start;
        for (int i = 0; i < STEPS; i++) {
            value = value * 6364136223846793005L + i;
            value ^= value >>> 29;
        }
        return value;
    }
}
