package io.dwell.chaos;

import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A program that stresses a profiler in rounds, each of which proves that its results are right.
 */
abstract class Antagonist {
    final String name;
    final AtomicLong rounds = new AtomicLong();
    /** Rounds that ended early for lack of memory and prove nothing. */
    final AtomicLong disturbed = new AtomicLong();
    /** Results that were compared with the expected ones. */
    final AtomicLong checks = new AtomicLong();

    Antagonist(String name) {
        this.name = name;
    }

    /** Whether this JVM supports it. */
    boolean possible() {
        return true;
    }

    /** Number of threads that run rounds in parallel. */
    int threads() {
        return 1;
    }

    /** Longest pause between two rounds. */
    int pauseMs() {
        return 10;
    }

    void begin() throws Exception {}

    abstract void round(Random random) throws Throwable;

    /** Called after the last round, for checks that are possible only at the end. */
    void end() throws Exception {}

    private volatile boolean helperLacked;

    /** Wraps the work of a round's own thread: lack of memory there disturbs the whole round. */
    final Runnable helper(Runnable work) {
        return () -> {
            try {
                work.run();
            } catch (OutOfMemoryError e) {
                helperLacked = true;
            }
        };
    }

    /** Must be called when all helpers have ended, before their results are used. */
    final void helpersEnded() {
        if (helperLacked) {
            helperLacked = false;
            throw new OutOfMemoryError("in a helper");
        }
    }

    final void same(long expected, long found) {
        checks.incrementAndGet();
        if (expected != found) {
            throw new Wrong(name + ": " + found + " instead of " + expected);
        }
    }

    final void sure(boolean right, String what) {
        checks.incrementAndGet();
        if (!right) {
            throw new Wrong(name + ": " + what);
        }
    }

    /** A result that correct execution cannot give. */
    static final class Wrong extends Error {
        private static final long serialVersionUID = 1;

        Wrong(String message) {
            super(message);
        }
    }
}
