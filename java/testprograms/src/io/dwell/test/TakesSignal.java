package io.dwell.test;

import java.util.concurrent.TimeUnit;

/**
 * A library that takes a signal for itself and passes nothing on, as runtimes of other languages
 * do when they are loaded. One thread works before that and after it.
 */
public final class TakesSignal {
    private static final int SIGURG = 23;
    private static final int SIGNAL_MAX = 64;
    private static final int FIRST_MS = 300;
    private static final long BATCH_NS = 20_000_000;

    private final Harness harness;
    private final TruthTable truths = new TruthTable();
    private final CpuBudget budget = new CpuBudget();

    private TakesSignal(String[] args) {
        harness = new Harness("TakesSignal", 4, args, "signal");
    }

    public static void main(String[] args) throws InterruptedException {
        TakesSignal program = new TakesSignal(args);
        Burn.sink = NativeSupport.threadCpuNanos();
        program.harness.ready();
        Workers.start("takes", 1, number -> program.run()).join();
        program.harness.finish();
    }

    private void run() {
        long first = TimeUnit.MILLISECONDS.toNanos(FIRST_MS);
        truths.measure("beforeTaken", budget.grant(first), TakesSignal::beforeTaken);
        long library = NativeSupport.open(NativeSupport.library("takesignal"));
        long signal = harness.number("signal", SIGURG, 1, SIGNAL_MAX);
        if (NativeSupport.call(library, "take_signal", signal) != 0) {
            throw harness.fail("signal " + signal + " cannot be taken");
        }
        while (harness.timeLeft()) {
            truths.measure("afterTaken", budget.grant(BATCH_NS), TakesSignal::afterTaken);
        }
        truths.print(harness);
    }

    private static long beforeTaken(CpuBudget left) {
        return Burn.until(left, 1);
    }

    private static long afterTaken(CpuBudget left) {
        return Burn.until(left, 2);
    }
}
