package io.dwell.chaos;

/** The native library. Functions that return an int return the number of errors. */
final class Natives {
    private Natives() {}

    static native void prepare();

    static native long there(long x, int steps);

    /**
     * Calls through {@code depth} frames, alternating between C and Java, with 20 steps in each
     * frame of C.
     */
    static native long up(int depth, long x);

    /** Called by the native side. */
    static long down(int depth, long x) {
        return up(depth, x);
    }

    /** The sum of the elements, each of which is advanced by four steps. */
    static native long critical(long[] array);

    static native void fail(String text);

    static native long plugin(String path, long x, int steps);

    /** The exit code of a child by fork, vfork or posix_spawn; -1 if none could be started. */
    static native int child(int kind);

    static native int mallocs(int threads);

    static native int attaches(int threads);

    static native int ends(int threads);

    static native int locals(int threads);

    static native int stacks(int threads);

    static native void timersOn(boolean prof);

    static native void timersOff(boolean prof);

    static native long ticks(int kind);

    static native void faultsOn();

    static native int faults(int count);
}
