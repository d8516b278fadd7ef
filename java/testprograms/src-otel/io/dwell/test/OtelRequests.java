package io.dwell.test;

import io.dwell.opentelemetry.DwellContextStorage;
import io.dwell.opentelemetry.DwellSpanProcessor;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.sdk.trace.IdGenerator;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * Requests traced with OpenTelemetry's SDK, whose ids are made here, so that the name of a method
 * {@code burn...} tells which context a sample has to carry.
 */
public final class OtelRequests {
    private static final String TRACE = "0af7651916cd43dd8448eb211c80319c";
    private static final String REMOTE_TRACE = "1af7651916cd43dd8448eb211c80319c";
    private static final ThreadLocal<Integer> NEXT_SPAN = ThreadLocal.withInitial(() -> 0);

    private final Harness harness;
    private final Tracer tracer;
    private long value = 1;

    private OtelRequests(Harness harness, Tracer tracer) {
        this.harness = harness;
        this.tracer = tracer;
    }

    public static void main(String[] args) throws Exception {
        Harness harness = new Harness("OtelRequests", 3, args);
        DwellContextStorage.install();
        Burn.warmUp();
        try (SdkTracerProvider provider = SdkTracerProvider.builder()
                .setIdGenerator(new KnownIds())
                .addSpanProcessor(new DwellSpanProcessor())
                .build()) {
            OtelRequests program = new OtelRequests(harness, provider.get("test"));
            ExecutorService pool =
                    Executors.newFixedThreadPool(1, task -> new Thread(task, "pool"));
            harness.ready();
            int rounds = 0;
            while (harness.timeLeft()) {
                program.request(pool);
                program.burnNone();
                program.remote();
                program.message();
                rounds++;
            }
            harness.info("rounds", rounds);
            pool.shutdown();
            pool.awaitTermination(1, TimeUnit.MINUTES);
        }
        harness.finish();
    }

    /** The route is only known at the end. */
    private void request(ExecutorService pool) throws Exception {
        Span root = span("GET", SpanKind.SERVER, 0xa1, Context.current());
        root.setAttribute("http.request.method", "GET");
        try (Scope scope = root.makeCurrent()) {
            burnInRoot();
            Span child = span("child", SpanKind.INTERNAL, 0xa2, Context.current());
            try (Scope inner = child.makeCurrent()) {
                burnInChild();
                try (Scope none = Context.root().makeCurrent()) {
                    burnNone();
                }
                pool.submit(Context.current().wrap((Runnable) this::burnInTask)).get();
                pool.submit((Runnable) this::burnNone).get();
                Span grandchild = span("grandchild", SpanKind.CLIENT, 0xa3, Context.current());
                Scope innermost = grandchild.makeCurrent();
                burnInGrandchild();
                innermost.close();
                innermost.close();
                grandchild.end();
                burnInChild();
            } finally {
                child.end();
            }
            burnInRoot();
            root.setAttribute("http.route", "/late/{id}");
        } finally {
            root.end();
        }
    }

    /** A request from elsewhere, whose route is known from the beginning. */
    private void remote() {
        SpanContext caller = SpanContext.createFromRemoteParent(REMOTE_TRACE, "00000000000000ff",
                TraceFlags.getSampled(), TraceState.getDefault());
        NEXT_SPAN.set(0xb1);
        Span root = tracer.spanBuilder("POST")
                .setSpanKind(SpanKind.SERVER)
                .setParent(Context.root().with(Span.wrap(caller)))
                .setAttribute("http.route", "/early")
                .setAttribute("http.method", "POST")
                .startSpan();
        try (Scope scope = root.makeCurrent()) {
            burnInRemote();
        } finally {
            root.end();
        }
    }

    /** Not HTTP. */
    private void message() {
        Span root = span("orders process", SpanKind.CONSUMER, 0xc1, Context.root());
        try (Scope scope = root.makeCurrent()) {
            burnInMessage();
        } finally {
            root.end();
        }
    }

    private Span span(String name, SpanKind kind, int id, Context parent) {
        NEXT_SPAN.set(id);
        return tracer.spanBuilder(name).setSpanKind(kind).setParent(parent).startSpan();
    }

    private static final class KnownIds implements IdGenerator {
        @Override
        public String generateSpanId() {
            return String.format("%016x", NEXT_SPAN.get());
        }

        @Override
        public String generateTraceId() {
            return TRACE;
        }
    }

    private void burn() {
        for (int i = 0; i < 60; i++) {
            value = Burn.unit(value);
        }
        Burn.sink = value;
    }

    private void burnNone() {
        burn();
    }

    private void burnInRoot() {
        burn();
    }

    private void burnInChild() {
        burn();
    }

    private void burnInGrandchild() {
        burn();
    }

    private void burnInTask() {
        burn();
    }

    private void burnInRemote() {
        burn();
    }

    private void burnInMessage() {
        burn();
    }
}
