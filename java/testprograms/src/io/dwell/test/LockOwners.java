package io.dwell.test;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * A thread that has a monitor in one of two methods while another one waits for it: in one of them
 * it sleeps, in the other it runs. Who waits measures for how long, by the method. Next to it the
 * owner does something without the monitor, and so does a bystander all the time.
 */
public final class LockOwners {
    private static final long LOOK_NANOS = 20_000;

    static final class Vault {}

    private static final Object vault = new Vault();
    private static volatile int held;
    private static volatile int coming;
    private static volatile int done;
    private static volatile boolean isOver;
    private static volatile long kept;

    private final long sleepNanos;
    private final long burnNanos;
    private final int rounds;
    private final long[] waited = new long[2];

    private LockOwners(Harness harness) {
        sleepNanos = TimeUnit.MICROSECONDS.toNanos(
                harness.number("sleep_us", 9_000, 1, 1_000_000));
        burnNanos = TimeUnit.MICROSECONDS.toNanos(harness.number("burn_us", 6_000, 1, 1_000_000));
        rounds = harness.number("rounds", 200, 1, 1_000_000);
    }

    public static void main(String[] args) throws Exception {
        Harness harness =
                new Harness("LockOwners", 60, args, "sleep_us", "burn_us", "rounds", "virtual");
        LockOwners program = new LockOwners(harness);
        boolean isVirtual = harness.number("virtual", 0, 0, 1) == 1;
        harness.ready();
        Thread bystander = new Thread(LockOwners::bystand, "bystander");
        bystander.start();
        Thread owner = start("owner", program::own, isVirtual);
        Thread waiter = start("waiter", program::want, isVirtual);
        owner.join();
        waiter.join();
        isOver = true;
        bystander.join();
        harness.info("waited.sleep", program.waited[0]);
        harness.info("waited.burn", program.waited[1]);
        harness.finish();
    }

    private static Thread start(String name, Runnable work, boolean isVirtual) throws Exception {
        if (isVirtual) {
            Runnable named = () -> {
                Thread.currentThread().setName(name);
                work.run();
            };
            // Since 21, for which this is not compiled.
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class)
                    .invoke(null, named);
        }
        Thread thread = new Thread(work, name);
        thread.start();
        return thread;
    }

    private void own() {
        for (int round = 1; round <= rounds; round++) {
            if (round % 2 == 0) {
                sleepInside(round);
            } else {
                burnInside(round);
            }
            outside(round);
        }
    }

    private void sleepInside(int round) {
        synchronized (vault) {
            held = round;
            awaitComing(round);
            long end = System.nanoTime() + sleepNanos;
            for (long left = sleepNanos; left > 0; left = end - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
        }
    }

    private void burnInside(int round) {
        synchronized (vault) {
            held = round;
            awaitComing(round);
            spin(burnNanos);
        }
    }

    private static void awaitComing(int round) {
        while (coming != round) {
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }

    private static void spin(long nanos) {
        long end = System.nanoTime() + nanos;
        long sum = 0;
        while (System.nanoTime() < end) {
            sum = sum * 31 + 7;
        }
        kept = sum;
    }

    /** Without the monitor. */
    private static void outside(int round) {
        while (done != round) {
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }

    private static void bystand() {
        while (!isOver) {
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
        }
    }

    private void want() {
        for (int round = 1; round <= rounds; round++) {
            while (held != round) {
                LockSupport.parkNanos(LOOK_NANOS);
            }
            take(round);
            // Not before the monitor is free: the owner would wait for it.
            done = round;
        }
    }

    private void take(int round) {
        coming = round;
        long began = System.nanoTime();
        synchronized (vault) {
            waited[round % 2] += System.nanoTime() - began;
        }
    }
}
