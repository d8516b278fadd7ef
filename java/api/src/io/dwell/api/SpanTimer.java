package io.dwell.api;

/**
 * Which spans inside of requests are timed: all, but of many that follow each other within a tenth of
 * a millisecond, from the {@value #RUN}th on, one in so many at random, so that reading the clock
 * costs little. Used by one thread.
 */
final class SpanTimer {
    private static final long GAP_MIN_NANOS = 100_000;
    private static final int RUN = 64;
    /** Of a long run one in so many is timed. */
    private static final int STRIDE = 8;

    private long lastNanos;
    /** Timed spans that followed each other so. */
    private int run;
    /** Spans to go until one is timed. */
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

    /** A span that was timed has ended. */
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
