/**
 * An amount of work under one monitor that is always the same, so that two runs can be compared:
 * {@code THREADS ROUNDS INSIDE OUTSIDE} lets THREADS threads take it ROUNDS times each,
 * with INSIDE steps while they hold it and OUTSIDE steps while they do not.
 */
public final class ContendedWork {
    private static final Object LOCK = new Object();
    private static long shared;

    static volatile long sink;

    private ContendedWork() {}

    public static void main(String[] args) throws InterruptedException {
        int rounds = Integer.parseInt(args[1]);
        int inside = Integer.parseInt(args[2]);
        int outside = Integer.parseInt(args[3]);
        Thread[] threads = new Thread[Integer.parseInt(args[0])];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> work(rounds, inside, outside), "contended-" + (i + 1));
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        sink = shared;
    }

    private static void work(int rounds, int inside, int outside) {
        long own = 1;
        for (int round = 0; round < rounds; round++) {
            synchronized (LOCK) {
                shared = steps(shared + own, inside);
            }
            own = steps(own, outside);
        }
        sink = own;
    }

    private static long steps(long value, int count) {
        long result = value;
        for (int i = 0; i < count; i++) {
            result = result * 6364136223846793005L + i;
            result ^= result >>> 29;
        }
        return result;
    }
}
