package io.dwell.opentelemetry;

import io.dwell.api.Dwell;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.ContextStorage;
import io.opentelemetry.context.Scope;

/**
 * Reports the current span to dwell whenever OpenTelemetry's context changes: by {@code
 * span.makeCurrent()}, by instrumentation, or by tasks wrapped with a context.
 */
public final class DwellContextStorage implements ContextStorage {
    private final ContextStorage inner;

    private DwellContextStorage(ContextStorage inner) {
        this.inner = inner;
    }

    /** Must be called once, before anything uses OpenTelemetry's {@link Context}. */
    public static void install() {
        ContextStorage.addWrapper(DwellContextStorage::new);
    }

    @Override
    public Scope attach(Context toAttach) {
        Context before = inner.current();
        Scope scope = inner.attach(toAttach);
        if (toAttach == null || toAttach == before || !Dwell.isActive()) {
            return scope;
        }
        Span span = Span.fromContext(toAttach);
        if (before != null && Span.fromContext(before) == span) {
            return scope; // only something else than the span has changed
        }
        return new Attached(scope, toAttach, open(span));
    }

    @Override
    public Context current() {
        return inner.current();
    }

    @Override
    public Context root() {
        return inner.root();
    }

    private static io.dwell.api.Scope open(Span span) {
        SpanContext ids = span.getSpanContext();
        if (!ids.isValid()) {
            return Dwell.attach(0, 0, 0, 0, null);
        }
        String traceId = ids.getTraceId();
        LocalRoot root = LocalRoots.get(span);
        return Dwell.attach(Ids.parse(traceId, 0), Ids.parse(traceId, 16),
                Ids.parse(ids.getSpanId(), 0), root == null ? 0 : root.spanId,
                root == null ? null : root.endpoint());
    }

    /** Ends both scopes. The inner storage decides whether a wrong order is accepted. */
    private final class Attached implements Scope {
        private final Scope scope;
        private final Context attached;
        private final io.dwell.api.Scope told;
        private boolean closed;

        Attached(Scope scope, Context attached, io.dwell.api.Scope told) {
            this.scope = scope;
            this.attached = attached;
            this.told = told;
        }

        @Override
        public void close() {
            scope.close();
            if (!closed && inner.current() != attached) {
                closed = true;
                told.close();
            }
        }
    }
}
