package io.dwell.test;

import java.util.concurrent.TimeUnit;

/**
 * A native thread that calls Java again and again, and is attached to the JVM only for each call,
 * like callbacks of native libraries. Prints its CPU time.
 */
public final class Attaching {
    /** About 5 microseconds. */
    private static final long CALL_STEPS = 4_000;

    private Attaching() {}

    public static void main(String[] args) {
        Harness harness = new Harness("Attaching", 5, args, "steps");
        int steps = harness.number("steps", 40_000, 0, 100_000_000);
        NativeSupport.attachFor(Attaching.class, TimeUnit.MILLISECONDS.toNanos(200), steps);
        harness.ready();
        long nanos = TimeUnit.SECONDS.toNanos(harness.seconds());
        long[] result = NativeSupport.attachFor(Attaching.class, nanos, steps);
        harness.info("calls", result[0]);
        harness.truth("attaching", result[1]);
        harness.finish();
    }

    /** Called by the native thread. */
    static void call() {
        long x = 1;
        for (long i = 0; i < CALL_STEPS; i++) {
            x = x * 0x9E3779B97F4A7C15L + i;
        }
        Burn.sink = x;
    }
}
