package io.dwell.api;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;

/**
 * The agent's side. Its methods are in {@code libdwell.so}, and the JVM finds them by name in a
 * library that was loaded as an agent. An agent that is attached later connects the classes that
 * are already loaded.
 */
final class Native {
    /**
     * Version of the protocol between this class and the agent: {@link Layout} and these methods.
     */
    private static final int PROTOCOL = 3;

    /** The memory of all records; null without an agent. Written once. */
    static volatile LongBuffer records;

    static {
        connect();
    }

    private Native() {}

    /** Also called by an agent that is attached later. */
    static synchronized void connect() {
        if (records != null) {
            return;
        }
        try {
            if (protocol() == PROTOCOL) {
                ByteBuffer memory = records();
                if (memory != null) {
                    records = memory.order(ByteOrder.nativeOrder()).asLongBuffer();
                }
            }
        } catch (UnsatisfiedLinkError e) {
            // No agent: calls have no effect until an agent connects.
        }
    }

    static native int protocol();

    static native ByteBuffer records();

    /**
     * Holds a record for the calling thread, which is {@code current}; 0 if there is no free
     * record.
     */
    static native long acquire(Thread current);

    /** Releases a record; once for each hold. */
    static native void release(long hold);

    /** The number of an endpoint (kind 0) or of a value of label {@code kind - 1}. */
    static native int intern(int kind, String text);

    /** The number of a label, or -1. */
    static native int label(String name);

    /** Sets the endpoint of a local root. */
    static native void endpoint(long localRoot, int endpoint);

    /**
     * Reports the end of a request, which represents {@code requests} requests. Endpoint 0: not
     * known yet.
     */
    static native void request(long traceHi, long traceLo, long localRoot, int endpoint,
            long durationNanos, int requests);

    /** Reports the end of a span inside of a request. Endpoint 0: not known yet. */
    static native void span(long traceHi, long traceLo, long localRoot, long span, int endpoint,
            long durationNanos);
}
