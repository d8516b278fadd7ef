package io.dwell.test;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/** Threads that wait for each other: on a monitor, on a lock of java.util.concurrent, or both. */
public final class Contended {
    private final Harness harness;
    private final TruthTable truths = new TruthTable();
    private final LongAdder waitedForMonitor = new LongAdder();
    private final LongAdder waitedForLock = new LongAdder();
    private final Object monitor = new Object();
    private final ReentrantLock lock = new ReentrantLock();
    private final long holdNanos;
    private final long restNanos;
    /** Bytes that each turn allocates. */
    private final int bytes;
    /** The bytes are stored here, so that they are not optimised away. */
    private volatile Object kept;

    private Contended(String[] args) {
        harness = new Harness("Contended", 5, args, "threads", "hold_us", "rest_us", "kind",
                "bytes");
        holdNanos = TimeUnit.MICROSECONDS.toNanos(harness.number("hold_us", 500, 1, 1_000_000));
        restNanos = TimeUnit.MICROSECONDS.toNanos(harness.number("rest_us", 100, 0, 1_000_000));
        bytes = harness.number("bytes", 0, 0, 1 << 20);
    }

    public static void main(String[] args) throws InterruptedException {
        Contended program = new Contended(args);
        int threads = program.harness.number("threads", 4, 1, 256);
        String kind = program.harness.choice("kind", "both", "monitor", "lock");
        Burn.warmUp();
        program.harness.ready();
        Workers.start("contender", threads, number -> program.run(kind)).join();
        program.harness.info("wall_waited_monitor_ns", program.waitedForMonitor.sum());
        program.harness.info("wall_waited_lock_ns", program.waitedForLock.sum());
        program.truths.print(program.harness);
        program.harness.finish();
    }

    private void run(String kind) {
        CpuBudget budget = new CpuBudget();
        while (harness.timeLeft()) {
            if (bytes > 0) {
                kept = new byte[bytes];
            }
            if (!kind.equals("lock")) {
                enterMonitor(budget);
                rest();
            }
            if (!kind.equals("monitor")) {
                takeLock(budget);
                rest();
            }
        }
    }

    private void enterMonitor(CpuBudget budget) {
        long asked = System.nanoTime();
        synchronized (monitor) {
            waitedForMonitor.add(System.nanoTime() - asked);
            truths.measure("burnInMonitor", budget.grant(holdNanos), Contended::burnInMonitor);
        }
    }

    private void takeLock(CpuBudget budget) {
        long asked = System.nanoTime();
        lock.lock();
        try {
            waitedForLock.add(System.nanoTime() - asked);
            truths.measure("burnInLock", budget.grant(holdNanos), Contended::burnInLock);
        } finally {
            lock.unlock();
        }
    }

    private void rest() {
        if (restNanos > 0) {
            LockSupport.parkNanos(restNanos);
        }
    }

    private static long burnInMonitor(CpuBudget budget) {
        return Burn.until(budget, 1);
    }

    private static long burnInLock(CpuBudget budget) {
        return Burn.until(budget, 2);
    }
}
