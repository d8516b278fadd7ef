package io.dwell.api;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.nio.LongBuffer;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The context of one logical thread, and the only writer of its record. Used by that thread alone.
 *
 * <p>A record has two copies of the context, and a sequence number that selects the valid one. A
 * change is written to the other copy, and then the number is raised. So a reader that interrupts
 * the thread, or runs in parallel, sees the context before the change or after it, never half of
 * each.
 *
 * <p>A platform thread keeps its record until it ends, a virtual thread only while scopes are open.
 * The records' memory is never freed. A record is released by the thread itself, or for a thread
 * that can no longer write because this object is unreachable.
 */
final class Context {
    private static final ThreadLocal<Context> OF_THREAD = new ThreadLocal<>();
    private static final ReferenceQueue<Context> GONE = new ReferenceQueue<>();
    private static final Set<Hold> HOLDS = ConcurrentHashMap.newKeySet();
    private static final MethodHandle IS_VIRTUAL = isVirtual();
    /** Minimum number of free scopes of a thread before one of them is reused. */
    private static final int FREE_MIN = 7;

    private final Thread thread = Thread.currentThread();
    private final boolean virtual;
    private final Hold hold;
    /** Its ordered writes keep the stores to a record in order, including for the compilers. */
    private final AtomicInteger order = new AtomicInteger();
    private final LongBuffer records = Native.records;
    /** Start of the record, while there is one. */
    private int at;
    private Scope top;
    private Scope firstFree;
    private Scope lastFree;
    private int free;
    private String lastEndpoint;
    private int lastEndpointNumber;
    /** Made at the first id that is a text. */
    private Hex ids;
    private final RequestTimer timer = new RequestTimer();
    private final SpanTimer spans = new SpanTimer();

    /**
     * A hold on a record. It outlives its context, so that the record can be released afterwards.
     */
    private static final class Hold extends PhantomReference<Context> {
        long handle;

        Hold(Context context) {
            super(context, GONE);
        }
    }

    private Context() {
        virtual = isVirtual(thread);
        hold = new Hold(this);
    }

    /** The calling thread's context; only with an agent. */
    static Context current() {
        Context context = OF_THREAD.get();
        return context != null ? context : make();
    }

    /** The calling thread's context, or null. */
    static Context currentOrNull() {
        return OF_THREAD.get();
    }

    private static Context make() {
        Context context = new Context();
        OF_THREAD.set(context);
        return context;
    }

    private static MethodHandle isVirtual() {
        try {
            return MethodHandles.publicLookup()
                    .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (ReflectiveOperationException e) {
            return null; // before 21
        }
    }

    private static boolean isVirtual(Thread thread) {
        try {
            return IS_VIRTUAL != null && (boolean) IS_VIRTUAL.invokeExact(thread);
        } catch (Throwable e) {
            return false; // it does not throw
        }
    }

    // Records.

    private boolean acquire() {
        releaseGone();
        long handle = Native.acquire(thread);
        if (handle == 0) {
            Trouble.NO_RECORD.count();
            return false;
        }
        at = (int) handle * Layout.RECORD;
        hold.handle = handle;
        HOLDS.add(hold);
        return true;
    }

    private void release() {
        long handle = hold.handle;
        hold.handle = 0;
        HOLDS.remove(hold);
        Native.release(handle);
    }

    /** Releases the records of threads that have ended. */
    private static void releaseGone() {
        for (Object gone; (gone = GONE.poll()) != null;) {
            Hold hold = (Hold) gone;
            if (HOLDS.remove(hold)) {
                Native.release(hold.handle);
            }
        }
    }

    // Scopes.

    /**
     * Opens a scope. If it is the outermost one and its span is the local root, it is a request. If
     * it has another span of the trace, that span lasts as long as the scope.
     */
    Scope open(long traceHi, long traceLo, long span, long localRoot, int endpoint) {
        boolean outermost = top == null;
        Scope scope = attach(traceHi, traceLo, span, localRoot, endpoint);
        if (scope == Scope.NONE || span == 0) {
            return scope;
        }
        if (span != localRoot && localRoot != 0) {
            if (spans.isNext()) {
                scope.timed = true;
                scope.beganNanos = System.nanoTime();
            }
        } else if (outermost && span == localRoot) {
            timer.begin();
        }
        return scope;
    }

    /** Opens a scope that is not a request. */
    Scope attach(long traceHi, long traceLo, long span, long localRoot, int endpoint) {
        if (hold.handle == 0 && !acquire()) {
            return Scope.NONE;
        }
        Scope scope = free > FREE_MIN ? takeFree() : new Scope(this);
        long sequence = records.get(at + Layout.SEQUENCE);
        int now = copy(sequence);
        long state = records.get(now + Layout.STATE);
        scope.traceHi = records.get(now + Layout.TRACE_HI);
        scope.traceLo = records.get(now + Layout.TRACE_LO);
        scope.span = records.get(now + Layout.SPAN);
        scope.localRoot = records.get(now + Layout.LOCAL_ROOT);
        scope.state = state;
        long used = state & Layout.LABELS_USED;
        int next = copy(sequence + 1);
        if (used != 0) {
            scope.labels = save(now, scope.labels);
            restore(next, scope.labels);
        }
        // A span within a request inherits the request's endpoint unless it has one of its own.
        long inherited = endpoint == 0 && top != null && localRoot != 0
                && scope.localRoot == localRoot ? state & Layout.LOW : endpoint & Layout.LOW;
        write(next, traceHi, traceLo, span, localRoot, Layout.ACTIVE | used | inherited);
        publish(sequence + 1);
        scope.outer = top;
        scope.open = true;
        scope.timed = false;
        top = scope;
        return scope;
    }

    void close(Scope scope) {
        if (Thread.currentThread() != thread) {
            Trouble.CLOSED_ELSEWHERE.count();
            return;
        }
        if (!scope.open) {
            Trouble.CLOSED_TWICE.count();
            return;
        }
        if (scope != top) {
            Trouble.CLOSED_OUT_OF_ORDER.count();
            while (top != scope) {
                end(top);
            }
        }
        long sequence = records.get(at + Layout.SEQUENCE) + 1;
        if (scope.outer == null && timer.isRunning()) {
            endRequest(copy(sequence - 1));
        }
        if (scope.timed) {
            long nowNanos = System.nanoTime();
            spans.ended(nowNanos);
            endSpan(copy(sequence - 1), nowNanos - scope.beganNanos);
        }
        int next = copy(sequence);
        if ((scope.state & Layout.LABELS_USED) != 0) {
            restore(next, scope.labels);
        }
        write(next, scope.traceHi, scope.traceLo, scope.span, scope.localRoot, scope.state);
        publish(sequence);
        end(scope);
        if (virtual && top == null) {
            release();
        }
    }

    private void endRequest(int now) {
        long durationNanos = timer.end();
        Native.request(records.get(now + Layout.TRACE_HI), records.get(now + Layout.TRACE_LO),
                records.get(now + Layout.LOCAL_ROOT), (int) records.get(now + Layout.STATE),
                durationNanos, timer.requests());
    }

    private void endSpan(int now, long durationNanos) {
        if (durationNanos >= Dwell.SPAN_MIN_NANOS) {
            Native.span(records.get(now + Layout.TRACE_HI), records.get(now + Layout.TRACE_LO),
                    records.get(now + Layout.LOCAL_ROOT), records.get(now + Layout.SPAN),
                    (int) records.get(now + Layout.STATE), durationNanos);
        }
    }

    /** Closes the innermost scope and adds it to the free ones. */
    private void end(Scope scope) {
        top = scope.outer;
        scope.open = false;
        scope.outer = null;
        if (lastFree == null) {
            firstFree = scope;
        } else {
            lastFree.outer = scope;
        }
        lastFree = scope;
        free++;
    }

    /** The scope that was free for the longest time. */
    private Scope takeFree() {
        Scope scope = firstFree;
        firstFree = scope.outer;
        free--;
        return scope;
    }

    boolean isOpen() {
        return top != null;
    }

    /** Local root for a new scope: the present one if the trace is the same, else its own span. */
    long localRootFor(long traceHi, long traceLo, long span) {
        if (top == null) {
            return span;
        }
        int now = copy(records.get(at + Layout.SEQUENCE));
        long root = records.get(now + Layout.LOCAL_ROOT);
        boolean same = records.get(now + Layout.TRACE_LO) == traceLo
                && records.get(now + Layout.TRACE_HI) == traceHi;
        return same && root != 0 ? root : span;
    }

    // The innermost scope.

    Hex ids() {
        Hex known = ids;
        return known != null ? known : (ids = new Hex());
    }

    int number(String endpoint) {
        // Usually a constant of the program, or one of a few texts.
        if (endpoint != lastEndpoint) {
            lastEndpointNumber = Dwell.ENDPOINTS.number(endpoint);
            lastEndpoint = endpoint;
        }
        return lastEndpointNumber;
    }

    void setEndpoint(int endpoint) {
        if (top == null) {
            return;
        }
        long sequence = records.get(at + Layout.SEQUENCE);
        int now = copy(sequence);
        long state = records.get(now + Layout.STATE);
        rewrite(sequence, state & ~Layout.LOW | (endpoint & Layout.LOW));
        long root = records.get(now + Layout.LOCAL_ROOT);
        if (root != 0 && endpoint != 0) {
            Native.endpoint(root, endpoint);
        }
    }

    void setLabel(int label, int value) {
        if (top == null) {
            return;
        }
        long sequence = records.get(at + Layout.SEQUENCE);
        int now = copy(sequence);
        long state = records.get(now + Layout.STATE);
        long bit = 1L << (32 + label);
        int next = rewritten(sequence, value == 0 ? state & ~bit : state | bit);
        int pair = next + Layout.LABELS + label / 2;
        int shift = label % 2 * 32;
        records.put(pair, records.get(pair) & ~(Layout.LOW << shift)
                | (value & Layout.LOW) << shift);
        publish(sequence + 1);
    }

    private void rewrite(long sequence, long state) {
        rewritten(sequence, state);
        publish(sequence + 1);
    }

    /** Copies the valid copy to the other one, with a new state. */
    private int rewritten(long sequence, long state) {
        int now = copy(sequence);
        int next = copy(sequence + 1);
        for (int i = 0; i < Layout.COPY; i++) {
            records.put(next + i, records.get(now + i));
        }
        records.put(next + Layout.STATE, state);
        return next;
    }

    /** The present context, for another thread; null without a context. */
    Captured capture() {
        if (top == null) {
            return null;
        }
        int now = copy(records.get(at + Layout.SEQUENCE));
        long state = records.get(now + Layout.STATE);
        long[] labels = (state & Layout.LABELS_USED) == 0 ? null : save(now, null);
        return new Captured(records.get(now + Layout.TRACE_HI),
                records.get(now + Layout.TRACE_LO), records.get(now + Layout.SPAN),
                records.get(now + Layout.LOCAL_ROOT), state, labels);
    }

    Scope open(Captured captured) {
        Scope scope = attach(captured.traceHi, captured.traceLo, captured.span, captured.localRoot,
                (int) captured.state);
        if (scope != Scope.NONE) {
            long sequence = records.get(at + Layout.SEQUENCE);
            int next = rewritten(sequence, captured.state);
            if (captured.labels != null) {
                restore(next, captured.labels);
            }
            publish(sequence + 1);
        }
        return scope;
    }

    // Memory.

    private int copy(long sequence) {
        return at + Layout.COPIES + (int) (sequence & 1) * Layout.COPY;
    }

    private void write(int copy, long traceHi, long traceLo, long span, long localRoot, long state) {
        records.put(copy + Layout.TRACE_HI, traceHi);
        records.put(copy + Layout.TRACE_LO, traceLo);
        records.put(copy + Layout.SPAN, span);
        records.put(copy + Layout.LOCAL_ROOT, localRoot);
        records.put(copy + Layout.STATE, state);
    }

    private void publish(long sequence) {
        order.lazySet(0);
        records.put(at + Layout.SEQUENCE, sequence);
        // Later stores must not become visible before this one either: the next change is written
        // to the copy that has just become invalid.
        order.lazySet(1);
    }

    private long[] save(int copy, long[] used) {
        long[] labels = used != null ? used : new long[Layout.LABELS_MAX / 2];
        for (int i = 0; i < labels.length; i++) {
            labels[i] = records.get(copy + Layout.LABELS + i);
        }
        return labels;
    }

    private void restore(int copy, long[] labels) {
        for (int i = 0; i < labels.length; i++) {
            records.put(copy + Layout.LABELS + i, labels[i]);
        }
    }
}
