package io.dwell.test;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/**
 * Batches of many kinds of work whose true CPU time is known, in random order or in phases that
 * repeat exactly with the period of a sampler. The threads {@code accuracy-N} do nothing else.
 */
public final class Accuracy {
    private static final long WARM_UP_NS_PER_KIND = TimeUnit.MILLISECONDS.toNanos(150);
    private static final String PERIODIC_KINDS = "hotLeaf,hashMap";

    private final Harness harness;
    private final String[] selected;
    private final TruthTable truths = new TruthTable();
    private final int batchMillis;
    private final int cycleMicros;
    private final int sharePercent;
    private final int seed;

    private Accuracy(String[] args) {
        harness = new Harness("Accuracy", 10, args, "order", "threads", "kinds", "batch_ms",
                "cycle_us", "share", "seed");
        boolean periodic = harness.choice("order", "random", "periodic").equals("periodic");
        Map<String, Kind> all = kinds();
        String names = harness.text("kinds",
                periodic ? PERIODIC_KINDS : String.join(",", all.keySet()));
        selected = names.split(",");
        for (String name : selected) {
            if (!all.containsKey(name)) {
                throw harness.fail("no kind '" + name + "'; there are "
                        + String.join(" ", all.keySet()));
            }
        }
        batchMillis = harness.number("batch_ms", 20, 1, 10_000);
        cycleMicros = periodic ? harness.number("cycle_us", 10_000, 100, 10_000_000) : 0;
        sharePercent = harness.number("share", 30, 1, 99);
        seed = harness.number("seed", 1, 0, Integer.MAX_VALUE);
        if (periodic && selected.length != 2) {
            throw harness.fail("order=periodic takes exactly two kinds");
        }
    }

    public static void main(String[] args) throws InterruptedException {
        Accuracy program = new Accuracy(args);
        int threads = program.harness.number("threads", 1, 1, 64);
        program.warmUp();
        program.harness.ready();
        Workers.start("accuracy", threads, program::run).join();
        program.truths.print(program.harness);
        program.harness.finish();
    }

    /** All kinds by name, with state of their own. */
    private static Map<String, Kind> kinds() {
        ComputeKinds compute = new ComputeKinds();
        LibraryKinds library = new LibraryKinds();
        Map<String, Kind> kinds = new LinkedHashMap<>();
        kinds.put("hotLeaf", compute::kind_hotLeaf);
        kinds.put("countedLoop", compute::kind_countedLoop);
        kinds.put("arrayCopy", compute::kind_arrayCopy);
        kinds.put("crc32", compute::kind_crc32);
        kinds.put("sha256", compute::kind_sha256);
        kinds.put("deflate", compute::kind_deflate);
        kinds.put("bigMultiply", compute::kind_bigMultiply);
        kinds.put("interpretedHuge", compute::kind_interpretedHuge);
        kinds.put("interpretedLoop", compute::kind_interpretedLoop);
        kinds.put("recursion100", compute::kind_recursion100);
        kinds.put("recursion1000", compute::kind_recursion1000);
        kinds.put("recursion3000", compute::kind_recursion3000);
        kinds.put("streams", library::kind_streams);
        kinds.put("exceptions", library::kind_exceptions);
        kinds.put("strings", library::kind_strings);
        kinds.put("hashMap", library::kind_hashMap);
        kinds.put("sort", library::kind_sort);
        kinds.put("megamorphic", library::kind_megamorphic);
        kinds.put("reflection", library::kind_reflection);
        return kinds;
    }

    private List<Kind> selectedKinds() {
        Map<String, Kind> all = kinds();
        List<Kind> result = new ArrayList<>();
        for (String name : selected) {
            result.add(all.get(name));
        }
        return result;
    }

    /** On the main thread, so that the workers' whole life is measured work. */
    private void warmUp() {
        CpuBudget budget = new CpuBudget();
        for (Kind kind : selectedKinds()) {
            Burn.sink = kind.work(budget.grant(WARM_UP_NS_PER_KIND));
        }
    }

    private void run(int number) {
        List<Kind> kinds = selectedKinds();
        TruthTable own = new TruthTable();
        if (cycleMicros > 0) {
            runPeriodic(kinds, own);
        } else {
            runRandom(kinds, own, new Random(seed * 1000L + number));
        }
        long total = CpuClock.threadNanos();
        truths.add("other", total - own.sum());
        truths.add("total", total);
        truths.addAll(own);
    }

    private void runRandom(List<Kind> kinds, TruthTable own, Random random) {
        CpuBudget budget = new CpuBudget();
        while (harness.timeLeft()) {
            int pick = random.nextInt(kinds.size());
            long nanos = TimeUnit.MILLISECONDS.toNanos(batchMillis);
            nanos += (long) (nanos * random.nextDouble());
            own.measure("kind_" + selected[pick], budget.grant(nanos), kinds.get(pick));
        }
    }

    /** Phase ends are absolute on the thread's CPU clock, so that no drift adds up. */
    private void runPeriodic(List<Kind> kinds, TruthTable own) {
        CpuBudget budget = new CpuBudget();
        long cycleNanos = TimeUnit.MICROSECONDS.toNanos(cycleMicros);
        long cycleStart = CpuClock.threadNanos();
        while (harness.timeLeft()) {
            long split = cycleStart + cycleNanos * sharePercent / 100;
            own.measure("kind_" + selected[0], budget.until(split), kinds.get(0));
            cycleStart += cycleNanos;
            own.measure("kind_" + selected[1], budget.until(cycleStart), kinds.get(1));
        }
    }
}
