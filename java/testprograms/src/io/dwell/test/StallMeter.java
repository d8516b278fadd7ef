package io.dwell.test;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * A thread that ticks as often as it can wake up and keeps the longest time between two ticks. This
 * is an upper bound of the time that all threads were stopped; it includes noise of the machine.
 */
final class StallMeter implements Runnable {
    private final long tickNanos;
    private final boolean spin;
    private long gapMaxNanos;
    private volatile boolean stopped;

    private StallMeter(long tickNanos, boolean spin) {
        this.tickNanos = tickNanos;
        this.spin = spin;
    }

    /** Starts the thread {@code stall-meter}; a spinning one sees more, and uses a whole core. */
    static StallMeter start(int tickMicros, boolean spin) {
        StallMeter meter = new StallMeter(TimeUnit.MICROSECONDS.toNanos(tickMicros), spin);
        Thread thread = new Thread(meter, "stall-meter");
        thread.setDaemon(true);
        thread.start();
        return meter;
    }

    @Override
    public void run() {
        long last = System.nanoTime();
        while (!stopped) {
            if (!spin) {
                LockSupport.parkNanos(tickNanos);
            }
            long now = System.nanoTime();
            if (now - last >= tickNanos) {
                record(now - last);
            }
            last = now;
        }
    }

    private synchronized void record(long gapNanos) {
        gapMaxNanos = Math.max(gapMaxNanos, gapNanos);
    }

    /** The longest gap since the last call, in microseconds. */
    synchronized long takeMaxMicros() {
        long micros = TimeUnit.NANOSECONDS.toMicros(gapMaxNanos);
        gapMaxNanos = 0;
        return micros;
    }

    void stop() {
        stopped = true;
    }
}
