package io.dwell.test;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Two methods that alternate with an exact period, on the thread's CPU clock or on the time of day:
 * a sampler with a fixed interval that divides the period sees only one of them.
 */
public final class PhasePeriod {
    private final Harness harness;
    private final TruthTable truths = new TruthTable();
    private final LongSupplier clock;
    private final long periodNanos;
    private final int sharePercent;

    private PhasePeriod(String[] args) {
        harness = new Harness("PhasePeriod", 6, args, "period_us", "share", "clock");
        periodNanos = TimeUnit.MICROSECONDS.toNanos(
                harness.number("period_us", 10_000, 100, 60_000_000));
        sharePercent = harness.number("share", 30, 1, 99);
        boolean wall = harness.choice("clock", "cpu", "wall").equals("wall");
        clock = wall ? System::nanoTime : CpuClock::threadNanos;
    }

    public static void main(String[] args) throws InterruptedException {
        PhasePeriod program = new PhasePeriod(args);
        Burn.warmUp();
        program.harness.ready();
        Workers.start("phases", 1, number -> program.run()).join();
        program.truths.print(program.harness);
        program.harness.finish();
    }

    private void run() {
        CpuBudget budget = new CpuBudget(clock);
        long start = clock.getAsLong();
        while (harness.timeLeft()) {
            truths.measure("phase_a", budget.until(start + periodNanos * sharePercent / 100),
                    PhasePeriod::phase_a);
            start += periodNanos;
            truths.measure("phase_b", budget.until(start), PhasePeriod::phase_b);
        }
    }

    private static long phase_a(CpuBudget budget) {
        return Burn.until(budget, 1);
    }

    private static long phase_b(CpuBudget budget) {
        return Burn.until(budget, 2);
    }
}
