package io.dwell.test;

/**
 * Work in stubs of the JVM. Each kind is in a method of its own, named {@code loop...}, so every
 * sample in a stub must have one of these methods on its stack. {@link #step} calls them directly,
 * which takes no stub once the calls are linked.
 */
public final class Stubs {
    private static final long BATCH_NS = 2_000_000;

    private final CallLoops calls = new CallLoops();
    private final MemoryLoops memory = new MemoryLoops();
    private final NumberLoops numbers = new NumberLoops();
    private final CryptoLoops crypto;
    private final String[] only;

    private Stubs(String only) throws Exception {
        crypto = new CryptoLoops();
        this.only = only.isEmpty() ? null : only.split(",");
    }

    /** Runs the loops by turns on two threads. */
    public static void main(String[] args) throws Exception {
        Harness harness = new Harness("Stubs", 5, args, "only", "threads");
        String only = harness.text("only", "");
        int threads = harness.number("threads", 2, 1, 64);
        Stubs[] all = new Stubs[threads];
        for (int i = 0; i < threads; i++) {
            all[i] = new Stubs(only);
        }
        all[0].round(1);
        harness.ready();
        Workers workers =
                Workers.start("stubs", threads, number -> all[number - 1].live(harness));
        workers.join();
        harness.finish();
    }

    private void live(Harness harness) throws Exception {
        while (harness.timeLeft()) {
            round(BATCH_NS);
        }
    }

    private void round(long batchNs) throws Exception {
        for (int kind = 0; kind < CallLoops.KINDS; kind++) {
            for (long end = end(batchNs); isWanted("calls") && System.nanoTime() < end; ) {
                calls.step(kind);
            }
        }
        for (int kind = 0; kind < MemoryLoops.KINDS; kind++) {
            for (long end = end(batchNs); isWanted("memory") && System.nanoTime() < end; ) {
                memory.step(kind);
            }
        }
        for (int kind = 0; kind < NumberLoops.KINDS; kind++) {
            for (long end = end(batchNs); isWanted("numbers") && System.nanoTime() < end; ) {
                numbers.step(kind);
            }
        }
        for (int kind = 0; kind < CryptoLoops.KINDS; kind++) {
            for (long end = end(batchNs); isWanted("crypto") && System.nanoTime() < end; ) {
                crypto.step(kind);
            }
        }
    }

    private static long end(long batchNs) {
        return System.nanoTime() + batchNs;
    }

    private boolean isWanted(String group) {
        if (only == null) {
            return true;
        }
        for (String wanted : only) {
            if (wanted.equals(group)) {
                return true;
            }
        }
        return false;
    }
}
