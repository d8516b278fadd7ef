package io.dwell.api;

/** Offsets in a record, in words of 8 bytes, as in the agent's {@code crates/context}. */
final class Layout {
    static final int RECORD = 32;
    /** Sequence number; its lowest bit selects the valid copy. */
    static final int SEQUENCE = 1;
    static final int COPIES = 4;
    static final int COPY = 14;

    // In a copy.
    static final int TRACE_HI = 0;
    static final int TRACE_LO = 1;
    static final int SPAN = 2;
    static final int LOCAL_ROOT = 3;
    /** Endpoint (32 bits), labels in use (16 bits), and in the sign whether there is a context. */
    static final int STATE = 4;
    /** Two labels per word, the first in the lower half. */
    static final int LABELS = 5;
    static final int LABELS_MAX = 16;

    static final long ACTIVE = Long.MIN_VALUE;
    static final long LABELS_USED = 0xffff_0000_0000L;
    static final long LOW = 0xffff_ffffL;

    private Layout() {}
}
