package io.dwell.test;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.locks.LockSupport;

/**
 * Safepoints at a rate: the JVM is asked for deadlocks, which it looks for while all threads stand
 * still. Beside that some threads that run and poll.
 *
 * <p>Arguments: {@code rate=} safepoints a second (0: none), {@code threads=} that run.
 */
public final class StopRate {
    private static volatile boolean over;
    private static volatile long sink;

    private StopRate() {}

    public static void main(String[] args) throws InterruptedException {
        Harness harness = new Harness("StopRate", 10, args, "rate", "threads");
        int rate = harness.number("rate", 100, 0, 10_000);
        int threads = harness.number("threads", 1, 0, 256);
        ThreadMXBean bean = ManagementFactory.getThreadMXBean();
        Thread[] all = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            all[i] = new Thread(StopRate::poll, "polling-" + i);
            all[i].start();
        }
        harness.ready();
        long asked = 0;
        long begin = System.nanoTime();
        while (harness.timeLeft()) {
            if (rate == 0) {
                Thread.sleep(10);
                continue;
            }
            bean.findMonitorDeadlockedThreads();
            asked++;
            long due = begin + asked * 1_000_000_000L / rate;
            LockSupport.parkNanos(due - System.nanoTime());
        }
        over = true;
        for (Thread thread : all) {
            thread.join();
        }
        harness.info("asked", asked);
        harness.finish();
    }

    private static void poll() {
        while (!over) {
            long sum = 0;
            for (long i = 0; i < 10_000; i++) {
                sum += i ^ (sum << 3);
            }
            sink = sum;
        }
    }
}
