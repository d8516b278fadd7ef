import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * Makes a number of objects, each of which goes to the same static field: {@code NewObjects COUNT}.
 * It does no other work, so the cost of a signal inside and outside of the allocator is most
 * visible.
 */
public final class NewObjects {
    private static final int AT_ONCE = 1_000_000;

    static Object field;

    private NewObjects() {}

    public static void main(String[] args) {
        long count = Long.parseLong(args[0]);
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        com.sun.management.ThreadMXBean bytes = (com.sun.management.ThreadMXBean) clock;
        long self = Thread.currentThread().getId();
        long bytesBefore = bytes.getThreadAllocatedBytes(self);
        long beganNs = clock.getCurrentThreadCpuTime();
        long left = count;
        while (left > 0) {
            int now = (int) Math.min(AT_ONCE, left);
            make(now);
            left -= now;
        }
        long usedNs = clock.getCurrentThreadCpuTime() - beganNs;
        System.out.println("info loop_ns " + usedNs);
        // So that the reader sees that no object was optimised away.
        System.out.println("info bytes " + (bytes.getThreadAllocatedBytes(self) - bytesBefore));
    }

    private static void make(int count) {
        for (int i = 0; i < count; i++) {
            field = new Object();
        }
    }
}
