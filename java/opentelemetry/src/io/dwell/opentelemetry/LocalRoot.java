package io.dwell.opentelemetry;

import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.sdk.trace.ReadableSpan;

/** The first span of a trace in this process: the request. */
final class LocalRoot {
    private static final AttributeKey<String> ROUTE = AttributeKey.stringKey("http.route");
    private static final AttributeKey<String> METHOD =
            AttributeKey.stringKey("http.request.method");
    /** The attribute before the semantic conventions were stable. */
    private static final AttributeKey<String> OLD_METHOD = AttributeKey.stringKey("http.method");

    final ReadableSpan span;
    final long spanId;
    private volatile String endpoint;

    LocalRoot(ReadableSpan span) {
        this.span = span;
        this.spanId = Ids.parse(span.getSpanContext().getSpanId(), 0);
    }

    /** {@code GET /users/{id}}, or null while the route is not known. */
    String endpoint() {
        String known = endpoint;
        if (known != null) {
            return known;
        }
        String route = span.getAttribute(ROUTE);
        if (route == null) {
            return null;
        }
        String method = span.getAttribute(METHOD);
        if (method == null) {
            method = span.getAttribute(OLD_METHOD);
        }
        known = method == null ? route : method + " " + route;
        endpoint = known;
        return known;
    }

    /** The endpoint at the end: for requests without a route, such as messages, the span's name. */
    String lastEndpoint() {
        String known = endpoint();
        SpanKind kind = span.getKind();
        boolean served = kind == SpanKind.SERVER || kind == SpanKind.CONSUMER;
        return known == null && served ? span.getName() : known;
    }
}
