import java.util.concurrent.TimeUnit;

/**
 * A thread that counts without a poll. While it counts, no other thread can run after the first
 * request for a safepoint, and the JVM cannot even end.
 *
 * <p>A daemon thread calls a method that counts for about {@code seconds}, again and again. After a
 * third of that {@code main} asks for a collection, and after as long again it returns. It prints
 * how long the collection took, and the longest time in which a third thread, which wants to run
 * every 10 ms, could not.
 *
 * <p>Argument: {@code seconds} that a call takes, about (default 3).
 */
public final class NeverStops {
    private static final int[] NUMBERS = new int[1 << 16];
    private static volatile long sink;
    private static volatile long longestPauseNs;

    private NeverStops() {}

    public static void main(String[] args) throws InterruptedException {
        int seconds = args.length > 0 ? Integer.parseInt(args[0]) : 3;
        int rounds = roundsOf(TimeUnit.SECONDS.toNanos(seconds));
        Thread counting = daemon("counting", () -> {
            while (true) {
                sink += count(rounds);
            }
        });
        daemon("ticking", NeverStops::tick).start();
        counting.start();
        Thread.sleep(seconds * 1000L / 3);
        System.out.println("asks for a collection");
        long began = System.nanoTime();
        System.gc();
        System.out.println("collection ms " + millisSince(began));
        Thread.sleep(seconds * 1000L / 3);
        System.out.println("longest pause ms " + longestPauseNs / 1_000_000);
        System.out.println("main returns");
    }

    private static Thread daemon(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        return thread;
    }

    /** Loops whose number of rounds is known at their start: counted loops, for the compiler. */
    private static long count(int rounds) {
        long sum = 0;
        for (int round = 0; round < rounds; round++) {
            for (int i = 0; i < NUMBERS.length; i++) {
                sum += NUMBERS[i] ^ (sum << 3);
            }
        }
        return sum;
    }

    private static void tick() {
        long last = System.nanoTime();
        while (true) {
            try {
                Thread.sleep(10);
            } catch (InterruptedException e) {
                return;
            }
            long now = System.nanoTime();
            longestPauseNs = Math.max(longestPauseNs, now - last);
            last = now;
        }
    }

    /** Number of rounds in this time, after the last compilation of the loop. */
    private static int roundsOf(long wantedNs) {
        for (int i = 0; i < 1000; i++) {
            sink += count(1);
        }
        // Other work on the machine makes it longer, never shorter.
        int rounds = 200;
        long shortestNs = Long.MAX_VALUE;
        for (int i = 0; i < 5; i++) {
            long began = System.nanoTime();
            sink += count(rounds);
            shortestNs = Math.min(shortestNs, System.nanoTime() - began);
        }
        return (int) Math.max(1, rounds * wantedNs / shortestNs);
    }

    private static long millisSince(long began) {
        return (System.nanoTime() - began) / 1_000_000;
    }
}
