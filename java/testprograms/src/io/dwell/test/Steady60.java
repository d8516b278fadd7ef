package io.dwell.test;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The steady state for overhead measurements: threads that are busy for a share of the time, below
 * 60 frames of six methods that call each other in turn. Counts the completed units of work, so
 * that two runs can be compared.
 */
public final class Steady60 {
    private static final long SLICE_NS = TimeUnit.MILLISECONDS.toNanos(2);
    private static final int UNITS_PER_DESCENT = 20;

    private final Harness harness;
    private final TruthTable truths = new TruthTable();
    private final int frames;
    private final int busyPercent;
    private long unitsTotal;
    private long largestGapNs;

    private Steady60(String[] args) {
        harness = new Harness("Steady60", 10, args, "threads", "busy", "frames");
        frames = harness.number("frames", 60, 6, 1000);
        busyPercent = harness.number("busy", 100, 1, 100);
    }

    public static void main(String[] args) throws InterruptedException, IOException {
        Steady60 program = new Steady60(args);
        int threads = program.harness.number("threads", 1, 1, 256);
        Burn.warmUp();
        Burn.sink = program.steadyRoot(new CpuBudget().grant(200_000_000));
        program.unitsTotal = 0;
        program.harness.ready();
        long faults = majorFaults();
        long began = System.nanoTime();
        Workers.start("steady", threads, number -> program.run()).join();
        program.harness.info("elapsed_ns", System.nanoTime() - began);
        program.harness.info("major_faults", majorFaults() - faults);
        program.harness.info("largest_gap_ns", program.largestGapNs);
        program.harness.info("units", program.unitsTotal);
        program.truths.print(program.harness);
        program.harness.finish();
    }

    /** Number of major page faults of the process, which waited for a disk. */
    private static long majorFaults() throws IOException {
        byte[] stat = Files.readAllBytes(Paths.get("/proc/self/stat"));
        String text = new String(stat, StandardCharsets.US_ASCII);
        return Long.parseLong(text.substring(text.lastIndexOf(')') + 2).split(" ")[9]);
    }

    private void run() {
        CpuBudget budget = new CpuBudget();
        long units = 0;
        long cpu = 0;
        long gap = 0;
        long start = System.nanoTime();
        long before = CpuClock.threadNanos();
        while (harness.timeLeft()) {
            units += steadyRoot(budget.grant(SLICE_NS));
            long after = CpuClock.threadNanos();
            cpu += after - before;
            rest(System.nanoTime() - start);
            long next = System.nanoTime();
            long nextBefore = CpuClock.threadNanos();
            gap = Math.max(gap, (next - start) - (nextBefore - before));
            start = next;
            before = nextBefore;
        }
        truths.add("steadyRoot", cpu);
        add(units, gap);
    }

    private void rest(long busyNanos) {
        if (busyPercent < 100) {
            LockSupport.parkNanos(busyNanos * (100 - busyPercent) / busyPercent);
        }
    }

    /**
     * The gap is the longest time of a thread without a processor, for any reason, during one slice
     * of work. The slices cover the whole run of the thread.
     */
    private synchronized void add(long units, long gap) {
        unitsTotal += units;
        largestGapNs = Math.max(largestGapNs, gap);
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

    // Each of them is a frame; the addition keeps it from being a tail call.
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
