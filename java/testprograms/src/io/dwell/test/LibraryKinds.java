package io.dwell.test;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.function.LongUnaryOperator;
import java.util.stream.IntStream;

/**
 * Kinds of work that applications do: collections, strings, streams, exceptions, dispatch. Each
 * ends in a method {@code kind_NAME} as in {@link ComputeKinds}. Must not be used by two threads.
 */
final class LibraryKinds {
    private static final int ITEMS = 200;
    private static final int THROW_DEPTH = 6;

    private final Map<String, Integer> counts = new HashMap<>();
    private final int[] unsorted = new Random(5).ints(ITEMS).toArray();
    private final String[] keys = new String[ITEMS];
    private final LongUnaryOperator[] operators = {
        v -> v + 1, v -> v * 31, v -> v ^ 0x55, v -> v >>> 1, v -> v << 3, v -> -v, v -> v | 1,
        v -> v * v,
    };
    private final Method reflected;
    private long x = 1;

    LibraryKinds() {
        for (int i = 0; i < ITEMS; i++) {
            keys[i] = "key-" + unsorted[i];
        }
        try {
            reflected = LibraryKinds.class.getDeclaredMethod("reflectedStep", long.class);
        } catch (NoSuchMethodException e) {
            throw new IllegalStateException("declared below", e);
        }
    }

    long kind_streams(CpuBudget budget) {
        do {
            x += IntStream.of(unsorted).filter(v -> (v & 3) != 0).mapToLong(v -> v * 7L).sum();
            x += Arrays.stream(keys).map(String::length).reduce(0, Integer::sum);
        } while (!budget.spent());
        return x;
    }

    long kind_exceptions(CpuBudget budget) {
        do {
            try {
                throwDeep(THROW_DEPTH);
            } catch (IllegalStateException e) {
                x += e.getMessage().length();
            }
        } while (!budget.spent());
        return x;
    }

    private static void throwDeep(int depth) {
        if (depth == 0) {
            throw new IllegalStateException("on purpose");
        }
        throwDeep(depth - 1);
    }

    long kind_strings(CpuBudget budget) {
        do {
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < 50; i++) {
                text.append(keys[i]).append('=').append(x + i).append(',');
            }
            x += text.toString().hashCode();
        } while (!budget.spent());
        return x;
    }

    long kind_hashMap(CpuBudget budget) {
        do {
            for (String key : keys) {
                counts.merge(key, 1, Integer::sum);
            }
            x += counts.size();
            if ((++x & 63) == 0) {
                counts.clear();
            }
        } while (!budget.spent());
        return x;
    }

    long kind_sort(CpuBudget budget) {
        do {
            String[] copy = keys.clone();
            Arrays.sort(copy, (a, b) -> b.compareTo(a));
            x += copy[0].length();
        } while (!budget.spent());
        return x;
    }

    /** Eight receivers at one call: dispatched through the interface table. */
    long kind_megamorphic(CpuBudget budget) {
        do {
            for (int i = 0; i < 2000; i++) {
                x = operators[i & 7].applyAsLong(x);
            }
        } while (!budget.spent());
        return x;
    }

    long kind_reflection(CpuBudget budget) {
        do {
            try {
                for (int i = 0; i < 100; i++) {
                    x = (Long) reflected.invoke(null, x);
                }
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        } while (!budget.spent());
        return x;
    }

    static long reflectedStep(long value) {
        return value * 31 + 7;
    }
}
