package io.dwell.test;

import java.io.File;
import java.net.URISyntaxException;

/** The native libraries of the test programs, which are in the folder of their jar. */
public final class NativeSupport {
    private static final int EXIT_FAILURE = 1;

    private NativeSupport() {}

    static {
        System.load(library("support"));
    }

    /** The path of a test library; a missing one ends the program with status 1. */
    public static String library(String name) {
        File file = new File(folder(), "libdwelltest_" + name + ".so");
        if (!file.exists()) {
            System.err.println("no native test library " + file
                    + "; java/build.sh makes it where there is a C compiler");
            System.exit(EXIT_FAILURE);
        }
        return file.getPath();
    }

    private static File folder() {
        try {
            return new File(NativeSupport.class.getProtectionDomain().getCodeSource()
                    .getLocation().toURI()).getAbsoluteFile().getParentFile();
        } catch (URISyntaxException e) {
            throw new IllegalStateException("a jar's location is a valid URI", e);
        }
    }

    /** CPU time of the native thread that runs this, also for a virtual thread's carrier. */
    public static native long threadCpuNanos();

    /** dlopen: a handle, or 0. */
    static native long open(String path);

    /** The address the library is loaded at. */
    static native long base(long handle);

    /** dlclose: false if it failed. */
    static native boolean close(long handle);

    /**
     * Runs a native thread for {@code nanos}. Again and again it attaches to the JVM, calls {@code
     * type.call()}, detaches and burns {@code steps}. Returns the number of calls, and its CPU
     * time.
     */
    static native long[] attachFor(Class<?> type, long nanos, long steps);

    /** Calls the function of the library with a number of steps to burn; -1 if it is missing. */
    static native long call(long handle, String function, long steps);
}
