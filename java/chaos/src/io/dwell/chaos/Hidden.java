package io.dwell.chaos;

import java.util.function.LongUnaryOperator;

/** The template of hidden classes; adds three a thousand times. */
public final class Hidden implements LongUnaryOperator {
    @Override
    public long applyAsLong(long x) {
        for (int i = 0; i < 1000; i++) {
            x = three(x);
        }
        return x;
    }

    private static long three(long x) {
        return x + 3;
    }
}
