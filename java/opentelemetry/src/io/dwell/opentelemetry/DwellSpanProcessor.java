package io.dwell.opentelemetry;

import io.dwell.api.Dwell;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.context.Context;
import io.opentelemetry.sdk.trace.ReadWriteSpan;
import io.opentelemetry.sdk.trace.ReadableSpan;
import io.opentelemetry.sdk.trace.SpanProcessor;

/**
 * Keeps the local root of each span. Reports a request's endpoint to dwell when the request ends,
 * and the beginning and end of spans inside of it. Add it to the tracer provider, in addition to
 * {@link DwellContextStorage}:
 *
 * <pre>{@code
 * DwellContextStorage.install(); // before the first use of OpenTelemetry's Context
 * SdkTracerProvider.builder().addSpanProcessor(new DwellSpanProcessor())
 * }</pre>
 */
public final class DwellSpanProcessor implements SpanProcessor {
    @Override
    public void onStart(Context parentContext, ReadWriteSpan span) {
        Span parent = Span.fromContext(parentContext);
        LocalRoot root = null;
        if (parent.getSpanContext().isValid() && !parent.getSpanContext().isRemote()) {
            root = LocalRoots.get(parent);
        }
        LocalRoots.put(span, root != null ? root : new LocalRoot(span));
    }

    @Override
    public boolean isStartRequired() {
        return true;
    }

    @Override
    public void onEnd(ReadableSpan span) {
        if (!(span instanceof Span)) {
            return;
        }
        LocalRoot root = LocalRoots.remove((Span) span);
        if (root == null || !Dwell.isActive()) {
            return;
        }
        long nanos = span.getLatencyNanos();
        if (root.span == span) {
            String endpoint = root.lastEndpoint();
            if (endpoint != null) {
                Dwell.endpoint(root.spanId, endpoint);
            }
            String traceId = span.getSpanContext().getTraceId();
            Dwell.request(Ids.parse(traceId, 0), Ids.parse(traceId, 16), root.spanId, endpoint,
                    nanos);
        } else if (nanos >= Dwell.SPAN_MIN_NANOS) {
            String traceId = span.getSpanContext().getTraceId();
            Dwell.span(Ids.parse(traceId, 0), Ids.parse(traceId, 16), root.spanId,
                    Ids.parse(span.getSpanContext().getSpanId(), 0), root.endpoint(), nanos);
        }
    }

    @Override
    public boolean isEndRequired() {
        return true;
    }
}
