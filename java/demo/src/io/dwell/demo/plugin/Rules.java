package io.dwell.demo.plugin;

/**
 * Rules that are compiled before they are used much. {@code dwell demo} starts the JVM so that a
 * caller of {@link #score} waits for the compilation.
 */
public final class Rules {
    /** Number of calls after which both compilers have compiled it. */
    private static final int CALLS = 12_000;

    private Rules() {}

    /** The sum of many scores. */
    public static int sum(Integer seed) {
        int sum = 0;
        for (int call = 0; call < CALLS; call++) {
            sum += score(seed + call);
        }
        return sum;
    }

    /** Much code that is quick to run. */
    static int score(int order) {
        int score = weight(order, order, 3) + weight(order, order, 5);
        return weight(score, order, 7) ^ weight(score, order, 11);
    }

    private static int weight(int score, int order, int factor) {
        int weight = score;
        for (int digit = 0; digit < 4; digit++) {
            int part = order >>> digit * 8 & 0xff;
            weight = (part & 1) == 0 ? weight * factor + part : Integer.rotateLeft(weight, part);
        }
        return weight;
    }
}
