package io.dwell.test;

import io.dwell.api.Dwell;
import io.dwell.api.Scope;

/**
 * Requests with spans inside: for each of these it says how long it took at least, measured inside
 * of its scope, and at most, measured around it.
 */
public final class Spans {
    private static final long TRACE_HI = 0x0af7651916cd43ddL;
    private static final long TRACE_LO = 0x8448eb211c80319cL;
    private static final long ROOT = 0xa0;
    private static final int LONG_ONES = 8;
    private static final int SHORT_ONES = 2_000;

    private final Harness harness;

    private Spans(String[] args) {
        harness = new Harness("Spans", 0, args);
    }

    public static void main(String[] args) throws Exception {
        Spans program = new Spans(args);
        program.harness.ready();
        try (Scope request = Dwell.scope(TRACE_HI, TRACE_LO, ROOT, ROOT, "GET /spans")) {
            for (int i = 1; i <= LONG_ONES; i++) {
                program.span(ROOT + i, 2_000_000L * i);
            }
            for (int i = 1; i <= SHORT_ONES; i++) {
                Dwell.scope(TRACE_HI, TRACE_LO, 0x10000 + i, ROOT, null).close();
            }
            // As a span that began and ended on other threads.
            Dwell.span(TRACE_HI, TRACE_LO, ROOT, 0xb0, "GET /spans", 5_000_000);
            Dwell.span(TRACE_HI, TRACE_LO, ROOT, 0xb1, "GET /spans", 999_999);
        }
        program.harness.finish();
    }

    private void span(long id, long nanos) {
        long before = System.nanoTime();
        long inside;
        try (Scope scope = Dwell.scope(TRACE_HI, TRACE_LO, id, ROOT, null)) {
            long began = System.nanoTime();
            do {
                inside = System.nanoTime() - began;
            } while (inside < nanos);
        }
        long around = System.nanoTime() - before;
        harness.info("span", Long.toHexString(id) + "," + inside + "," + around);
    }
}
