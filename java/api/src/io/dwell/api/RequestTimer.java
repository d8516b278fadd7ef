package io.dwell.api;

/**
 * Measures the durations of a thread's requests. If requests follow each other within a tenth of a
 * millisecond, only a random part of them is timed. A timed request represents those before it, so
 * that their number is right and each has the same chance. Used by one thread.
 */
final class RequestTimer {
    private static final long GAP_MIN_NANOS = 100_000;
    private static final int STRIDE_MAX = 1 << 10;

    private boolean running;
    private long beganNanos;
    private long lastNanos;
    /** Number of requests until one is timed, and the number that it then represents. */
    private int rest;
    private int requests = 1;
    /** One in this number of requests is timed. */
    private int stride = 1;
    private int random = (int) System.nanoTime() | 1;

    void begin() {
        if (rest > 0) {
            rest--;
            return;
        }
        running = true;
        beganNanos = System.nanoTime();
    }

    boolean isRunning() {
        return running;
    }

    /** Ends the request. Returns its duration. */
    long end() {
        running = false;
        long now = System.nanoTime();
        adapt(now - lastNanos);
        lastNanos = now;
        return now - beganNanos;
    }

    /** Number of requests that the ended one represents. Must be called once for each. */
    int requests() {
        int stoodFor = requests;
        rest = stride == 1 ? 0 : below(2 * stride - 1);
        requests = rest + 1;
        return stoodFor;
    }

    private void adapt(long sinceNanos) {
        if (sinceNanos < GAP_MIN_NANOS) {
            stride = Math.min(2 * stride, STRIDE_MAX);
        } else if (sinceNanos > 4 * GAP_MIN_NANOS && stride > 1) {
            stride /= 2;
        }
    }

    /** A random number from 0 up to, but not including, the bound; xorshift. */
    private int below(int bound) {
        random ^= random << 13;
        random ^= random >>> 17;
        random ^= random << 5;
        return (int) (((random & 0xffff_ffffL) * bound) >>> 32);
    }
}
