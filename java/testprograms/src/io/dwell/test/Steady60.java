package io.dwell.test;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The steady state for overhead measurements: threads that are busy for a share of the time,
 * below 60 frames of six methods that call each other in turn. Counts the units of work it got
 * done, so that two runs can be compared.
 */
public final class Steady60 {
    private static final long SLICE_NS = TimeUnit.MILLISECONDS.toNanos(2);
    private static final int UNITS_PER_DESCENT = 20;

    private final Harness harness;
    private final TruthTable truths = new TruthTable();
    private final int frames;
    private final int busyPercent;
    private long unitsTotal;

    private Steady60(String[] args) {
        harness = new Harness("Steady60", 10, args, "threads", "busy", "frames");
        frames = harness.number("frames", 60, 6, 1000);
        busyPercent = harness.number("busy", 100, 1, 100);
    }

    public static void main(String[] args) throws InterruptedException {
        Steady60 program = new Steady60(args);
        int threads = program.harness.number("threads", 1, 1, 256);
        Burn.warmUp();
        Burn.sink = program.steadyRoot(new CpuBudget().grant(200_000_000));
        program.unitsTotal = 0;
        program.harness.ready();
        Workers.start("steady", threads, number -> program.run()).join();
        program.harness.info("units", program.unitsTotal);
        program.truths.print(program.harness);
        program.harness.finish();
    }

    private void run() {
        CpuBudget budget = new CpuBudget();
        long units = 0;
        while (harness.timeLeft()) {
            long start = System.nanoTime();
            long before = CpuClock.threadNanos();
            units += steadyRoot(budget.grant(SLICE_NS));
            truths.add("steadyRoot", CpuClock.threadNanos() - before);
            rest(System.nanoTime() - start);
        }
        addUnits(units);
    }

    private void rest(long busyNanos) {
        if (busyPercent < 100) {
            LockSupport.parkNanos(busyNanos * (100 - busyPercent) / busyPercent);
        }
    }

    private synchronized void addUnits(long units) {
        unitsTotal += units;
    }

    /** Returns the number of units done. */
    private long steadyRoot(CpuBudget budget) {
        long units = 0;
        do {
            Burn.sink = receive(frames, 1);
            units += UNITS_PER_DESCENT;
        } while (!budget.spent());
        return units;
    }

    // Each of them is a frame; the additions keep them from being anything less.
    private static long receive(int left, long x) {
        return left <= 1 ? bottom(x) : route(left - 1, x) + 1;
    }

    private static long route(int left, long x) {
        return left <= 1 ? bottom(x) : check(left - 1, x) + 2;
    }

    private static long check(int left, long x) {
        return left <= 1 ? bottom(x) : load(left - 1, x) + 3;
    }

    private static long load(int left, long x) {
        return left <= 1 ? bottom(x) : decide(left - 1, x) + 4;
    }

    private static long decide(int left, long x) {
        return left <= 1 ? bottom(x) : delegate(left - 1, x) + 5;
    }

    private static long delegate(int left, long x) {
        return left <= 1 ? bottom(x) : receive(left - 1, x) + 6;
    }

    private static long bottom(long x) {
        long value = x;
        for (int i = 0; i < UNITS_PER_DESCENT; i++) {
            value = Burn.unit(value);
        }
        return value;
    }
}
