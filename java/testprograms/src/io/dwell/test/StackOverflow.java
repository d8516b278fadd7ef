package io.dwell.test;

/** Overflows its stack again and again: samples are taken next to the guard pages. */
public final class StackOverflow {
    private static final long BATCH_NS = 20_000_000;

    private int overflows;

    private StackOverflow() {}

    public static void main(String[] args) throws InterruptedException {
        Harness harness = new Harness("StackOverflow", 5, args, "stack_kb");
        long stackBytes = harness.number("stack_kb", 512, 256, 65_536) * 1024L;
        Burn.warmUp();
        harness.ready();
        StackOverflow program = new StackOverflow();
        new Workers().startOne("overflow-1", 1, stackBytes, n -> program.run(harness)).join();
        harness.finish();
    }

    private void run(Harness harness) {
        TruthTable truths = new TruthTable();
        CpuBudget budget = new CpuBudget();
        while (harness.timeLeft()) {
            truths.measure("overflowRoot", budget.grant(BATCH_NS), this::overflowRoot);
            truths.measure("betweenOverflows", budget.grant(BATCH_NS / 4),
                    StackOverflow::betweenOverflows);
        }
        harness.info("overflows", overflows);
        truths.print(harness);
    }

    private long overflowRoot(CpuBudget budget) {
        long x = 0;
        do {
            try {
                x += recurse(x);
            } catch (StackOverflowError e) {
                overflows++;
            }
        } while (!budget.spent());
        return x;
    }

    private static long recurse(long x) {
        return recurse(x * 31 + 1) + 1;
    }

    private static long betweenOverflows(CpuBudget budget) {
        return Burn.until(budget, 1);
    }
}
