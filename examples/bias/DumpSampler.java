import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;

/**
 * A very simple profiler that shows the error of thread dumps. Every 10 ms the JVM stops the thread
 * for its stack. The thread stops at its next poll, so the dump shows the poll.
 */
final class DumpSampler {
    private final Thread thread;
    private final String[] methods;

    DumpSampler(Thread thread, String[] methods) {
        this.thread = thread;
        this.methods = methods.clone();
    }

    /** How often each method was the topmost of them on the stack; last, how often none was. */
    long[] run(int seconds) throws InterruptedException {
        ThreadMXBean management = ManagementFactory.getThreadMXBean();
        long[] seen = new long[methods.length + 1];
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
        while (System.nanoTime() < end) {
            ThreadInfo info = management.getThreadInfo(thread.getId(), Integer.MAX_VALUE);
            if (info == null) {
                break;
            }
            seen[topmost(info)]++;
            TimeUnit.MILLISECONDS.sleep(10);
        }
        return seen;
    }

    private int topmost(ThreadInfo info) {
        for (StackTraceElement frame : info.getStackTrace()) {
            int which = Arrays.asList(methods).indexOf(frame.getMethodName());
            if (which >= 0) {
                return which;
            }
        }
        return methods.length;
    }
}
