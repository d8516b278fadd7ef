package io.dwell.test;

import java.util.concurrent.TimeUnit;

/** Plain arithmetic that cannot be optimised away, for programs that measure places in code. */
public final class Burn {
    /** Results are stored here, so that no compiler can prove them unused. */
    public static volatile long sink;

    private static final int UNIT_STEPS = 10_000;

    private Burn() {}

    /** About ten to twenty microseconds of work once compiled. */
    public static long unit(long x) {
        long value = x;
        for (int i = 0; i < UNIT_STEPS; i++) {
            value = (value ^ i) * 0x9E3779B97F4A7C15L;
        }
        return value;
    }

    /** Burns until the budget is spent. */
    public static long until(CpuBudget budget, long x) {
        long value = x;
        do {
            value = unit(value);
        } while (!budget.spent());
        return value;
    }

    /** Brings {@link #unit} to the top compiler before the measurement. */
    public static void warmUp() {
        sink = until(new CpuBudget().grant(TimeUnit.MILLISECONDS.toNanos(200)), 1);
    }
}
