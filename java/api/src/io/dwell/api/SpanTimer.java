package io.dwell.api;

/**
 * Selects the spans inside of requests that are timed: usually all. If many follow each other
 * within a tenth of a millisecond, only a random part is timed from the {@value #RUN}th on, so that
 * reading the clock costs little. Used by one thread.
 */
final class SpanTimer {
    private static final long GAP_MIN_NANOS = 100_000;
    private static final int RUN = 64;
    /** In a long run, one in this number of spans is timed. */
    private static final int STRIDE = 8;

    private long lastNanos;
    /** Number of timed spans in the present run. */
    private int run;
    /** Number of spans until one is timed. */
    private int rest;
    private int random = (int) System.nanoTime() | 1;

    /** Whether the span that begins now is timed. */
    boolean isNext() {
        if (rest > 0) {
            rest--;
            return false;
        }
        return true;
    }

    /** Ends a span that was timed. */
    void ended(long nanos) {
        boolean isNear = nanos - lastNanos < GAP_MIN_NANOS;
        lastNanos = nanos;
        run = isNear ? Math.min(run + 1, RUN) : 0;
        if (run == RUN) {
            random ^= random << 13;
            random ^= random >>> 17;
            random ^= random << 5;
            rest = (int) (((random & 0xffff_ffffL) * (2 * STRIDE - 1)) >>> 32);
        }
    }
}
