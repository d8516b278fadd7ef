package io.dwell.chaos.template;

import java.util.function.LongUnaryOperator;

/** Code that every loader defines again, with lambdas of its own. */
public final class Task implements LongUnaryOperator {
    private static long started;

    /** Adds one a thousand times, through lambdas that capture and others that do not. */
    @Override
    public long applyAsLong(long x) {
        started++;
        LongUnaryOperator one = value -> value + 1;
        for (int i = 0; i < 500; i++) {
            long step = started;
            LongUnaryOperator capturing = value -> value + step / started;
            x = one.andThen(capturing).applyAsLong(x);
        }
        return x;
    }
}
