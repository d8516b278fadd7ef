package io.dwell.test;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Ends in the midst of its work: threads with deep stacks burn and allocate without end, and after
 * some of that the JVM is told to exit or to halt, with code 42. With {@code by=signal} it says
 * {@code done} and works on until somebody kills it.
 */
public final class Leaves {
    private static final int CODE = 42;
    private static final long DESCENT_NS = 2_000_000;
    private static final int GARBAGE_BYTES = 1 << 20;

    private static final AtomicInteger DESCENTS = new AtomicInteger();

    private static volatile byte[] garbage;

    private Leaves() {}

    public static void main(String[] args) throws InterruptedException {
        Harness harness = new Harness("Leaves", 60, args, "by", "descents", "threads",
                "frames");
        String by = harness.choice("by", "exit", "halt", "signal");
        int descents = harness.number("descents", 20, 0, 1_000_000);
        int threads = harness.number("threads", 4, 1, 64);
        int frames = harness.number("frames", 300, 1, 3000);
        harness.ready();
        for (int i = 1; i <= threads; i++) {
            Thread thread = new Thread(() -> work(frames), "leaves-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        while (DESCENTS.get() < descents) {
            TimeUnit.MILLISECONDS.sleep(1);
        }
        if (by.equals("exit")) {
            System.exit(CODE);
        } else if (by.equals("halt")) {
            Runtime.getRuntime().halt(CODE);
        }
        Harness.line("done");
        TimeUnit.SECONDS.sleep(harness.seconds());
    }

    private static void work(int frames) {
        CpuBudget budget = new CpuBudget();
        while (true) {
            garbage = new byte[GARBAGE_BYTES];
            Burn.sink = Recursion.descend(frames, budget.grant(DESCENT_NS), 1);
            DESCENTS.incrementAndGet();
        }
    }
}
