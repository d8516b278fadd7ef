package io.dwell.test;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Writes class files, with any names that the class file format allows, which are more than in the
 * Java language. It has only the features that the test programs need, and does not check its
 * input.
 */
final class ClassFile {
    static final int ACC_PUBLIC = 0x0001;
    static final int ACC_STATIC = 0x0008;
    static final int ACC_SUPER = 0x0020;

    private static final int MAGIC = 0xCAFEBABE;
    private static final int VERSION_JAVA_8 = 52;
    private static final int CONSTANT_UTF8 = 1;
    private static final int CONSTANT_CLASS = 7;
    private static final int CONSTANT_FIELD = 9;
    private static final int CONSTANT_METHOD = 10;
    private static final int CONSTANT_NAME_AND_TYPE = 12;

    private final String name;
    private final String superName;
    private final String[] interfaces;
    private final Bytes constants = new Bytes();
    private final Map<String, Integer> constantIndexes = new LinkedHashMap<>();
    private final Bytes methods = new Bytes();
    private int methodCount;
    private String sourceFile;

    /** Names are internal ones, with slashes. */
    ClassFile(String name, String superName, String... interfaces) {
        this.name = name;
        this.superName = superName;
        this.interfaces = interfaces;
    }

    String name() {
        return name;
    }

    /** Sets the name for the SourceFile attribute; without this call there is no such attribute. */
    void sourceFile(String fileName) {
        sourceFile = fileName;
    }

    int utf8(String text) {
        return constant("U" + text, CONSTANT_UTF8, entry -> entry.utf(text));
    }

    int classRef(String internalName) {
        int nameIndex = utf8(internalName);
        return constant("C" + nameIndex, CONSTANT_CLASS, entry -> entry.u2(nameIndex));
    }

    int fieldRef(String owner, String field, String descriptor) {
        return memberRef(CONSTANT_FIELD, owner, field, descriptor);
    }

    int methodRef(String owner, String method, String descriptor) {
        return memberRef(CONSTANT_METHOD, owner, method, descriptor);
    }

    private int memberRef(int tag, String owner, String member, String descriptor) {
        int ownerIndex = classRef(owner);
        int nameIndex = utf8(member);
        int descriptorIndex = utf8(descriptor);
        int pair = constant("N" + nameIndex + ":" + descriptorIndex, CONSTANT_NAME_AND_TYPE,
                entry -> entry.u2(nameIndex).u2(descriptorIndex));
        return constant(tag + "M" + ownerIndex + ":" + pair, tag,
                entry -> entry.u2(ownerIndex).u2(pair));
    }

    private int constant(String key, int tag, java.util.function.Consumer<Bytes> content) {
        Integer known = constantIndexes.get(key);
        if (known != null) {
            return known;
        }
        int index = constantIndexes.size() + 1;
        constantIndexes.put(key, index);
        constants.u1(tag);
        content.accept(constants);
        return index;
    }

    /** Adds a method; the code's class must be this one. */
    void method(int access, String method, String descriptor, Code code) {
        methods.u2(access).u2(utf8(method)).u2(utf8(descriptor)).u2(1);
        code.writeAttribute(methods);
        methodCount++;
    }

    /** Adds a public constructor that only calls the superclass's one. */
    void defaultConstructor() {
        Code code = new Code(this, 1, 1);
        code.op(Code.ALOAD_0).op2(Code.INVOKESPECIAL, methodRef(superName, "<init>", "()V"));
        method(ACC_PUBLIC, "<init>", "()V", code.op(Code.RETURN));
    }

    byte[] bytes() {
        Bytes rest = new Bytes();
        rest.u2(ACC_PUBLIC | ACC_SUPER).u2(classRef(name)).u2(classRef(superName));
        rest.u2(interfaces.length);
        for (String each : interfaces) {
            rest.u2(classRef(each));
        }
        rest.u2(0).u2(methodCount).append(methods);
        if (sourceFile == null) {
            rest.u2(0);
        } else {
            rest.u2(1).u2(utf8("SourceFile")).u4(2).u2(utf8(sourceFile));
        }
        Bytes file = new Bytes();
        file.u4(MAGIC).u2(0).u2(VERSION_JAVA_8);
        file.u2(constantIndexes.size() + 1).append(constants).append(rest);
        return file.toByteArray();
    }

    /** The code of one method. Branches only go back to {@link #frame} or forward to it. */
    static final class Code {
        static final int ICONST_0 = 0x03;
        static final int SIPUSH = 0x11;
        static final int ILOAD_0 = 0x1a;
        static final int ILOAD_1 = 0x1b;
        static final int ILOAD_2 = 0x1c;
        static final int LLOAD_1 = 0x1f;
        static final int LLOAD_2 = 0x20;
        static final int ALOAD_0 = 0x2a;
        static final int ALOAD_1 = 0x2b;
        static final int ISTORE_2 = 0x3d;
        static final int LSTORE_1 = 0x40;
        static final int LADD = 0x61;
        static final int LSHL = 0x79;
        static final int LXOR = 0x83;
        static final int IINC = 0x84;
        static final int I2L = 0x85;
        static final int IFEQ = 0x99;
        static final int IFGT = 0x9d;
        static final int IRETURN = 0xac;
        static final int LRETURN = 0xad;
        static final int RETURN = 0xb1;
        static final int GETFIELD = 0xb4;
        static final int INVOKEVIRTUAL = 0xb6;
        static final int INVOKESPECIAL = 0xb7;
        static final int INVOKESTATIC = 0xb8;

        private static final int SAME_FRAME_MAX = 63;
        private static final int SAME_FRAME_EXTENDED = 251;

        private final ClassFile owner;
        private final int stackMax;
        private final int localsMax;
        private final Bytes code = new Bytes();
        private final Bytes frames = new Bytes();
        private int frameCount;
        private int previousFrame = -1;
        private final Bytes lines = new Bytes();
        private int lineCount;

        Code(ClassFile owner, int stackMax, int localsMax) {
            this.owner = owner;
            this.stackMax = stackMax;
            this.localsMax = localsMax;
        }

        int position() {
            return code.size();
        }

        Code op(int opcode) {
            code.u1(opcode);
            return this;
        }

        /** An instruction with a two byte operand. */
        Code op2(int opcode, int operand) {
            code.u1(opcode).u2(operand);
            return this;
        }

        Code increment(int local, int by) {
            code.u1(IINC).u1(local).u1(by);
            return this;
        }

        /** Sets the source line of the instructions from here on. */
        Code line(int number) {
            lines.u2(position()).u2(number);
            lineCount++;
            return this;
        }

        /** A branch back to a position that has a {@link #frame}. */
        Code branchBack(int opcode, int target) {
            return op2(opcode, target - position());
        }

        /** Makes this position a branch target; the locals must be the method's arguments. */
        int frame() {
            int delta = position() - previousFrame - 1;
            if (delta <= SAME_FRAME_MAX) {
                frames.u1(delta);
            } else {
                frames.u1(SAME_FRAME_EXTENDED).u2(delta);
            }
            previousFrame = position();
            frameCount++;
            return position();
        }

        private void writeAttribute(Bytes out) {
            Bytes body = new Bytes();
            body.u2(stackMax).u2(localsMax).u4(code.size()).append(code).u2(0);
            body.u2((frameCount == 0 ? 0 : 1) + (lineCount == 0 ? 0 : 1));
            writeTable(body, "StackMapTable", frameCount, frames);
            writeTable(body, "LineNumberTable", lineCount, lines);
            out.u2(owner.utf8("Code")).u4(body.size()).append(body);
        }

        private void writeTable(Bytes body, String attribute, int count, Bytes entries) {
            if (count > 0) {
                body.u2(owner.utf8(attribute));
                body.u4(2 + entries.size()).u2(count).append(entries);
            }
        }
    }

    /** Big-endian bytes in memory. */
    private static final class Bytes {
        private final ByteArrayOutputStream buffer = new ByteArrayOutputStream();
        private final DataOutputStream out = new DataOutputStream(buffer);

        private interface Write {
            void run() throws IOException;
        }

        private Bytes write(Write write) {
            try {
                write.run();
            } catch (IOException e) {
                // A name longer than the format allows; memory itself does not fail.
                throw new UncheckedIOException(e);
            }
            return this;
        }

        Bytes u1(int value) {
            return write(() -> out.writeByte(value));
        }

        Bytes u2(int value) {
            return write(() -> out.writeShort(value));
        }

        Bytes u4(int value) {
            return write(() -> out.writeInt(value));
        }

        Bytes utf(String text) {
            return write(() -> out.writeUTF(text));
        }

        Bytes append(Bytes other) {
            return write(() -> other.buffer.writeTo(out));
        }

        int size() {
            return buffer.size();
        }

        byte[] toByteArray() {
            return buffer.toByteArray();
        }
    }
}
