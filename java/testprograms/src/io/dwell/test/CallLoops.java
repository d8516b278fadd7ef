package io.dwell.test;

/** Calls with many receivers, exceptions, type checks, objects: stubs of the language itself. */
final class CallLoops {
    static final int KINDS = 10;
    private static final int TIMES = 20_000;
    private static final RuntimeException THROWN = new Thrown();

    private final Sided[] sided = {
        new One(), new Two(), new Three(), new Four(), new Five(), new Six()
    };
    private final Base[] bases = {
        new One(), new Two(), new Three(), new Four(), new Five(), new Six()
    };
    private final Object[] objects = {
        new One(), "text", new Three(), Integer.valueOf(4), new Five(), new Object[1]
    };
    private final double[] doubles = {1.5, Double.NaN, 1e300, -7, Double.NEGATIVE_INFINITY, 0};
    private final Object[] kept = new Object[1 << 16];
    private final int[] few = new int[4];
    private long value = 1;

    interface Sided {
        long sides(long x);
    }

    interface Other {
        long other();
    }

    abstract static class Base implements Other {
        abstract long corners(long x);

        @Override
        public long other() {
            return 1;
        }
    }

    static final class One extends Base implements Sided {
        @Override
        public long sides(long x) {
            return x + 1;
        }

        @Override
        long corners(long x) {
            return x - 1;
        }
    }

    static final class Two extends Base implements Sided {
        @Override
        public long sides(long x) {
            return x + 2;
        }

        @Override
        long corners(long x) {
            return x - 2;
        }
    }

    static final class Three extends Base implements Sided {
        @Override
        public long sides(long x) {
            return x + 3;
        }

        @Override
        long corners(long x) {
            return x - 3;
        }
    }

    static final class Four extends Base implements Sided {
        @Override
        public long sides(long x) {
            return x + 4;
        }

        @Override
        long corners(long x) {
            return x - 4;
        }
    }

    static final class Five extends Base implements Sided {
        @Override
        public long sides(long x) {
            return x + 5;
        }

        @Override
        long corners(long x) {
            return x - 5;
        }
    }

    static final class Six extends Base implements Sided {
        @Override
        public long sides(long x) {
            return x + 6;
        }

        @Override
        long corners(long x) {
            return x - 6;
        }
    }

    static final class Thrown extends RuntimeException {
        private static final long serialVersionUID = 1;

        Thrown() {
            super(null, null, false, false);
        }
    }

    void step(int kind) {
        switch (kind) {
            case 0:
                loopInterface();
                break;
            case 1:
                loopVirtual();
                break;
            case 2:
                loopThrow();
                break;
            case 3:
                loopBounds();
                break;
            case 4:
                loopInstanceOf();
                break;
            case 5:
                loopConvert();
                break;
            case 6:
                loopAllocate();
                break;
            case 7:
                loopStore();
                break;
            case 8:
                loopLock();
                break;
            default:
                loopNull();
                break;
        }
    }

    private void loopInterface() {
        long x = value;
        for (int i = 0, at = 0; i < TIMES; i++) {
            x += sided[at].sides(x);
            at = at == 5 ? 0 : at + 1;
        }
        value = x;
    }

    private void loopVirtual() {
        long x = value;
        for (int i = 0, at = 0; i < TIMES; i++) {
            x += bases[at].corners(x);
            at = at == 5 ? 0 : at + 1;
        }
        value = x;
    }

    private void loopThrow() {
        for (int i = 0; i < TIMES / 20; i++) {
            try {
                thrower(3);
            } catch (Thrown e) {
                value++;
            }
        }
    }

    private long thrower(int depth) {
        if (depth == 0) {
            throw THROWN;
        }
        return thrower(depth - 1) + value;
    }

    private void loopBounds() {
        for (int i = 0; i < TIMES / 100; i++) {
            try {
                value += few[i | 4];
            } catch (ArrayIndexOutOfBoundsException e) {
                value++;
            }
        }
    }

    private void loopNull() {
        for (int i = 0; i < TIMES / 100; i++) {
            try {
                value += lengthOf(i < 0 ? few : null);
            } catch (NullPointerException e) {
                value++;
            }
        }
    }

    private static int lengthOf(int[] array) {
        return array.length;
    }

    private void loopInstanceOf() {
        for (int i = 0, at = 0; i < TIMES; i++) {
            Object object = objects[at];
            value += object instanceof Other ? 1 : 0;
            value += object instanceof Sided ? 2 : 0;
            value += object instanceof Comparable ? 3 : 0;
            at = at == 5 ? 0 : at + 1;
        }
    }

    private void loopConvert() {
        for (int i = 0, at = 0; i < TIMES; i++) {
            double x = doubles[at];
            value += (int) x + (long) x + (int) (float) x + (long) (float) x;
            at = at == 5 ? 0 : at + 1;
        }
    }

    private void loopAllocate() {
        for (int i = 0; i < TIMES / 10; i++) {
            kept[i & 1023] = new One();
            kept[1024 | i & 1023] = new byte[i & 255];
            kept[2048 | i & 1023] = new Object[i & 63];
            kept[3072 | i & 1023] = new int[2][3];
        }
    }

    private void loopStore() {
        for (int i = 0; i < TIMES; i++) {
            kept[i * 7919 & kept.length - 1] = objects[i % 6];
        }
    }

    private void loopLock() {
        for (int i = 0; i < TIMES; i++) {
            synchronized (objects) {
                synchronized (few) {
                    value++;
                }
            }
        }
    }
}
