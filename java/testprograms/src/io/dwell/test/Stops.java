package io.dwell.test;

/**
 * One thread that keeps the JVM from stopping: loops without a poll, given the flags that take the
 * polls out of counted loops. Beside it threads that wait, and one that runs and polls.
 *
 * <p>Arguments: {@code millis=} that each loop takes, about (the loop is measured first), and
 * {@code pause=} between two collections asked for, in ms; {@code polling=0} leaves the thread out
 * that polls; {@code polling=N} starts N of them; with {@code copy=} the late thread copies so many
 * megabytes at a time instead.
 */
public final class Stops {
    private static volatile boolean over;
    private static volatile boolean copying;
    private static volatile long sink;
    private static int[] numbers = new int[1 << 16];

    private Stops() {}

    public static void main(String[] args) throws InterruptedException {
        Harness harness = new Harness("Stops", 5, args, "millis", "pause", "polling", "copy");
        int millis = harness.number("millis", 30, 1, 10_000);
        int pause = harness.number("pause", 100, 1, 10_000);
        int polling = harness.number("polling", 1, 0, 1000);
        int copied = harness.number("copy", 0, 0, 1024) << 20;
        Thread late = new Thread(copied > 0 ? () -> copy(copied) : loops(millis), "late-one");
        late.start();
        while (copied > 0 && !copying) {
            Thread.sleep(1);
        }
        Thread[] pollers = new Thread[polling];
        for (int i = 0; i < polling; i++) {
            pollers[i] = new Thread(() -> {
                while (!over) {
                    sink += pollingLoop();
                }
            }, "polling-one");
            pollers[i].start();
        }
        harness.ready();
        long asked = 0;
        while (harness.timeLeft()) {
            System.gc();
            asked++;
            Thread.sleep(pause);
        }
        over = true;
        late.join();
        for (Thread poller : pollers) {
            poller.join();
        }
        harness.info("asked", asked);
        harness.finish();
    }

    private static Runnable loops(int millis) {
        for (int i = 0; i < 200; i++) {
            sink += lateLoop(1);
        }
        int rounds = rounds(millis);
        return () -> {
            while (!over) {
                sink += lateLoop(rounds);
            }
        };
    }

    private static void copy(int bytes) {
        byte[] from = new byte[bytes];
        byte[] to = new byte[bytes];
        // Compiled before it copies much.
        for (int i = 0; i < 30_000; i++) {
            copy(from, to, 8);
        }
        copying = true;
        while (!over) {
            copy(from, to, bytes);
            sink += to[(int) (sink & 7)];
        }
    }

    private static void copy(byte[] from, byte[] to, int bytes) {
        System.arraycopy(from, 0, to, 0, bytes);
    }

    /** How many rounds of the loop take so much CPU time, once it is compiled for good. */
    private static int rounds(int millis) {
        long spent = 0;
        int rounds = 1;
        long tookUs = 0;
        while (spent < 500_000 || tookUs < 5000) {
            long begin = CpuClock.threadNanos();
            sink += lateLoop(rounds);
            tookUs = (CpuClock.threadNanos() - begin) / 1000;
            spent += tookUs;
            if (tookUs < 5000) {
                rounds *= 2;
            }
        }
        return (int) Math.max(1, rounds * (millis * 1000L) / tookUs);
    }

    /** Counted loops with int indexes: without polls if the JVM is told so. */
    private static long lateLoop(int rounds) {
        long sum = 0;
        int[] all = numbers;
        for (int round = 0; round < rounds; round++) {
            for (int i = 0; i < all.length; i++) {
                sum += all[i] ^ (sum << 3);
            }
        }
        return sum;
    }

    private static long pollingLoop() {
        long sum = 0;
        for (long i = 0; i < 10_000; i++) {
            sum += i ^ (sum << 3);
        }
        return sum;
    }
}
