package io.dwell.test;

/** JNI libraries loaded at run time: one burns in an exported function, one in a static one. */
public final class JniLoad {
    /** About 20 microseconds. */
    private static final long STEPS = 15_000;
    private static final long BATCH_NS = 20_000_000;

    private JniLoad() {}

    private static native long burnExported(long steps);

    private static native long burnStatic(long steps);

    public static void main(String[] args) throws InterruptedException {
        Harness harness = new Harness("JniLoad", 5, args);
        harness.ready();
        // Loaded after the gate: a profiler that is already attached has to notice.
        System.load(NativeSupport.library("jni_exported"));
        System.load(NativeSupport.library("jni_static"));
        Workers.start("jniload", 1, number -> run(harness)).join();
        harness.finish();
    }

    private static void run(Harness harness) {
        TruthTable truths = new TruthTable();
        CpuBudget budget = new CpuBudget();
        while (harness.timeLeft()) {
            truths.measure("exported_native_burn", budget.grant(BATCH_NS),
                    JniLoad::exportedRoot);
            truths.measure("static_native_burn", budget.grant(BATCH_NS), JniLoad::staticRoot);
        }
        truths.print(harness);
    }

    private static long exportedRoot(CpuBudget budget) {
        long x = 0;
        do {
            x += burnExported(STEPS);
        } while (!budget.spent());
        return x;
    }

    private static long staticRoot(CpuBudget budget) {
        long x = 0;
        do {
            x += burnStatic(STEPS);
        } while (!budget.spent());
        return x;
    }
}
