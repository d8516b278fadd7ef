package io.dwell.chaos;

import java.util.Random;

/** Stacks that are deep, overflow, or are left by exceptions. */
final class Stacks {
    private Stacks() {}

    /** Overflows stacks of all sizes, on separate threads. */
    static final class Overflow extends Antagonist {
        Overflow() {
            super("overflow");
        }

        @Override
        void round(Random random) throws Exception {
            long[] depths = new long[5];
            Thread thread = new Thread(null, helper(() -> {
                for (int i = 0; i < depths.length; i++) {
                    try {
                        down(depths, i, 1, 2, 3);
                    } catch (StackOverflowError e) {
                        // The expected error.
                    }
                }
            }), "overflow", (256 + random.nextInt(768)) << 10);
            thread.start();
            thread.join();
            helpersEnded();
            for (long depth : depths) {
                sure(depth > 100, "overflow at depth " + depth);
            }
        }

        private static long down(long[] depths, int at, long a, long b, double c) {
            depths[at]++;
            return down(depths, at, b, a + 1, c * 2) + a;
        }
    }

    /** Deep recursion that returns. */
    static final class Deep extends Antagonist {
        Deep() {
            super("deep");
        }

        @Override
        void round(Random random) throws Exception {
            int frames = 200 + random.nextInt(4000);
            long x = random.nextLong();
            long[] result = new long[1];
            Runnable work = helper(() -> result[0] = Work.deep(x, frames));
            Thread thread = new Thread(null, work, "deep", 8 << 20);
            thread.start();
            thread.join();
            helpersEnded();
            same(x, Work.back(result[0], frames));
        }
    }

    /** Exceptions detected by the hardware, and others, thrown through many frames. */
    static final class Exceptions extends Antagonist {
        private static final int TURNS = 1500;
        private final int[] none = null;
        private final int[] few = new int[3];
        private final Object text = "text";

        Exceptions() {
            super("exceptions");
        }

        @Override
        void round(Random random) {
            int[] caught = new int[5];
            for (int i = 0; i < TURNS; i++) {
                try {
                    fail(i % 5, 1 + i % 30);
                } catch (NullPointerException e) {
                    caught[0]++;
                } catch (ArithmeticException e) {
                    caught[1]++;
                } catch (ArrayIndexOutOfBoundsException e) {
                    caught[2]++;
                } catch (ClassCastException e) {
                    caught[3]++;
                } catch (IllegalStateException e) {
                    caught[4]++;
                }
            }
            for (int count : caught) {
                same(TURNS / 5, count);
            }
        }

        private int fail(int kind, int frames) {
            if (frames > 0) {
                return fail(kind, frames - 1) + 1;
            }
            switch (kind) {
                case 0:
                    return none.length;
                case 1:
                    return 1 / few[0];
                case 2:
                    return few[few.length + kind];
                case 3:
                    return ((Integer) text).intValue();
                default:
                    throw new IllegalStateException();
            }
        }
    }
}
