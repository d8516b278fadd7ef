import java.util.ArrayList;
import java.util.List;

/** Keeps one thread busy for the given milliseconds, next to one that sleeps and one in native code. */
public class Busy {
    static volatile double sink;

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000;
        Thread sleeper = new Thread(() -> rest(end), "sleeper \u2615");
        sleeper.start();
        List<byte[]> garbage = new ArrayList<>();
        while (System.nanoTime() < end) {
            sink += recurse(40, 2000);
            garbage.add(new byte[1000]);
            if (garbage.size() == 10_000) {
                garbage.clear();
            }
        }
        sleeper.join();
    }

    private static void rest(long end) {
        try {
            while (System.nanoTime() < end) {
                Thread.sleep(20);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static double recurse(int depth, int work) {
        if (depth > 0) {
            return recurse(depth - 1, work) + 1;
        }
        double sum = 0;
        for (int i = 0; i < work; i++) {
            sum += Math.sin(i);
        }
        return sum;
    }
}
