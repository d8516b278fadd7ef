package io.dwell.chaos;

/** Work whose result can be verified: steps of a generator forwards, and its inverse back. */
final class Work {
    private static final long FACTOR = 6364136223846793005L;
    private static final long ADD = 1442695040888963407L;
    private static final long INVERSE = inverse();

    private Work() {}

    /** Newton's iteration: each step doubles the number of right bits. */
    private static long inverse() {
        long inverse = FACTOR;
        for (int i = 0; i < 6; i++) {
            inverse *= 2 - FACTOR * inverse;
        }
        return inverse;
    }

    static long there(long x, int steps) {
        for (int i = 0; i < steps; i++) {
            x = x * FACTOR + ADD;
        }
        return x;
    }

    static long back(long x, int steps) {
        for (int i = 0; i < steps; i++) {
            x = (x - ADD) * INVERSE;
        }
        return x;
    }

    /** Steps forwards through this number of frames, one step in each. */
    static long deep(long x, int frames) {
        if (frames == 0) {
            return x;
        }
        return deep(x * FACTOR + ADD, frames - 1);
    }
}
