package io.dwell.api;

/**
 * The context of a thread until {@link #close}: a trace, a span, an endpoint, labels. Made by
 * {@link Dwell#scope} for a try-with-resources statement, on one thread.
 *
 * <p>Closing a scope twice, or from another thread than the one that opened it, has no effect.
 * Closing a scope while later ones are open closes those as well. Each of these cases is counted;
 * see {@link Trouble}. Later calls of {@link Dwell#scope} on the same thread reuse scopes (not
 * before seven others were opened), so do not keep one after its end.
 */
public final class Scope implements AutoCloseable {
    /** The scope without an agent. */
    static final Scope NONE = new Scope(null);

    /** The logical thread's context; null for {@link #NONE}. */
    private final Context owner;
    boolean open;
    /** Whether it is a timed span inside of a request, and when it began. */
    boolean timed;
    long beganNanos;
    /** The enclosing scope, or the next free one. */
    Scope outer;
    /** The values that it replaced, which are restored at the end. */
    long traceHi;
    long traceLo;
    long span;
    long localRoot;
    long state;
    /** The previous labels, if {@code state} has any; made when first needed. */
    long[] labels;

    Scope(Context owner) {
        this.owner = owner;
    }

    /** Ends the scope: the enclosing context is valid again. */
    @Override
    public void close() {
        if (owner != null) {
            owner.close(this);
        }
    }
}
