package io.dwell.test;

/**
 * Libraries that come and go: A is opened, burns and is closed; B is opened, in all likelihood at
 * the address A had, and burns; A is opened again, elsewhere, and burns. Round after round.
 */
public final class DlReload {
    /** About 20 microseconds. */
    private static final long STEPS = 15_000;

    private final Harness harness;
    private final TruthTable truths = new TruthTable();
    private final CpuBudget budget = new CpuBudget();
    private final long burnNanos;
    private int sameBase;

    private DlReload(String[] args) {
        harness = new Harness("DlReload", 6, args, "burn_ms", "rounds");
        burnNanos = harness.number("burn_ms", 1000, 1, 10_000) * 1_000_000L;
    }

    public static void main(String[] args) throws InterruptedException {
        DlReload program = new DlReload(args);
        Burn.sink = NativeSupport.threadCpuNanos();
        program.harness.ready();
        Workers.start("dlreload", 1, number -> program.run()).join();
        program.harness.finish();
    }

    private void run() {
        int roundsMax = harness.number("rounds", 1_000_000, 1, 1_000_000);
        int rounds = 0;
        while (harness.timeLeft() && rounds < roundsMax) {
            oneRound();
            rounds++;
        }
        harness.info("rounds", rounds);
        harness.info("b_at_address_of_a", sameBase);
        truths.print(harness);
    }

    private void oneRound() {
        long a = open("alpha");
        long baseOfA = NativeSupport.base(a);
        truths.measure("alpha_burn", budget.grant(burnNanos), b -> burnAlphaFirst(a, b));
        close(a);
        long b = open("beta");
        if (NativeSupport.base(b) == baseOfA) {
            sameBase++;
        }
        truths.measure("beta_burn", budget.grant(burnNanos), left -> burnBeta(b, left));
        long again = open("alpha");
        harness.info("bases", Long.toHexString(baseOfA) + " "
                + Long.toHexString(NativeSupport.base(b)) + " "
                + Long.toHexString(NativeSupport.base(again)));
        truths.measure("alpha_burn_again", budget.grant(burnNanos),
                left -> burnAlphaAgain(again, left));
        close(b);
        close(again);
    }

    private long open(String name) {
        long handle = NativeSupport.open(NativeSupport.library(name));
        if (handle == 0) {
            throw new IllegalStateException("cannot open the library " + name);
        }
        return handle;
    }

    private static void close(long handle) {
        if (!NativeSupport.close(handle)) {
            throw new IllegalStateException("dlclose failed");
        }
    }

    // Three methods, so that a profile tells by Java frames which library must have run.
    private static long burnAlphaFirst(long handle, CpuBudget budget) {
        return burn(handle, "alpha_burn", budget);
    }

    private static long burnBeta(long handle, CpuBudget budget) {
        return burn(handle, "beta_burn", budget);
    }

    private static long burnAlphaAgain(long handle, CpuBudget budget) {
        return burn(handle, "alpha_burn", budget);
    }

    private static long burn(long handle, String function, CpuBudget budget) {
        long x = 0;
        do {
            x += NativeSupport.call(handle, function, STEPS);
        } while (!budget.spent());
        return x;
    }
}
