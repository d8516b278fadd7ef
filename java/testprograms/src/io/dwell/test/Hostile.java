package io.dwell.test;

import java.util.concurrent.TimeUnit;

/**
 * Names that are legal in the JVM but harmful elsewhere: in HTML, terminals, shells, text formats,
 * and in code that expects a name to be short or valid Unicode. Thread, class and method of each
 * item have such names; items run in sequence.
 */
public final class Hostile {
    private Hostile() {}

    public static void main(String[] args) throws InterruptedException {
        Harness harness = new Harness("Hostile", 5, args, "rounds");
        int rounds = harness.number("rounds", 1, 1, 1000);
        int items = HostileNames.count();
        long burnNanos = TimeUnit.SECONDS.toNanos(harness.seconds()) / items / rounds;
        Burn.warmUp();
        harness.ready();
        TruthTable truths = new TruthTable();
        for (int round = 0; round < rounds; round++) {
            for (int i = 0; i < items; i++) {
                runItem(i, burnNanos, truths);
            }
        }
        for (int i = 0; i < items; i++) {
            harness.info("thread " + i, HostileNames.escaped(HostileNames.threadName(i)));
            harness.info("class " + i,
                    HostileNames.escaped(HostileNames.className(i).replace('/', '.')));
            harness.info("method " + i, HostileNames.escaped(HostileNames.methodName(i)));
        }
        truths.print(harness);
        harness.finish();
    }

    private static void runItem(int item, long burnNanos, TruthTable truths)
            throws InterruptedException {
        ClassFile file = GeneratedClasses.burner(HostileNames.className(item),
                HostileNames.methodName(item), "spin " + HostileNames.methodName(item));
        file.sourceFile(HostileNames.threadName(item) + ".java");
        Burner burner = DefiningLoader.instantiate(file, Burner.class);
        new Workers().startOne(HostileNames.threadName(item), item, 0, number -> {
            CpuBudget budget = new CpuBudget();
            truths.measure(String.format("item_%02d", item), budget.grant(burnNanos),
                    b -> burner.burn(b, 1));
        }).join();
    }
}
