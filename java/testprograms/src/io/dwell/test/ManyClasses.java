package io.dwell.test;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * A JVM with very many classes and methods, which measures how long it is stopped: for the cost of
 * attaching to it. Prints the longest stall of each second. Without a gate, it also prints the
 * longest one since the last line for each line on standard input.
 */
public final class ManyClasses {
    private static final int CLASSES_PER_LOADER = 500;
    private static final int PROGRESS_EVERY_MS = 1000;

    private final Harness harness;
    private final List<Class<?>> loaded = new ArrayList<>();
    private final TruthTable truths = new TruthTable();

    private ManyClasses(String[] args) {
        harness = new Harness("ManyClasses", 10, args, "classes", "methods", "burn", "tick_us",
                "tick");
    }

    public static void main(String[] args) throws Exception {
        ManyClasses program = new ManyClasses(args);
        program.load();
        program.run();
    }

    private void load() throws ClassNotFoundException {
        int classes = harness.number("classes", 20_000, 1, 1_000_000);
        int methods = harness.number("methods", 10, 0, 1000);
        DefiningLoader loader = null;
        for (int i = 0; i < classes; i++) {
            if (i % CLASSES_PER_LOADER == 0) {
                loader = new DefiningLoader();
            }
            String name = "io/dwell/test/generated/many/Class" + i;
            Class<?> made = loader.define(GeneratedClasses.filler(name, methods));
            // Linked and initialised, as in a program that uses it.
            loaded.add(Class.forName(made.getName(), true, loader));
        }
        harness.info("classes_loaded", loaded.size());
        harness.info("methods_loaded", loaded.size() * (long) methods);
    }

    private void run() throws InterruptedException {
        int burners = harness.number("burn", 1, 0, 64);
        boolean spin = harness.choice("tick", "park", "spin").equals("spin");
        int tickMicros = harness.number("tick_us", 200, 10, 1_000_000);
        StallMeter meter = StallMeter.start(tickMicros, spin);
        Burn.warmUp();
        meter.takeMaxMicros();
        harness.ready();
        meter.takeMaxMicros();
        startControl(meter);
        Workers workers = Workers.start("many", burners, number -> burn());
        long stallMaxMicros = 0;
        while (harness.timeLeft()) {
            Thread.sleep(PROGRESS_EVERY_MS);
            long stallMicros = meter.takeMaxMicros();
            stallMaxMicros = Math.max(stallMaxMicros, stallMicros);
            harness.info("stall_max_us", stallMicros);
        }
        workers.join();
        meter.stop();
        harness.info("stall_max_us_all", stallMaxMicros);
        truths.print(harness);
        harness.finish();
    }

    private void burn() {
        CpuBudget budget = new CpuBudget();
        while (harness.timeLeft()) {
            truths.measure("manyBurn", budget.grant(20_000_000), ManyClasses::manyBurn);
        }
    }

    private static long manyBurn(CpuBudget budget) {
        return Burn.until(budget, 1);
    }

    private void startControl(StallMeter meter) {
        if (harness.number("gate", 0, 0, 1) == 1) {
            return;
        }
        Thread control = new Thread(() -> {
            try (BufferedReader lines = new BufferedReader(
                    new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
                while (lines.readLine() != null) {
                    harness.info("stall_max_us", meter.takeMaxMicros());
                }
            } catch (IOException e) {
                System.err.println("ManyClasses: standard input failed: " + e.getMessage());
            }
        }, "control");
        control.setDaemon(true);
        control.start();
    }
}
