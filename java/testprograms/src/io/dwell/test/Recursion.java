package io.dwell.test;

/** Recursion of a known depth with work at the bottom. */
final class Recursion {
    private Recursion() {}

    /** Makes {@code frames} frames of itself, the deepest of which calls {@link Burn#unit}. */
    static long descend(int frames, long x) {
        if (frames <= 1) {
            return Burn.unit(x);
        }
        // Not a tail call: the result is needed here, and so is the frame.
        return descend(frames - 1, x) + 1;
    }

    /** As {@link #descend(int, long)}, but stays at the bottom until the budget is spent. */
    static long descend(int frames, CpuBudget budget, long x) {
        if (frames <= 1) {
            return Burn.until(budget, x);
        }
        return descend(frames - 1, budget, x) + 1;
    }
}
