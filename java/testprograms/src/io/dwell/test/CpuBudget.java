package io.dwell.test;

import java.util.function.LongSupplier;

/**
 * Detects when the current thread has used a given amount of CPU time.
 *
 * <p>Reading a thread's CPU clock is a system call, so {@link #spent} avoids it. A thread cannot
 * use more CPU time than wall time. So the clock is not read before the remaining time has passed.
 * Must not be used by two threads.
 */
public final class CpuBudget {
    private final LongSupplier cpuClock;
    private long cpuDeadline;
    private long wallCheck;

    /** A budget of the current thread's own CPU clock. */
    public CpuBudget() {
        this(CpuClock::threadNanos);
    }

    /** A budget of another clock that is never faster than wall time. */
    public CpuBudget(LongSupplier cpuClock) {
        this.cpuClock = cpuClock;
    }

    /** Grants the given CPU time from now on. */
    public CpuBudget grant(long nanos) {
        return until(cpuClock.getAsLong() + nanos);
    }

    /** Ends the budget when the clock reaches the given value. */
    public CpuBudget until(long cpuNanos) {
        cpuDeadline = cpuNanos;
        spent(System.nanoTime());
        return this;
    }

    /** True once the granted time is used. Intended to be called every few microseconds. */
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
