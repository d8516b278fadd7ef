package io.dwell.test;

import java.util.concurrent.TimeUnit;

/**
 * A JVM that hangs: one thread is in a counted loop without a safepoint poll, another has asked
 * for a collection and waits, with all others, until the loop ends. Needs
 * -XX:-UseCountedLoopSafepoints -XX:LoopStripMiningIter=0, the default only of some collectors;
 * {@code stall_max_us} tells whether it did hang.
 */
public final class Hang {
    private static final int CALIBRATION_STEPS = 20_000_000;

    private Hang() {}

    public static void main(String[] args) throws InterruptedException {
        Harness harness = new Harness("Hang", 6, args, "gc", "spinners");
        boolean collect = harness.number("gc", 1, 0, 1) == 1;
        int spinners = harness.number("spinners", 1, 1, 64);
        double nanosPerStep = calibrate();
        int steps = (int) Math.min(Integer.MAX_VALUE,
                TimeUnit.SECONDS.toNanos(harness.seconds()) / nanosPerStep);
        TruthTable truths = new TruthTable();
        harness.ready();
        StallMeter meter = StallMeter.start(1000, false);
        Workers workers = Workers.start("spinner", spinners,
                number -> truths.measure("spinInCountedLoop", new CpuBudget(),
                        budget -> spinInCountedLoop(steps, number)));
        if (collect) {
            workers.startOne("asks-for-gc", 0, 0, number -> {
                TimeUnit.MILLISECONDS.sleep(300);
                System.gc();
            });
        }
        workers.join();
        harness.info("stall_max_us", meter.takeMaxMicros());
        truths.print(harness);
        harness.finish();
    }

    /** Compiles the loop as well. */
    private static double calibrate() {
        double nanosPerStep = 0;
        for (int i = 0; i < 10; i++) {
            long before = CpuClock.threadNanos();
            Burn.sink = spinInCountedLoop(CALIBRATION_STEPS, i);
            nanosPerStep = (double) (CpuClock.threadNanos() - before) / CALIBRATION_STEPS;
        }
        return Math.max(0.1, nanosPerStep);
    }

    /** Dependent multiplications, as many as an int can count: up to about a minute. */
    private static long spinInCountedLoop(int steps, long x) {
        long value = x;
        for (int i = 0; i < steps; i++) {
            value = (value ^ i) * 0x9E3779B97F4A7C15L;
            value = (value ^ i) * 0xFF51AFD7ED558CCDL;
            value = (value ^ i) * 0xC4CEB9FE1A85EC53L;
            value = (value ^ i) * 0x9FB21C651E98DF25L;
            value = (value ^ i) * 0xD6E8FEB86659FD93L;
            value = (value ^ i) * 0x94D049BB133111EBL;
        }
        return value;
    }
}
