package io.dwell.test;

/** Burns below very many frames (1200 by default) all the time. */
public final class DeepStacks {
    private static final long STACK_BYTES = 64L << 20;
    private static final long BATCH_NS = 200_000_000;

    private DeepStacks() {}

    public static void main(String[] args) throws InterruptedException {
        Harness harness = new Harness("DeepStacks", 5, args, "frames", "threads");
        int frames = harness.number("frames", 1200, 1, 100_000);
        int threads = harness.number("threads", 1, 1, 64);
        TruthTable truths = new TruthTable();
        Burn.warmUp();
        harness.ready();
        Workers workers = new Workers();
        for (int i = 1; i <= threads; i++) {
            workers.startOne("deep-" + i, i, STACK_BYTES, n -> run(harness, frames, truths));
        }
        workers.join();
        harness.info("frames_of_descend", frames);
        truths.print(harness);
        harness.finish();
    }

    private static void run(Harness harness, int frames, TruthTable truths) {
        CpuBudget budget = new CpuBudget();
        while (harness.timeLeft()) {
            truths.measure("deepRoot", budget.grant(BATCH_NS), b -> deepRoot(frames, b));
        }
    }

    private static long deepRoot(int frames, CpuBudget budget) {
        return Recursion.descend(frames, budget, 1);
    }
}
