package io.dwell.test;

import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;

/**
 * Threads that live shorter than a sampling interval: started at a rate, and each burns a little.
 */
public final class ThreadChurn {
    private static final int ALIVE_MAX = 64;

    private final LongAdder burned = new LongAdder();
    private final LongAdder threadsTotal = new LongAdder();
    private final Semaphore alive = new Semaphore(ALIVE_MAX);
    private final long burnNanos;

    private ThreadChurn(int burnMicros) {
        burnNanos = TimeUnit.MICROSECONDS.toNanos(burnMicros);
    }

    public static void main(String[] args) throws InterruptedException {
        Harness harness = new Harness("ThreadChurn", 5, args, "rate", "burn_us");
        int rate = harness.number("rate", 1000, 1, 20_000);
        ThreadChurn churn = new ThreadChurn(harness.number("burn_us", 300, 1, 1_000_000));
        Burn.warmUp();
        harness.ready();
        long processBefore = CpuClock.processNanos();
        long mainBefore = CpuClock.threadNanos();
        int started = churn.startThreads(harness, rate);
        churn.alive.acquire(ALIVE_MAX);
        harness.info("threads_started", started);
        harness.truth("churnBurn", churn.burned.sum());
        harness.truth("threads_total", churn.threadsTotal.sum());
        harness.truth("main", CpuClock.threadNanos() - mainBefore);
        harness.truth("process", CpuClock.processNanos() - processBefore);
        harness.finish();
    }

    private int startThreads(Harness harness, int rate) throws InterruptedException {
        long start = System.nanoTime();
        long everyNanos = TimeUnit.SECONDS.toNanos(1) / rate;
        int started = 0;
        while (harness.timeLeft()) {
            alive.acquire();
            new Thread(this::live, "churn-" + ++started).start();
            LockSupport.parkNanos(start + started * everyNanos - System.nanoTime());
        }
        return started;
    }

    private void live() {
        CpuBudget budget = new CpuBudget();
        long before = CpuClock.threadNanos();
        Burn.sink = churnBurn(budget.grant(burnNanos));
        long now = CpuClock.threadNanos();
        burned.add(now - before);
        threadsTotal.add(now);
        alive.release();
    }

    private static long churnBurn(CpuBudget budget) {
        return Burn.until(budget, 1);
    }
}
