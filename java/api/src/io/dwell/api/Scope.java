package io.dwell.api;

/**
 * What a thread works for until {@link #close}: a trace, a span, an endpoint, labels. Made by
 * {@link Dwell#scope}, to be used in a try-with-resources statement, on one thread.
 *
 * <p>A scope closed again, or by another thread than opened it, is left alone. Closing one while
 * scopes that were opened after it are open closes those as well. Each of these is counted; see
 * {@link Trouble}. Scopes are used again by later calls of {@link Dwell#scope} on the same thread
 * (not before seven others were opened), so do not keep one after its end.
 */
public final class Scope implements AutoCloseable {
    /** What there is without an agent. */
    static final Scope NONE = new Scope(null);

    /** The logical thread's; null for {@link #NONE}. */
    private final Context owner;
    boolean open;
    /** Whether it is a span inside of a request, which began then. */
    boolean timed;
    long beganNanos;
    /** The scope around it, or the next free one. */
    Scope outer;
    /** What it replaced, to be put back. */
    long traceHi;
    long traceLo;
    long span;
    long localRoot;
    long state;
    /** As {@code state} says; made when first needed. */
    long[] labels;

    Scope(Context owner) {
        this.owner = owner;
    }

    /** Ends it: what was there before counts again. */
    @Override
    public void close() {
        if (owner != null) {
            owner.close(this);
        }
    }
}
