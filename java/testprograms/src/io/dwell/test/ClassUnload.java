package io.dwell.test;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Classes that are unloaded before the profile is read: each is generated, burns, loses its loader
 * and is unloaded by a collection. Their names are unique, also those of their methods.
 */
public final class ClassUnload {
    private static final int GC_EVERY = 5;
    private static final int FINAL_GC_MAX = 10;

    private final Harness harness;
    private final List<String> names = new ArrayList<>();
    private final TruthTable truths = new TruthTable();
    private final CpuBudget budget = new CpuBudget();
    private final long burnNanos;

    private ClassUnload(String[] args) {
        harness = new Harness("ClassUnload", 6, args, "burn_ms", "classes");
        burnNanos = TimeUnit.MILLISECONDS.toNanos(harness.number("burn_ms", 100, 1, 10_000));
    }

    public static void main(String[] args) throws InterruptedException {
        ClassUnload program = new ClassUnload(args);
        Burn.warmUp();
        program.harness.ready();
        Workers.start("unload", 1, number -> program.run()).join();
        program.report();
        program.harness.finish();
    }

    private void run() {
        int classesMax = harness.number("classes", 100_000, 1, 100_000);
        while (harness.timeLeft() && names.size() < classesMax) {
            int number = names.size() + 1;
            loadAndBurn(number);
            if (number % GC_EVERY == 0) {
                System.gc();
            }
        }
    }

    /** After the return, nothing refers to the class or its loader. */
    private void loadAndBurn(int number) {
        String name = "io/dwell/test/generated/Unload" + number;
        ClassFile file = GeneratedClasses.burner(name, "root_" + number, "spin_" + number);
        Burner burner = DefiningLoader.instantiate(file, Burner.class);
        truths.measure("root_" + number, budget.grant(burnNanos), b -> burner.burn(b, 1));
        names.add(name.replace('/', '.'));
    }

    private void report() throws InterruptedException {
        long unloaded = 0;
        for (int i = 0; i < FINAL_GC_MAX && unloaded < names.size(); i++) {
            System.gc();
            Thread.sleep(50);
            unloaded = ManagementFactory.getClassLoadingMXBean().getUnloadedClassCount();
        }
        harness.info("classes_loaded", names.size());
        harness.info("classes_unloaded_by_jvm", unloaded);
        for (String name : names) {
            harness.info("class", name);
        }
        truths.print(harness);
    }
}
