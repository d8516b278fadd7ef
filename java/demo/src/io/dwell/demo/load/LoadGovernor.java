package io.dwell.demo.load;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Keeps the process about as busy as requested, on fast and slow machines. It compares the CPU time
 * used with the target, and changes the clients' pauses.
 */
final class LoadGovernor implements Runnable {
    private static final long PERIOD_NS = TimeUnit.MILLISECONDS.toNanos(250);
    private static final double PAUSE_MIN_NS = 20_000;
    private static final double PAUSE_MAX_NS = 200_000_000;
    /** Limits of one correction, because the measurement of one period is noisy. */
    private static final double STEP_MIN = 0.8;
    private static final double STEP_MAX = 1.25;

    private final OperatingSystemMXBean system =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private volatile double targetCores;
    private volatile double pauseNanos = 4_000_000;
    private volatile double busyCores;
    private volatile boolean stopped;

    LoadGovernor(double targetCores) {
        this.targetCores = targetCores;
    }

    @Override
    public void run() {
        long wall = System.nanoTime();
        long cpu = system.getProcessCpuTime();
        while (!stopped) {
            LockSupport.parkNanos(PERIOD_NS);
            long wallNow = System.nanoTime();
            long cpuNow = system.getProcessCpuTime();
            adjust((double) (cpuNow - cpu) / Math.max(1, wallNow - wall));
            wall = wallNow;
            cpu = cpuNow;
        }
    }

    private void adjust(double busyNow) {
        busyCores = busyCores == 0 ? busyNow : 0.8 * busyCores + 0.2 * busyNow;
        double step = Math.min(STEP_MAX, Math.max(STEP_MIN, busyNow / targetCores));
        pauseNanos = Math.min(PAUSE_MAX_NS, Math.max(PAUSE_MIN_NS, pauseNanos * step));
    }

    void target(double cores) {
        targetCores = cores;
    }

    double busyCores() {
        return busyCores;
    }

    long pauseNanos() {
        return (long) pauseNanos;
    }

    boolean stopped() {
        return stopped;
    }

    void stop() {
        stopped = true;
    }
}
