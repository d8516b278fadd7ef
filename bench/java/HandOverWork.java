import java.util.concurrent.locks.LockSupport;

/** Two threads that hand over to each other after some 20 us of work, a given number of times. */
final class HandOverWork {
    private static final int STEPS = 10_000;

    private static volatile long sink;

    private final Thread[] threads = new Thread[2];
    private volatile int turn;

    private HandOverWork() {}

    static void run(int turns) throws InterruptedException {
        HandOverWork work = new HandOverWork();
        for (int i = 0; i < work.threads.length; i++) {
            int mine = i;
            work.threads[i] = new Thread(() -> work.take(mine, turns), "hand-" + i);
        }
        for (Thread thread : work.threads) {
            thread.start();
        }
        for (Thread thread : work.threads) {
            thread.join();
        }
    }

    private void take(int mine, int turns) {
        for (int done = 0; done < turns; ) {
            if ((turn & 1) != mine) {
                LockSupport.park(this);
                continue;
            }
            long value = done++;
            for (int i = 0; i < STEPS; i++) {
                value = (value ^ i) * 0x9E3779B97F4A7C15L;
            }
            sink = value;
            turn++;
            LockSupport.unpark(threads[1 - mine]);
        }
    }
}
