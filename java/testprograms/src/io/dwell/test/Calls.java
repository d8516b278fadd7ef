package io.dwell.test;

/**
 * Calls so short that most samples fall into what leads from one frame to the next: entries, exits,
 * adapters. Each method is called on one line only, where it is named, so the line of a frame tells
 * what the frame above it must be; a checker reads this file.
 */
public final class Calls {
    private static final RuntimeException THROWN = new QuietException();

    private final Shape round = new Round();
    private final Shape flat = new Flat();
    private long value = 1;

    interface Shape {
        long area(long side);
    }

    static final class Round implements Shape {
        @Override
        public long area(long side) {
            return step(side) + 1;
        }
    }

    static final class Flat implements Shape {
        @Override
        public synchronized long area(long side) {
            return step(side) + 2;
        }
    }

    static final class QuietException extends RuntimeException {
        private static final long serialVersionUID = 1;

        QuietException() {
            super(null, null, false, false);
        }
    }

    public static void main(String[] args) throws Exception {
        Harness harness = new Harness("Calls", 3, args);
        harness.ready();
        Workers workers = Workers.start("calls", 2, number -> new Calls().live(harness));
        workers.join();
        harness.finish();
    }

    static long step(long x) {
        long stepped = x;
        for (int i = 0; i < 3; i++) {
            stepped = stepped * 31 + 7;
        }
        return stepped;
    }

    private void live(Harness harness) {
        while (harness.timeLeft()) {
            for (int i = 0; i < 1000; i++) {
                round();
            }
        }
        Burn.sink = value;
    }

    private void round() {
        first();
        two(value, 2);
        second();
        value = five(1, 2, value, 4, this);
        third();
        wide(value, 2, 3, 4);
        locked();
        try {
            throwing();
        } catch (QuietException e) {
            caught();
        }
        virtual(round);
        lockedVirtual(flat);
        natives();
        last();
    }

    private void first() {
        value = step(value);
    }

    private void second() {
        value = step(value);
    }

    private void third() {
        value = step(value);
    }

    private void last() {
        value = step(value);
    }

    private void caught() {
        value = step(value);
    }

    private static long two(long a, long b) {
        return a + b;
    }

    private static long five(long a, long b, long c, int d, Object e) {
        return step(a) + b + c + d + (e == null ? 1 : 0);
    }

    private void wide(long a, long b, long c, long d) {
        long sum = a + b;
        long other = c + d;
        long product = sum * other;
        value = step(product ^ a);
    }

    private synchronized void locked() {
        value = step(value);
    }

    private void throwing() {
        if (value != 0 || Burn.sink != 0) {
            throw THROWN;
        }
    }

    private void virtual(Shape shape) {
        value = shape.area(value);
    }

    private void lockedVirtual(Shape shape) {
        value = shape.area(value);
    }

    private void natives() {
        value += System.identityHashCode(this) + Math.abs(value);
    }
}
