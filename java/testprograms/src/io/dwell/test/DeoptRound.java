package io.dwell.test;

/**
 * One round of {@link DeoptStorm}, loaded anew for each round, so that no compiler remembers what
 * went wrong the last time.
 */
public final class DeoptRound implements Burner {
    private static final int DEPTH = 40;
    private static final int HOT_CALLS = 3_000;
    private static final int SURPRISES = 5;

    private final int[] array = new int[64];
    /** Set where the recursion is deepest, to make happen there what never happened before. */
    private int surprise;

    abstract static class Shape {
        abstract long area(long x);
    }

    /** The only subclass while the code gets hot: its method is inlined without a check. */
    static final class Square extends Shape {
        @Override
        long area(long x) {
            return x * 31 + 1;
        }
    }

    static final class Circle extends Shape {
        @Override
        long area(long x) {
            return x * 37 + 2;
        }
    }

    static final class Line extends Shape {
        @Override
        long area(long x) {
            return x ^ 41;
        }
    }

    /**
     * Makes the later subclasses. A class of its own, or else the verifier would load them with
     * {@link DeoptRound}.
     */
    static final class Late {
        private Late() {}

        static Shape circle() {
            return new Circle();
        }

        static Shape line() {
            return new Line();
        }
    }

    @Override
    public long burn(CpuBudget budget, long x) {
        long value = x;
        do {
            surprise = 0;
            value = hot(new Square(), value);
            for (int i = 1; i <= SURPRISES; i++) {
                value = descend(new Square(), DEPTH, i, value);
            }
        } while (!budget.spent());
        return value;
    }

    private long hot(Shape shape, long x) {
        long value = x;
        for (int i = 0; i < HOT_CALLS; i++) {
            surprise = 0;
            value = descend(shape, DEPTH, 0, value);
        }
        return value;
    }

    /** At the bottom the surprise is set: each frame meets it on its way back. */
    private long descend(Shape shape, int left, int surpriseAtBottom, long x) {
        if (left == 0) {
            surprise = surpriseAtBottom;
            return surpriseAtBottom == 1 ? newSubclass(x) : x;
        }
        long value = descend(shape, left - 1, surpriseAtBottom, x);
        return value + shape.area(value) + uncommon(shape, left, value);
    }

    /** Loading the second subclass invalidates all code that relied on there being one. */
    private static long newSubclass(long x) {
        return Late.circle().area(x);
    }

    private long uncommon(Shape shape, int left, long x) {
        switch (surprise) {
            case 2:
                return Late.line().area(x);
            case 3:
                return typeSurprise(left % 2 == 0 ? Late.circle() : shape, x);
            case 4:
                return nullSurprise(left % 2 == 0 ? null : shape, x);
            case 5:
                return boundsSurprise(left % 2 == 0 ? array.length : left % array.length);
            default:
                return typeSurprise(shape, x) + nullSurprise(shape, x)
                        + boundsSurprise(left % array.length);
        }
    }

    private static long typeSurprise(Shape shape, long x) {
        return shape instanceof Square ? x + 1 : shape.area(x);
    }

    private static long nullSurprise(Shape shape, long x) {
        try {
            return shape.area(x);
        } catch (NullPointerException e) {
            return x + 3;
        }
    }

    private long boundsSurprise(int index) {
        try {
            return array[index]++;
        } catch (ArrayIndexOutOfBoundsException e) {
            return index;
        }
    }
}
