package io.dwell.test;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Virtual threads {@code vt-N} that burn at the bottom of a recursion of known depth and pause
 * there, so that their frames are frozen to the heap and come back a few at a time.
 */
public final class VirtualThreads {
    private final Harness harness;
    private final TruthTable truths = new TruthTable();
    private final ReentrantLock lock = new ReentrantLock();
    private final String pause;
    private final int frames;
    private final int burstsPerDescent;
    private final long burstNanos;
    private final long pauseNanos;

    private VirtualThreads(String[] args) {
        harness = new Harness("VirtualThreads", 6, args, "threads", "frames", "burst_us",
                "pause_us", "pause", "bursts_per_descent");
        pause = harness.choice("pause", "mixed", "park", "yield", "sleep", "lock");
        frames = harness.number("frames", 30, 1, 2000);
        burstsPerDescent = harness.number("bursts_per_descent", 50, 1, 1_000_000);
        burstNanos = TimeUnit.MICROSECONDS.toNanos(harness.number("burst_us", 1000, 10, 1_000_000));
        pauseNanos = TimeUnit.MICROSECONDS.toNanos(
                harness.number("pause_us", 20_000, 1, 10_000_000));
    }

    public static void main(String[] args) throws InterruptedException {
        VirtualThreads program = new VirtualThreads(args);
        int count = program.harness.number("threads", 20, 1, 100_000);
        Burn.warmUp();
        Burn.sink = NativeSupport.threadCpuNanos();
        program.harness.ready();
        List<Thread> threads = new ArrayList<>();
        for (int i = 1; i <= count; i++) {
            String name = "vt-" + i;
            threads.add(Thread.ofVirtual().name(name).start(() -> program.live(name)));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        program.harness.info("frames_of_descend", program.frames);
        program.truths.print(program.harness);
        program.harness.truth("vt_total", program.truths.sum());
        program.harness.finish();
    }

    private void live(String name) {
        CpuBudget budget = new CpuBudget(NativeSupport::threadCpuNanos);
        long burned = 0;
        while (harness.timeLeft()) {
            burned += descend(frames, budget);
        }
        truths.add(name, burned);
    }

    /** Makes {@code left} frames of itself; returns the CPU time burned at the bottom. */
    private long descend(int left, CpuBudget budget) {
        if (left <= 1) {
            return burstsAndPauses(budget);
        }
        long burned = descend(left - 1, budget);
        Burn.sink = burned;
        return burned;
    }

    private long burstsAndPauses(CpuBudget budget) {
        long burned = 0;
        for (int burst = 0; burst < burstsPerDescent && harness.timeLeft(); burst++) {
            // No pause, hence no change of carrier, between the two readings of its clock.
            long before = NativeSupport.threadCpuNanos();
            Burn.sink = burstOfVirtualThread(budget.grant(burstNanos));
            burned += NativeSupport.threadCpuNanos() - before;
            pause(burst);
        }
        return burned;
    }

    private static long burstOfVirtualThread(CpuBudget budget) {
        return Burn.until(budget, 1);
    }

    private void pause(int burst) {
        String[] ways = {"park", "yield", "sleep", "lock"};
        switch (pause.equals("mixed") ? ways[burst % ways.length] : pause) {
            case "yield" -> Thread.yield();
            case "sleep" -> sleep();
            case "lock" -> contend();
            default -> LockSupport.parkNanos(pauseNanos);
        }
    }

    private void sleep() {
        try {
            Thread.sleep(pauseNanos / 1_000_000, (int) (pauseNanos % 1_000_000));
        } catch (InterruptedException e) {
            throw new IllegalStateException("nobody interrupts these threads", e);
        }
    }

    private void contend() {
        lock.lock();
        try {
            LockSupport.parkNanos(pauseNanos / 50);
        } finally {
            lock.unlock();
        }
        LockSupport.parkNanos(pauseNanos);
    }
}
