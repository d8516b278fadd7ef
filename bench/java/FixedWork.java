/**
 * An amount of work that is always the same, so that the CPU time of two runs can be compared:
 * {@code deep FRAMES ROUNDS} works below FRAMES frames,
 * {@code alloc THREADS ROUNDS} makes garbage on THREADS threads.
 */
public final class FixedWork {
    private static final long STACK_BYTES = 64L << 20;
    private static final int STEPS_PER_ROUND = 5_000_000;
    private static final int OBJECTS_PER_ROUND = 400_000;
    private static final int DESCENT_STEPS = 50;

    static volatile long sink;

    /** Objects that a thread keeps for a while: garbage of several ages. */
    private final Object[] window = new Object[4096];

    private FixedWork() {}

    public static void main(String[] args) throws InterruptedException {
        int number = Integer.parseInt(args[1]);
        int rounds = Integer.parseInt(args[2]);
        boolean deep = args[0].equals("deep");
        Thread[] threads = new Thread[deep ? 1 : number];
        for (int i = 0; i < threads.length; i++) {
            Runnable work = deep ? () -> deep(number, rounds) : () -> new FixedWork().alloc(rounds);
            threads[i] = new Thread(null, work, "fixed-" + (i + 1), STACK_BYTES);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static void deep(int frames, int rounds) {
        for (int i = 0; i < rounds; i++) {
            sink = descend(frames, i);
        }
    }

    private static long descend(int left, long value) {
        if (left > 1) {
            return descend(left - 1, value + left) + 1;
        }
        long result = value;
        for (int i = 0; i < STEPS_PER_ROUND / DESCENT_STEPS; i++) {
            result = step(result, i);
        }
        return result;
    }

    private static long step(long value, int salt) {
        long result = value;
        for (int i = 0; i < DESCENT_STEPS; i++) {
            result = result * 6364136223846793005L + salt;
            result ^= result >>> 29;
        }
        return result;
    }

    private void alloc(int rounds) {
        long sum = 0;
        for (int round = 0; round < rounds; round++) {
            for (int i = 0; i < OBJECTS_PER_ROUND; i++) {
                sum += make(i);
            }
        }
        sink = sum;
    }

    private int make(int i) {
        Object made;
        switch (i & 3) {
            case 0:
                made = new long[i & 63];
                break;
            case 1:
                made = new StringBuilder("object ").append(i).toString();
                break;
            case 2:
                made = new Object[] {window[(i * 31) & 4095]};
                break;
            default:
                made = Long.valueOf(i * 1000L);
                break;
        }
        window[i & 4095] = made;
        return made.hashCode() & 1;
    }
}
