import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Makes a compiler assume what then becomes wrong, again and again: receivers of other classes,
 * branches never taken, null, indexes out of bounds, casts. Objects that the compiler has removed,
 * and monitors on them, have to be made again at these moments.
 */
public final class Deopt {
    /** Compiled code first sees one implementation of it. */
    public interface Shape {
        long area(long scale);
    }

    record Square(long side) implements Shape {
        public long area(long scale) {
            return side * side * scale;
        }
    }

    record Bar(long width, long height) implements Shape {
        public long area(long scale) {
            return width * height + scale;
        }
    }

    private static final int STEADY_RUNS = 400;
    private static long checksum;

    private Deopt() {}

    /** Runs this many rounds. Each has a phase in which assumptions hold, and one that breaks them. */
    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        for (int round = 0; round < rounds; round++) {
            // A loader of its own gives classes that no compiled code has seen.
            Work work = (Work) new Again().loadClass("Deopt$Job").getDeclaredConstructor().newInstance();
            List<Shape> shapes = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                shapes.add(new Square(i));
            }
            // Enough work for the compiler, which runs at the same time.
            for (int i = 0; i < STEADY_RUNS; i++) {
                checksum += work.run(shapes, 200, 1);
            }
            for (int i = 0; i < 20; i++) {
                shapes.set(i, new Bar(i, round));
            }
            checksum += work.run(shapes, 60, 1);
            shapes.set(100, null);
            checksum += work.run(shapes, 60, ThreadLocalRandom.current().nextInt(3));
        }
        System.out.println("checksum " + checksum);
    }

    /** The work of a new class. */
    public interface Work {
        long run(List<Shape> shapes, int times, int step);
    }

    /** Loaded again in each round. */
    public static final class Job implements Work {
        private long[] sums = new long[64];

        @Override
        public long run(List<Shape> shapes, int times, int step) {
            long sum = 0;
            for (int i = 0; i < times; i++) {
                sum += pass(shapes, i, step);
            }
            return sum;
        }

        private long pass(List<Shape> shapes, int at, int step) {
            long sum = 0;
            for (Shape shape : shapes) {
                Pair pair = new Pair(at, sum);
                try {
                    synchronized (pair) {
                        pair.right += shape.area(pair.left);
                        sums[(int) ((pair.right & 63) * step)] += pair.right;
                    }
                    sum += pair.right;
                } catch (NullPointerException | IndexOutOfBoundsException rare) {
                    sum -= pair.left;
                }
            }
            return sum;
        }
    }

    /** Two numbers that stay in registers. */
    static final class Pair {
        long left;
        long right;

        Pair(long left, long right) {
            this.left = left;
            this.right = right;
        }
    }

    /** Defines the job and its pairs. All other classes come from its parent. */
    static final class Again extends ClassLoader {
        Again() {
            super(Deopt.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.equals("Deopt$Job") && !name.equals("Deopt$Pair")) {
                return super.loadClass(name, resolve);
            }
            Class<?> loaded = findLoadedClass(name);
            if (loaded != null) {
                return loaded;
            }
            try (java.io.InputStream in = getParent().getResourceAsStream(name + ".class")) {
                byte[] bytes = in.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (java.io.IOException error) {
                throw new ClassNotFoundException(name, error);
            }
        }
    }
}
