package io.dwell.test;

import java.util.concurrent.atomic.LongAdder;

/**
 * Null pointers detected by the processor: the JVM's SIGSEGV handler is busy, so a profiler's
 * handlers must be compatible with it. By default the dereference is in a method that is always
 * interpreted, where each one faults. {@code mode=compiled} needs -XX:TieredStopAtLevel=1, because
 * the top compiler soon replaces faults by explicit checks.
 */
public final class NullChecks {
    private static final long BATCH_NS = 20_000_000;
    private static final int NULLS_PER_CHECK = 10;

    private final LongAdder nulls = new LongAdder();
    private final TruthTable truths = new TruthTable();
    private final Dereference dereference;

    /** An object with a field to read. */
    public static final class Holder {
        public int value = 7;
    }

    /** Reads the field of an object that may be null. */
    public interface Dereference {
        int read(Holder holder);
    }

    private NullChecks(Dereference dereference) {
        this.dereference = dereference;
    }

    public static void main(String[] args) throws InterruptedException {
        Harness harness = new Harness("NullChecks", 5, args, "mode", "threads");
        boolean interpreted =
                harness.choice("mode", "interpreter", "compiled").equals("interpreter");
        int threads = harness.number("threads", 1, 1, 64);
        NullChecks program =
                new NullChecks(interpreted ? interpretedDereference() : holder -> holder.value);
        Burn.warmUp();
        harness.ready();
        long start = System.nanoTime();
        Workers.start("nulls", threads, number -> program.run(harness)).join();
        double seconds = (System.nanoTime() - start) / 1e9;
        harness.info("null_pointers", program.nulls.sum());
        harness.info("null_pointers_per_second", Math.round(program.nulls.sum() / seconds));
        program.truths.print(harness);
        harness.finish();
    }

    private static Dereference interpretedDereference() {
        String holder = "io/dwell/test/NullChecks$Holder";
        ClassFile file = new ClassFile("io/dwell/test/generated/InterpretedDereference",
                "java/lang/Object", "io/dwell/test/NullChecks$Dereference");
        file.defaultConstructor();
        ClassFile.Code code = new ClassFile.Code(file, 1, 3);
        code.op(ClassFile.Code.ALOAD_1);
        code.op2(ClassFile.Code.GETFIELD, file.fieldRef(holder, "value", "I"));
        code.op(ClassFile.Code.ISTORE_2);
        GeneratedClasses.appendHugePadding(code, 2);
        code.op(ClassFile.Code.ILOAD_2).op(ClassFile.Code.IRETURN);
        file.method(ClassFile.ACC_PUBLIC, "read", "(L" + holder + ";)I", code);
        return DefiningLoader.instantiate(file, Dereference.class);
    }

    private void run(Harness harness) {
        CpuBudget budget = new CpuBudget();
        while (harness.timeLeft()) {
            truths.measure("nullPointers", budget.grant(BATCH_NS), this::nullPointers);
            truths.measure("betweenNulls", budget.grant(BATCH_NS / 8), NullChecks::betweenNulls);
        }
    }

    private long nullPointers(CpuBudget budget) {
        long caught = 0;
        do {
            for (int i = 0; i < NULLS_PER_CHECK; i++) {
                try {
                    Burn.sink = dereference.read(null);
                } catch (NullPointerException e) {
                    caught++;
                }
            }
        } while (!budget.spent());
        nulls.add(caught);
        return caught;
    }

    private static long betweenNulls(CpuBudget budget) {
        return Burn.until(budget, 1);
    }
}
