package io.dwell.test;

import static java.lang.invoke.MethodType.methodType;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles.Lookup;
import java.lang.reflect.Proxy;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongUnaryOperator;

/** Calls through method handles, lambda forms and proxies: frames that the JVM generates. */
public final class MethodHandles {
    private static final long BATCH_NS = 20_000_000;
    private static final int CALLS_PER_CHECK = 200;
    private static final int FRESH_CHAIN = 4;

    private static final Lookup LOOKUP = java.lang.invoke.MethodHandles.lookup();
    private static final MethodHandle STEP = find("step");
    private static final MethodHandle CONSTANT_CHAIN = chain(8);

    /** Not final on purpose, so that the compiler cannot optimise through it. */
    private MethodHandle variableChain = chain(8);
    private final LongUnaryOperator proxy = (LongUnaryOperator) Proxy.newProxyInstance(
            MethodHandles.class.getClassLoader(), new Class<?>[] {LongUnaryOperator.class},
            (self, method, arguments) -> step((Long) arguments[0]));
    private long x = 1;

    private MethodHandles() {}

    public static void main(String[] args) throws InterruptedException {
        Harness harness = new Harness("MethodHandles", 5, args);
        MethodHandles program = new MethodHandles();
        program.runBatches(new TruthTable());
        harness.ready();
        Workers.start("handles", 1, number -> program.run(harness)).join();
        harness.finish();
    }

    private void run(Harness harness) {
        TruthTable truths = new TruthTable();
        while (harness.timeLeft()) {
            runBatches(truths);
        }
        truths.print(harness);
    }

    private void runBatches(TruthTable truths) {
        Map<String, Kind> kinds = new LinkedHashMap<>();
        kinds.put("kind_constantHandle", this::kind_constantHandle);
        kinds.put("kind_variableHandle", this::kind_variableHandle);
        kinds.put("kind_withArguments", this::kind_withArguments);
        kinds.put("kind_freshHandles", this::kind_freshHandles);
        kinds.put("kind_proxy", this::kind_proxy);
        CpuBudget budget = new CpuBudget();
        kinds.forEach((name, kind) -> truths.measure(name, budget.grant(BATCH_NS), kind));
    }

    private long kind_constantHandle(CpuBudget budget) {
        return repeat(budget, () -> x = (long) CONSTANT_CHAIN.invokeExact(x));
    }

    private long kind_variableHandle(CpuBudget budget) {
        return repeat(budget, () -> x = (long) variableChain.invokeExact(x));
    }

    private long kind_withArguments(CpuBudget budget) {
        return repeat(budget, () -> x = (Long) variableChain.invokeWithArguments(x));
    }

    private long kind_freshHandles(CpuBudget budget) {
        return repeat(budget, () -> {
            variableChain = chain(FRESH_CHAIN);
            x = (long) variableChain.invokeExact(x);
        });
    }

    private long kind_proxy(CpuBudget budget) {
        return repeat(budget, () -> x = proxy.applyAsLong(x));
    }

    private interface Call {
        void run() throws Throwable;
    }

    private long repeat(CpuBudget budget, Call call) {
        try {
            do {
                for (int i = 0; i < CALLS_PER_CHECK; i++) {
                    call.run();
                }
            } while (!budget.spent());
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
        return x;
    }

    /** A handle that takes {@code length} steps, one guarded by a test. */
    private static MethodHandle chain(int length) {
        MethodHandle guarded = java.lang.invoke.MethodHandles.guardWithTest(
                find("isOdd"), STEP, find("otherStep"));
        MethodHandle result = guarded;
        for (int i = 1; i < length; i++) {
            result = java.lang.invoke.MethodHandles.filterReturnValue(result, STEP);
        }
        return result;
    }

    private static MethodHandle find(String name) {
        Class<?> result = name.equals("isOdd") ? boolean.class : long.class;
        try {
            return LOOKUP.findStatic(MethodHandles.class, name, methodType(result, long.class));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("declared below", e);
        }
    }

    static long step(long value) {
        return value * 31 + 7;
    }

    static long otherStep(long value) {
        return value ^ 0x5555;
    }

    static boolean isOdd(long value) {
        return (value & 1) != 0;
    }
}
