package io.dwell.test;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Waits for locks for known times: for each kind of lock there is a thread that takes it, lets
 * another one come, and keeps it from then on for as long as the kind says. Who waits measures for
 * how long, and only that: one thread waits at a time, and each wait has the same owner.
 */
public final class LockWaits {
    /** How often who waits for the other looks whether that one has come. */
    private static final long LOOK_NANOS = 20_000;
    private static final int MICROS = 1000;

    /** The locks: each has a class of its own. */
    static final class Ledger {}

    static final class Stock {}

    static final class Tick {}

    static final class Spark {}

    private enum Kinds {
        ledger(new Ledger(), 200_000, 10),
        stock(new Stock(), 5_000, 300),
        tick(new Tick(), 200, 4_000),
        spark(new Spark(), 20, 4_000),
        reentrant(new ReentrantLock(), 50_000, 40);

        private final Object lock;
        private final long holdNanos;
        private final int rounds;
        private volatile int held;
        private volatile int coming;
        private volatile int done;
        private long waited;
        private long longest;

        Kinds(Object lock, long holdMicros, int rounds) {
            this.lock = lock;
            this.holdNanos = holdMicros * MICROS;
            this.rounds = rounds;
        }

        int count(int percent) {
            return Math.max(1, rounds * percent / 100);
        }

        /** Keeps the lock; short times are spent running, as who sleeps wakes up too late. */
        void keep(int round) {
            held = round;
            while (coming != round) {
                LockSupport.parkNanos(LOOK_NANOS);
            }
            long end = System.nanoTime() + holdNanos;
            long left = holdNanos;
            while (left > 0) {
                if (holdNanos > MICROS * MICROS) {
                    LockSupport.parkNanos(left);
                }
                left = end - System.nanoTime();
            }
        }

        void await(int round) {
            while (held != round) {
                LockSupport.parkNanos(LOOK_NANOS);
            }
        }

        void got(long began) {
            long took = System.nanoTime() - began;
            waited += took;
            longest = Math.max(longest, took);
        }

        void awaitDone(int round) {
            while (done != round) {
                LockSupport.parkNanos(LOOK_NANOS);
            }
        }
    }

    private LockWaits() {}

    public static void main(String[] args) throws Exception {
        Harness harness = new Harness("LockWaits", 60, args, "percent", "virtual", "kinds");
        int percent = harness.number("percent", 100, 1, 10_000);
        boolean isVirtual = harness.number("virtual", 0, 0, 1) == 1;
        String kinds = harness.text("kinds", "ledger,stock,tick,spark,reentrant");
        List<Kinds> chosen = new ArrayList<>();
        for (String name : kinds.split(",")) {
            chosen.add(Kinds.valueOf(name));
        }
        harness.ready();
        long began = System.nanoTime();
        List<Thread> all = new ArrayList<>();
        for (Kinds kind : chosen) {
            int rounds = kind.count(percent);
            all.add(start("owner-" + kind.name(), () -> own(kind, rounds), false));
            all.add(start("waiter-" + kind.name(), () -> want(kind, rounds), isVirtual));
        }
        for (Thread thread : all) {
            thread.join();
        }
        harness.info("ran_ms", TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began));
        for (Kinds kind : chosen) {
            harness.info("waits." + kind.name(), kind.count(percent));
            harness.info("waited." + kind.name(), kind.waited);
            harness.info("longest." + kind.name(), kind.longest);
        }
        harness.finish();
    }

    private static Thread start(String name, Runnable work, boolean isVirtual) throws Exception {
        Runnable named = () -> {
            Thread.currentThread().setName(name);
            work.run();
        };
        if (isVirtual) {
            // Since 21, for which this is not compiled.
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class)
                    .invoke(null, named);
        }
        Thread thread = new Thread(named);
        thread.start();
        return thread;
    }

    private static void own(Kinds kind, int rounds) {
        for (int round = 1; round <= rounds; round++) {
            if (kind.lock instanceof ReentrantLock) {
                ReentrantLock lock = (ReentrantLock) kind.lock;
                lock.lock();
                kind.keep(round);
                lock.unlock();
            } else {
                synchronized (kind.lock) {
                    kind.keep(round);
                }
            }
            kind.awaitDone(round);
        }
    }

    private static void want(Kinds kind, int rounds) {
        for (int round = 1; round <= rounds; round++) {
            kind.await(round);
            if (kind.lock instanceof ReentrantLock) {
                waitForLock(kind, round);
            } else {
                waitForMonitor(kind, round);
            }
            // Not before the lock is free: the owner would wait for it.
            kind.done = round;
        }
    }

    private static void waitForMonitor(Kinds kind, int round) {
        kind.coming = round;
        long began = System.nanoTime();
        synchronized (kind.lock) {
            kind.got(began);
        }
    }

    private static void waitForLock(Kinds kind, int round) {
        ReentrantLock lock = (ReentrantLock) kind.lock;
        kind.coming = round;
        long began = System.nanoTime();
        lock.lock();
        kind.got(began);
        lock.unlock();
    }
}
