package io.dwell.test;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** Threads that do nothing: asleep, parked or waiting. The CPU truth is next to zero. */
public final class Idle {
    private Idle() {}

    public static void main(String[] args) throws InterruptedException {
        Harness harness = new Harness("Idle", 5, args, "threads", "state");
        int threads = harness.number("threads", 100, 0, 100_000);
        String state = harness.choice("state", "mixed", "sleep", "park", "wait");
        CountDownLatch started = new CountDownLatch(threads);
        for (int i = 0; i < threads; i++) {
            int way = state.equals("mixed") ? i % 3 : state.equals("sleep") ? 0
                    : state.equals("park") ? 1 : 2;
            Thread thread = new Thread(null, () -> idle(way, started), "idle-" + (i + 1), 0);
            // Nobody will wake them.
            thread.setDaemon(true);
            thread.start();
        }
        started.await();
        harness.ready();
        long before = CpuClock.processNanos();
        while (harness.timeLeft()) {
            TimeUnit.MILLISECONDS.sleep(100);
        }
        harness.truth("process", CpuClock.processNanos() - before);
        harness.finish();
    }

    private static void idle(int way, CountDownLatch started) {
        started.countDown();
        try {
            if (way == 0) {
                sleepForEver();
            } else if (way == 1) {
                parkForEver();
            } else {
                waitForEver();
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException("nobody interrupts these threads", e);
        }
    }

    private static void sleepForEver() throws InterruptedException {
        for (;;) {
            TimeUnit.DAYS.sleep(1);
        }
    }

    private static void parkForEver() {
        for (;;) {
            LockSupport.park(Idle.class);
        }
    }

    private static void waitForEver() throws InterruptedException {
        Object monitor = new Object();
        synchronized (monitor) {
            for (;;) {
                monitor.wait();
            }
        }
    }
}
