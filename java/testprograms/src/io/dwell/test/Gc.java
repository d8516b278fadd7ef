package io.dwell.test;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;

/** Keeps the collector busy: a live set that changes, and gigabytes of garbage. */
public final class Gc {
    private static final long BATCH_NS = 20_000_000;
    private static final int CHUNK_BYTES = 1024;
    private static final int CHUNKS_PER_CHECK = 50;

    private final byte[][] live;
    private final TruthTable truths = new TruthTable();

    private Gc(int liveMegabytes) {
        live = new byte[liveMegabytes * 1024 * 1024 / CHUNK_BYTES][];
        for (int i = 0; i < live.length; i++) {
            live[i] = new byte[CHUNK_BYTES];
        }
    }

    public static void main(String[] args) throws InterruptedException {
        Harness harness = new Harness("Gc", 5, args, "live_mb", "threads");
        int threads = harness.number("threads", 1, 1, 64);
        Gc program = new Gc(harness.number("live_mb", 64, 1, 1024));
        harness.ready();
        Workers.start("gc", threads, number -> program.run(harness, number)).join();
        long collections = 0;
        for (GarbageCollectorMXBean collector :
                ManagementFactory.getGarbageCollectorMXBeans()) {
            collections += collector.getCollectionCount();
        }
        harness.info("collections", collections);
        program.truths.print(harness);
        harness.truth("process", CpuClock.processNanos());
        harness.finish();
    }

    private void run(Harness harness, int number) {
        CpuBudget budget = new CpuBudget();
        while (harness.timeLeft()) {
            truths.measure("makeGarbage", budget.grant(BATCH_NS), b -> makeGarbage(b, number));
        }
    }

    /** One chunk in eight replaces a live one, so that old objects die too. */
    private long makeGarbage(CpuBudget budget, int seed) {
        long x = seed;
        do {
            for (int i = 0; i < CHUNKS_PER_CHECK; i++) {
                byte[] chunk = new byte[CHUNK_BYTES];
                x = (x ^ i) * 0x9E3779B97F4A7C15L;
                chunk[i] = (byte) x;
                if ((i & 7) == 0) {
                    live[(int) ((x >>> 33) % live.length)] = chunk;
                }
            }
        } while (!budget.spent());
        return x;
    }
}
