package io.dwell.test;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Map;
import java.util.TreeMap;

/** Allocates known amounts at known places: bytes by site, in addition to the CPU time. */
public final class Alloc {
    private static final long BATCH_NS = 20_000_000;
    private static final int LARGE_BYTES = 256 * 1024;
    private static final int SMALL_PER_CHECK = 200;

    private static final com.sun.management.ThreadMXBean THREADS =
            (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();

    private final TruthTable cpu = new TruthTable();
    private final Map<String, Long> bytesBySite = new TreeMap<>();
    /** Objects are stored here, so that none of them is optimised away. */
    private volatile Object kept;

    private Alloc() {}

    public static void main(String[] args) throws InterruptedException {
        Harness harness = new Harness("Alloc", 5, args, "threads");
        int threads = harness.number("threads", 2, 1, 64);
        Alloc program = new Alloc();
        harness.ready();
        Workers.start("alloc", threads, number -> program.run(harness)).join();
        program.bytesBySite.forEach(
                (site, bytes) -> harness.info("allocated_bytes " + site, bytes));
        program.cpu.print(harness);
        harness.finish();
    }

    private void run(Harness harness) {
        CpuBudget budget = new CpuBudget();
        while (harness.timeLeft()) {
            measure("site_smallObjects", budget, this::site_smallObjects);
            measure("site_largeArrays", budget, this::site_largeArrays);
            measure("site_strings", budget, this::site_strings);
            measure("site_lists", budget, this::site_lists);
        }
    }

    private void measure(String site, CpuBudget budget, Kind work) {
        long thread = Thread.currentThread().getId();
        long before = THREADS.getThreadAllocatedBytes(thread);
        cpu.measure(site, budget.grant(BATCH_NS), work);
        addBytes(site, THREADS.getThreadAllocatedBytes(thread) - before);
    }

    private synchronized void addBytes(String site, long bytes) {
        bytesBySite.merge(site, bytes, Long::sum);
    }

    private long site_smallObjects(CpuBudget budget) {
        long made = 0;
        do {
            for (int i = 0; i < SMALL_PER_CHECK; i++) {
                kept = new Object();
            }
            made += SMALL_PER_CHECK;
        } while (!budget.spent());
        return made;
    }

    private long site_largeArrays(CpuBudget budget) {
        long made = 0;
        do {
            kept = new byte[LARGE_BYTES];
            made++;
        } while (!budget.spent());
        return made;
    }

    private long site_strings(CpuBudget budget) {
        long made = 0;
        do {
            kept = "string number " + made + " of many";
            made++;
        } while (!budget.spent());
        return made;
    }

    private long site_lists(CpuBudget budget) {
        long made = 0;
        do {
            ArrayList<Long> list = new ArrayList<>();
            for (long i = 0; i < 100; i++) {
                list.add(made + i);
            }
            kept = list;
            made++;
        } while (!budget.spent());
        return made;
    }
}
