package io.dwell.test;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Two threads that pass control to each other after a little work, thousands of times per second.
 */
public final class HandOver {
    private static final int THREADS = 2;
    private static final long PATIENCE_NANOS = 100_000_000;

    private final Harness harness;
    private final TruthTable truths = new TruthTable();
    private final Thread[] threads = new Thread[THREADS];
    private final CountDownLatch begun = new CountDownLatch(THREADS);
    private volatile int turn;
    private volatile boolean over;

    private HandOver(String[] args) {
        harness = new Harness("HandOver", 5, args);
    }

    public static void main(String[] args) throws InterruptedException {
        HandOver program = new HandOver(args);
        Burn.warmUp();
        program.harness.ready();
        Workers workers = Workers.start("hand", THREADS, number -> program.run(number - 1));
        program.harness.awaitEnd();
        program.over = true;
        workers.join();
        program.truths.print(program.harness);
        program.harness.finish();
    }

    private void run(int mine) throws InterruptedException {
        threads[mine] = Thread.currentThread();
        begun.countDown();
        begun.await();
        long before = CpuClock.threadNanos();
        int other = (mine + 1) % THREADS;
        long turns = 0;
        while (!over) {
            if (turn != mine) {
                // With a limit, because the run may be over before this.
                LockSupport.parkNanos(this, PATIENCE_NANOS);
                continue;
            }
            Burn.sink = burnOnce() ^ burnTwice();
            turns++;
            turn = other;
            LockSupport.unpark(threads[other]);
        }
        truths.add("hand_" + (mine + 1), CpuClock.threadNanos() - before);
        harness.info("turns_" + (mine + 1), turns);
    }

    private static long burnOnce() {
        return Burn.unit(1);
    }

    private static long burnTwice() {
        return Burn.unit(Burn.unit(2));
    }
}
