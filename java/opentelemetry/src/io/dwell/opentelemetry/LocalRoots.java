package io.dwell.opentelemetry;

import io.opentelemetry.api.trace.Span;
import java.util.concurrent.ConcurrentHashMap;

/** The local root of each span that is being recorded. */
final class LocalRoots {
    private static final ConcurrentHashMap<Span, LocalRoot> OF_SPAN = new ConcurrentHashMap<>();

    private LocalRoots() {}

    static void put(Span span, LocalRoot root) {
        OF_SPAN.put(span, root);
    }

    /** Null if the span has ended, or is not recorded. */
    static LocalRoot get(Span span) {
        return OF_SPAN.get(span);
    }

    static LocalRoot remove(Span span) {
        return OF_SPAN.remove(span);
    }
}
