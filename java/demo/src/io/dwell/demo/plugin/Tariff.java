package io.dwell.demo.plugin;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** Rates, read when the class is first used, which takes some time. */
public final class Tariff {
    private static final int[] RATES = read();

    private Tariff() {}

    /** The rate of a zone. */
    public static int rate(Integer zone) {
        return RATES[zone % RATES.length];
    }

    private static int[] read() {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(3));
        return new int[] {7, 19};
    }
}
