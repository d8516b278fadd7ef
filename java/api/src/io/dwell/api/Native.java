package io.dwell.api;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;

/**
 * The agent's side. Its methods are in {@code libdwell.so}: the JVM finds them by name in a library
 * that was loaded as an agent, and an agent that comes later connects the classes it finds loaded.
 */
final class Native {
    /** What this class and the agent have to agree on: {@link Layout} and these methods. */
    private static final int PROTOCOL = 3;

    /** The memory of all records; null while there is no agent. Written once. */
    static volatile LongBuffer records;

    static {
        connect();
    }

    private Native() {}

    /** Called by an agent that comes later, too. */
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
            // No agent: everything is a no-op until one calls.
        }
    }

    static native int protocol();

    static native ByteBuffer records();

    /** A hold on the record of the calling thread, which is {@code current}; 0 if there is none. */
    static native long acquire(Thread current);

    /** Lets go of it; once for each hold. */
    static native void release(long hold);

    /** The number of an endpoint (kind 0) or of a value of label {@code kind - 1}. */
    static native int intern(int kind, String text);

    /** The number of a label, or -1. */
    static native int label(String name);

    /** The endpoint of a local root is known now. */
    static native void endpoint(long localRoot, int endpoint);

    /** A request has just ended; it stands for so many. Endpoint 0: not known yet. */
    static native void request(long traceHi, long traceLo, long localRoot, int endpoint,
            long durationNanos, int requests);

    /** A span inside of a request has just ended. Endpoint 0: not known yet. */
    static native void span(long traceHi, long traceLo, long localRoot, long span, int endpoint,
            long durationNanos);
}
