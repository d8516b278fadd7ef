package io.dwell.test;

/**
 * Compiled code that keeps turning out wrong: in each round private copies of the same classes
 * are loaded and made hot, then the class hierarchy changes, and branches, types and nulls come
 * up that the compiler had ruled out, below a recursion whose frames are compiled by then.
 */
public final class DeoptStorm {
    private static final long BATCH_NS = 20_000_000;

    private final TruthTable truths = new TruthTable();
    private int rounds;

    private DeoptStorm() {}

    public static void main(String[] args) throws InterruptedException {
        Harness harness = new Harness("DeoptStorm", 6, args, "threads");
        int threads = harness.number("threads", 1, 1, 64);
        DeoptStorm storm = new DeoptStorm();
        Burn.warmUp();
        harness.ready();
        Workers.start("deopt", threads, number -> storm.run(harness)).join();
        harness.info("rounds", storm.rounds);
        storm.truths.print(harness);
        harness.finish();
    }

    private void run(Harness harness) throws ClassNotFoundException {
        CpuBudget budget = new CpuBudget();
        while (harness.timeLeft()) {
            Burner round = freshRound();
            truths.measure("deoptRound", budget.grant(BATCH_NS), b -> deoptRound(round, b));
            truths.measure("betweenRounds", budget.grant(BATCH_NS / 2),
                    DeoptStorm::betweenRounds);
            countRound();
        }
    }

    private synchronized void countRound() {
        rounds++;
    }

    private static Burner freshRound() throws ClassNotFoundException {
        String name = DeoptRound.class.getName();
        DefiningLoader loader = new DefiningLoader(name, name + "$Shape", name + "$Square",
                name + "$Circle", name + "$Line", name + "$Late");
        return DefiningLoader.instantiate(loader.loadClass(name), Burner.class);
    }

    private static long deoptRound(Burner round, CpuBudget budget) {
        return round.burn(budget, 1);
    }

    private static long betweenRounds(CpuBudget budget) {
        return Burn.until(budget, 1);
    }
}
