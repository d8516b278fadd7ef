package io.dwell.test;

/** Loads classes at full speed, or at a rate, each in a loader that is dropped at once. */
public final class ClassLoadChurn {
    private static final long BATCH_NS = 20_000_000;

    private int loaded;

    private ClassLoadChurn() {}

    public static void main(String[] args) throws InterruptedException {
        Harness harness = new Harness("ClassLoadChurn", 5, args, "methods");
        int methods = harness.number("methods", 10, 1, 1000);
        harness.ready();
        Workers.start("loadchurn", 1, number -> new ClassLoadChurn().run(harness, methods)).join();
        harness.finish();
    }

    private void run(Harness harness, int methods) {
        TruthTable truths = new TruthTable();
        CpuBudget budget = new CpuBudget();
        while (harness.timeLeft()) {
            truths.measure("loadChurnRoot", budget.grant(BATCH_NS),
                    b -> loadChurnRoot(b, methods));
            truths.measure("betweenLoads", budget.grant(BATCH_NS), ClassLoadChurn::betweenLoads);
        }
        harness.info("classes_loaded", loaded);
        truths.print(harness);
    }

    private long loadChurnRoot(CpuBudget budget, int methods) {
        long x = 0;
        do {
            String name = "io/dwell/test/generated/Churn" + ++loaded;
            Class<?> made = new DefiningLoader().define(GeneratedClasses.filler(name, methods));
            x += made.getDeclaredMethods().length;
        } while (!budget.spent());
        return x;
    }

    private static long betweenLoads(CpuBudget budget) {
        return Burn.until(budget, 1);
    }
}
