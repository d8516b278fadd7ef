package io.dwell.test;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Threads that want one monitor again and again: each has it for some 50 us in {@code hold}, and
 * rests without it for a millisecond in {@code rest}.
 */
public final class LockCrowd {
    private static final Object vault = new Object();
    private static volatile boolean isOver;

    private LockCrowd() {}

    public static void main(String[] args) throws Exception {
        Harness harness = new Harness("LockCrowd", 60, args, "threads", "seconds");
        Thread[] threads = new Thread[harness.number("threads", 12, 1, 1000)];
        int seconds = harness.number("seconds", 5, 1, 60);
        harness.ready();
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(LockCrowd::live, "crowd-" + i);
            threads[i].start();
        }
        Thread.sleep(TimeUnit.SECONDS.toMillis(seconds));
        isOver = true;
        for (Thread thread : threads) {
            thread.join();
        }
        harness.finish();
    }

    private static void live() {
        while (!isOver) {
            hold();
            rest();
        }
    }

    private static void hold() {
        synchronized (vault) {
            LockSupport.parkNanos(1);
        }
    }

    private static void rest() {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
    }
}
