package io.dwell.chaos;

import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;

/** Makes life hard for a profiler, in rounds, each of which proves that its work was right. */
abstract class Antagonist {
    final String name;
    final AtomicLong rounds = new AtomicLong();
    /** Rounds that ended early because memory was short, which proves nothing either way. */
    final AtomicLong disturbed = new AtomicLong();
    /** Results that were compared with what they must be. */
    final AtomicLong checks = new AtomicLong();

    Antagonist(String name) {
        this.name = name;
    }

    /** Whether this JVM can do it. */
    boolean possible() {
        return true;
    }

    /** Threads that do rounds at the same time. */
    int threads() {
        return 1;
    }

    /** Longest pause between two rounds. */
    int pauseMs() {
        return 10;
    }

    void begin() throws Exception {}

    abstract void round(Random random) throws Throwable;

    /** After the last round; what can be told only at the end is checked here. */
    void end() throws Exception {}

    private volatile boolean helperLacked;

    /** What a thread of the round's own does: lack of memory there disturbs the whole round. */
    final Runnable helper(Runnable work) {
        return () -> {
            try {
                work.run();
            } catch (OutOfMemoryError e) {
                helperLacked = true;
            }
        };
    }

    /** To be called when all helpers have ended, before their results are used. */
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
