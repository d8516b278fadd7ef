package io.dwell.api;

import java.util.concurrent.atomic.AtomicLong;

/** Kinds of wrong use of scopes. Each is harmless and counted. */
public enum Trouble {
    /** A scope was closed twice; ignored. */
    CLOSED_TWICE,
    /** A scope was closed by another thread than the one that opened it; ignored. */
    CLOSED_ELSEWHERE,
    /** A scope was closed while later ones were open; those were closed as well. */
    CLOSED_OUT_OF_ORDER,
    /** More than 10,000 different texts of a kind: later ones are {@code (other)}. */
    TEXT_OVERFLOW,
    /** More than 16 labels: later ones are not recorded. */
    TOO_MANY_LABELS,
    /** More than a million threads with scopes at a time: the scope was not recorded. */
    NO_RECORD,
    /** An id that is not hexadecimal, or too long: that part is 0. */
    MALFORMED_ID;

    private final AtomicLong times = new AtomicLong();

    void count() {
        times.incrementAndGet();
    }

    /** How often it has happened in this process, as counted by this copy of the API. */
    public long times() {
        return times.get();
    }
}
