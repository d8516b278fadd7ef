package io.dwell.api;

import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;

/**
 * Sets the context of the current thread, which dwell adds to its samples.
 *
 * <pre>{@code
 * try (Scope scope = Dwell.scope(traceId, spanId, "GET /users/{id}")) {
 *     handle(request);
 * }
 * }</pre>
 *
 * <p>The context belongs to the logical thread: a virtual thread keeps it when it changes its
 * carrier. Other threads do not inherit it, unless work is passed to them with {@link #wrap}.
 *
 * <p>The outermost scope of a thread is a request if its span is the local root. The time that it
 * was open is the duration of the request.
 *
 * <p>A scope of another span than the local root is a span inside of the request. Its beginning and
 * end are recorded if it was open for {@link #SPAN_MIN_NANOS} or longer.
 *
 * <p>Without an agent, these methods have no effect. If an agent is attached later, scopes opened
 * from then on are recorded, but not those that are already open.
 */
public final class Dwell {
    /** Shorter spans inside of requests are not recorded. */
    public static final long SPAN_MIN_NANOS = 1_000_000;

    static final Texts ENDPOINTS = new Texts(0);
    private static final ConcurrentHashMap<String, Label> LABELS = new ConcurrentHashMap<>();

    private Dwell() {}

    /** Whether an agent is present. */
    public static boolean isActive() {
        return Native.records != null;
    }

    /**
     * Opens a scope. The local root is that of the enclosing scope if that one has the same trace,
     * else the span itself.
     *
     * @param traceId at most 32 hexadecimal digits, or null
     * @param spanId at most 16 hexadecimal digits, or null
     * @param endpoint the kind of request, as a pattern: {@code GET /users/{id}}; or null for that
     *        of the enclosing scope, if that has the same local root
     */
    public static Scope scope(String traceId, String spanId, String endpoint) {
        if (Native.records == null) {
            return Scope.NONE;
        }
        Context context = Context.current();
        Hex ids = context.ids();
        ids.read(traceId, spanId);
        return context.open(ids.traceHi, ids.traceLo, ids.span,
                context.localRootFor(ids.traceHi, ids.traceLo, ids.span),
                context.number(endpoint));
    }

    /** The same with numbers: the halves of the trace id, the span, and the local root's span. */
    public static Scope scope(long traceHi, long traceLo, long spanId, long localRootSpanId,
            String endpoint) {
        if (Native.records == null) {
            return Scope.NONE;
        }
        Context context = Context.current();
        return context.open(traceHi, traceLo, spanId, localRootSpanId, context.number(endpoint));
    }

    /**
     * Opens a scope for work of a request that is timed elsewhere: it is never a request. For
     * tracers that know when a request ends and report it with {@link #request}.
     */
    public static Scope attach(long traceHi, long traceLo, long spanId, long localRootSpanId,
            String endpoint) {
        if (Native.records == null) {
            return Scope.NONE;
        }
        Context context = Context.current();
        return context.attach(traceHi, traceLo, spanId, localRootSpanId, context.number(endpoint));
    }

    /**
     * Reports the end of a request that was not a scope, or not on one thread.
     *
     * @param endpoint null if {@link #endpoint(long, String)} has set it, or if it is not known
     * @param durationNanos duration of the request
     */
    public static void request(long traceHi, long traceLo, long localRootSpanId, String endpoint,
            long durationNanos) {
        if (Native.records != null && durationNanos >= 0) {
            int number = endpoint == null ? 0 : ENDPOINTS.number(endpoint);
            Native.request(traceHi, traceLo, localRootSpanId, number, durationNanos, 1);
        }
    }

    /**
     * Reports the end of a span inside of a request that was not a scope, or not on one thread. A
     * span shorter than {@link #SPAN_MIN_NANOS} is not recorded.
     *
     * @param endpoint null if it is not known
     * @param durationNanos duration of the span
     */
    public static void span(long traceHi, long traceLo, long localRootSpanId, long spanId,
            String endpoint, long durationNanos) {
        if (Native.records != null && durationNanos >= SPAN_MIN_NANOS) {
            int number = endpoint == null ? 0 : ENDPOINTS.number(endpoint);
            Native.span(traceHi, traceLo, localRootSpanId, spanId, number, durationNanos);
        }
    }

    /**
     * Sets the endpoint of the innermost scope, and of the whole local root: samples of it without
     * an endpoint get this one when the recording is read. Without a scope, it has no effect.
     */
    public static void endpoint(String endpoint) {
        Context context = Native.records == null ? null : Context.currentOrNull();
        if (context != null) {
            context.setEndpoint(context.number(endpoint));
        }
    }

    /**
     * Sets the endpoint of a local root, from any thread: samples of it without an endpoint get
     * this one when the recording is read.
     */
    public static void endpoint(long localRootSpanId, String endpoint) {
        if (Native.records != null && localRootSpanId != 0 && endpoint != null) {
            Native.endpoint(localRootSpanId, ENDPOINTS.number(endpoint));
        }
    }

    /** Declares a label. At most 16 are possible; the same name returns the same label. */
    public static Label label(String name) {
        return LABELS.computeIfAbsent(name, Label::new);
    }

    /**
     * Sets a label of the innermost scope, which scopes opened in it inherit; null removes it.
     * Without a scope, it has no effect.
     */
    public static void setLabel(Label label, String value) {
        Context context = Native.records == null ? null : Context.currentOrNull();
        if (context != null && context.isOpen()) {
            int number = label.number();
            if (number >= 0) {
                context.setLabel(number, label.valueNumber(value));
            }
        }
    }

    private static Captured capture() {
        Context context = Native.records == null ? null : Context.currentOrNull();
        return context == null ? null : context.capture();
    }

    /** A task that runs, on any thread, in the scope that is open here now. */
    public static Runnable wrap(Runnable task) {
        Captured captured = capture();
        if (captured == null) {
            return task;
        }
        return () -> {
            try (Scope scope = Context.current().open(captured)) {
                task.run();
            }
        };
    }

    /** A task that runs, on any thread, in the scope that is open here now. */
    public static <T> Callable<T> wrap(Callable<T> task) {
        Captured captured = capture();
        if (captured == null) {
            return task;
        }
        return () -> {
            try (Scope scope = Context.current().open(captured)) {
                return task.call();
            }
        };
    }

    /** An executor whose tasks run in the scope that was open where they were submitted. */
    public static Executor wrap(Executor executor) {
        return task -> executor.execute(wrap(task));
    }

    /** The same for all tasks of an executor service. */
    public static ExecutorService wrap(ExecutorService executor) {
        return new WrappedExecutor(executor);
    }
}
