package io.dwell.test;

import java.util.function.IntUnaryOperator;

/** Class files made to measure: burners of any name, and methods that are never compiled. */
final class GeneratedClasses {
    /** HotSpot does not compile methods of more bytecode than this, unless told to. */
    private static final int HUGE_METHOD_BYTES = 8000;
    private static final int SPIN_STEPS = 10_000;
    /** The lines of a burner's two methods that burn. */
    private static final int ROOT_LINE = 100;
    private static final int SPIN_LINE = 200;
    private static final String OBJECT = "java/lang/Object";
    private static final String BUDGET = "io/dwell/test/CpuBudget";

    private GeneratedClasses() {}

    /**
     * A class with {@link Burner#burn} that calls its static method {@code root}, which stays on
     * the stack while the budget lasts, which calls its static method {@code spin}, the leaf.
     */
    static ClassFile burner(String internalName, String root, String spin) {
        ClassFile file = new ClassFile(internalName, OBJECT, "io/dwell/test/Burner");
        file.defaultConstructor();
        String rootType = "(L" + BUDGET + ";J)J";

        ClassFile.Code burn = new ClassFile.Code(file, 3, 4);
        burn.op(ClassFile.Code.ALOAD_1).op(ClassFile.Code.LLOAD_2);
        burn.op2(ClassFile.Code.INVOKESTATIC, file.methodRef(internalName, root, rootType));
        file.method(ClassFile.ACC_PUBLIC, "burn", rootType, burn.op(ClassFile.Code.LRETURN));

        // do { x = spin(SPIN_STEPS, x); } while (!budget.spent()); return x;
        ClassFile.Code loop = new ClassFile.Code(file, 3, 3).line(ROOT_LINE);
        int start = loop.frame();
        loop.op2(ClassFile.Code.SIPUSH, SPIN_STEPS).op(ClassFile.Code.LLOAD_1);
        loop.op2(ClassFile.Code.INVOKESTATIC, file.methodRef(internalName, spin, "(IJ)J"));
        loop.op(ClassFile.Code.LSTORE_1).op(ClassFile.Code.ALOAD_0);
        loop.op2(ClassFile.Code.INVOKEVIRTUAL, file.methodRef(BUDGET, "spent", "()Z"));
        loop.branchBack(ClassFile.Code.IFEQ, start);
        loop.op(ClassFile.Code.LLOAD_1).op(ClassFile.Code.LRETURN);
        int access = ClassFile.ACC_PUBLIC | ClassFile.ACC_STATIC;
        file.method(access, root, rootType, loop);
        file.method(access, spin, "(IJ)J", spinLoop(file));
        return file;
    }

    /** {@code do { x = (x << 5) + x ^ n; } while (--n > 0); return x;} on arguments n and x. */
    private static ClassFile.Code spinLoop(ClassFile file) {
        ClassFile.Code code = new ClassFile.Code(file, 5, 3).line(SPIN_LINE);
        int start = code.frame();
        code.op(ClassFile.Code.LLOAD_1).op(ClassFile.Code.ICONST_0 + 5);
        code.op(ClassFile.Code.LSHL).op(ClassFile.Code.LLOAD_1).op(ClassFile.Code.LADD);
        code.op(ClassFile.Code.ILOAD_0).op(ClassFile.Code.I2L).op(ClassFile.Code.LXOR);
        code.op(ClassFile.Code.LSTORE_1).increment(0, -1).op(ClassFile.Code.ILOAD_0);
        code.branchBack(ClassFile.Code.IFGT, start);
        return code.op(ClassFile.Code.LLOAD_1).op(ClassFile.Code.LRETURN);
    }

    /** A class with static methods {@code method0()} and so on, which do nothing. */
    static ClassFile filler(String internalName, int methods) {
        ClassFile file = new ClassFile(internalName, OBJECT);
        for (int i = 0; i < methods; i++) {
            ClassFile.Code code = new ClassFile.Code(file, 1, 1);
            code.op(ClassFile.Code.ILOAD_0).op(ClassFile.Code.IRETURN);
            file.method(ClassFile.ACC_PUBLIC | ClassFile.ACC_STATIC, "method" + i, "(I)I", code);
        }
        return file;
    }

    /** An operator whose one method is too long to be compiled; takes 10 to 30 microseconds. */
    static IntUnaryOperator neverCompiled() {
        ClassFile file = new ClassFile("io/dwell/test/generated/HugeOperator", OBJECT,
                "java/util/function/IntUnaryOperator");
        file.defaultConstructor();
        ClassFile.Code code = new ClassFile.Code(file, 1, 2);
        appendHugePadding(code, 1);
        code.op(ClassFile.Code.ILOAD_1).op(ClassFile.Code.IRETURN);
        file.method(ClassFile.ACC_PUBLIC, "applyAsInt", "(I)I", code);
        return DefiningLoader.instantiate(file, IntUnaryOperator.class);
    }

    /** Increments of an int local until the method is too long to be compiled. */
    static void appendHugePadding(ClassFile.Code code, int intLocal) {
        while (code.position() <= HUGE_METHOD_BYTES) {
            code.increment(intLocal, 1);
        }
    }
}
