package io.dwell.api;

import java.util.concurrent.atomic.AtomicLong;

/** What can go wrong with scopes. Nothing of it does harm, all of it is counted. */
public enum Trouble {
    /** A scope was closed again; ignored. */
    CLOSED_TWICE,
    /** A scope was closed by another thread than opened it; ignored. */
    CLOSED_ELSEWHERE,
    /** A scope was closed while scopes opened after it were open: those were closed with it. */
    CLOSED_OUT_OF_ORDER,
    /** More than 10,000 different texts of a kind: later ones are {@code (other)}. */
    TEXT_OVERFLOW,
    /** More than 16 labels: later ones are not recorded. */
    TOO_MANY_LABELS,
    /** More than a million threads with scopes at a time: the scope was not recorded. */
    NO_RECORD,
    /** An id that is not hexadecimal, or too long: that part is taken as 0. */
    MALFORMED_ID;

    private final AtomicLong times = new AtomicLong();

    void count() {
        times.incrementAndGet();
    }

    /** How often it has happened in this process, as far as this copy of the API knows. */
    public long times() {
        return times.get();
    }
}
