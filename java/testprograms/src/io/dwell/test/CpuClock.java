package io.dwell.test;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/** CPU clocks of the current (platform) thread and of the process. */
public final class CpuClock {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final com.sun.management.OperatingSystemMXBean SYSTEM =
            (com.sun.management.OperatingSystemMXBean)
                    ManagementFactory.getOperatingSystemMXBean();

    private CpuClock() {}

    /** User and system CPU time of the current thread since it started, in nanoseconds. */
    public static long threadNanos() {
        return THREADS.getCurrentThreadCpuTime();
    }

    /** CPU time of all threads of the process, in nanoseconds; ticks of 10 ms on some JDKs. */
    public static long processNanos() {
        return SYSTEM.getProcessCpuTime();
    }
}
