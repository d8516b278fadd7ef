package io.dwell.demo.server;

import io.dwell.api.Dwell;
import io.dwell.api.Scope;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicLong;

/** Assigns traces and spans, like a tracer: a request is a trace, and its first span. */
final class Tracing {
    private static final long TRACE = ThreadLocalRandom.current().nextLong();
    private static final AtomicLong SPANS = new AtomicLong();
    private static final ThreadLocal<Long> REQUEST = ThreadLocal.withInitial(() -> 0L);

    private Tracing() {}

    /** Opens the scope of a new request on this thread. */
    static Scope request(String name) {
        long span = SPANS.incrementAndGet();
        REQUEST.set(span);
        return Dwell.scope(TRACE, span, span, span, name);
    }

    /** The last request that this thread has begun. */
    static long current() {
        return REQUEST.get();
    }

    /** Opens the scope of a span inside of a request, on any thread. */
    static Scope inner(long request) {
        return Dwell.scope(TRACE, request, SPANS.incrementAndGet(), request, null);
    }
}
