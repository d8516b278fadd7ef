package io.dwell.test;

import java.util.function.LongSupplier;

/**
 * Tells when the current thread has consumed a given amount of CPU time.
 *
 * <p>Reading a thread's CPU clock is a system call, so {@link #spent} avoids it: a thread cannot
 * consume more CPU time than time passes, hence the clock need not be read before the time that
 * was left has passed. Not for use by two threads.
 */
public final class CpuBudget {
    private final LongSupplier cpuClock;
    private long cpuDeadline;
    private long wallCheck;

    /** A budget of the current thread's own CPU clock. */
    public CpuBudget() {
        this(CpuClock::threadNanos);
    }

    /** A budget of another clock that never runs faster than the time. */
    public CpuBudget(LongSupplier cpuClock) {
        this.cpuClock = cpuClock;
    }

    /** Grants the given CPU time from now on. */
    public CpuBudget grant(long nanos) {
        return until(cpuClock.getAsLong() + nanos);
    }

    /** Ends the budget when the clock shows the given value. */
    public CpuBudget until(long cpuNanos) {
        cpuDeadline = cpuNanos;
        spent(System.nanoTime());
        return this;
    }

    /** True once the time granted is consumed. Meant to be called every few microseconds. */
    public boolean spent() {
        long now = System.nanoTime();
        return now - wallCheck >= 0 && spent(now);
    }

    private boolean spent(long now) {
        long left = cpuDeadline - cpuClock.getAsLong();
        wallCheck = now + left;
        return left <= 0;
    }
}
