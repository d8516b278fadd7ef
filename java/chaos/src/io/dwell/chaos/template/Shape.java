package io.dwell.chaos.template;

/** Has one subclass at first, so that compiled code binds its calls, and later two. */
abstract class Shape {
    abstract long apply(long x);

    static final class First extends Shape {
        @Override
        long apply(long x) {
            return x * 31 + 7;
        }
    }

    static final class Second extends Shape {
        @Override
        long apply(long x) {
            return x ^ 0x5555;
        }
    }
}
