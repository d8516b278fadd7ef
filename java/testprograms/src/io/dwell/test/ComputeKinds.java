package io.dwell.test;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Random;
import java.util.function.IntUnaryOperator;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/**
 * Kinds of work that stress how a profiler finds its way through code: inlined, without polls, in
 * stubs, in native libraries, interpreted, deep. Each ends in a method {@code kind_NAME} that is
 * on the stack of every instruction of its work. Not for use by two threads.
 */
final class ComputeKinds {
    private static final int LEAF_STEPS = 5_000;
    private static final int LOOP_STEPS = 20_000;
    private static final int BLOCK_BYTES = 64 * 1024;
    private static final int TEXT_BYTES = 1024;
    private static final int BIG_BITS = 6_000;

    private final byte[] from = new byte[BLOCK_BYTES];
    private final byte[] to = new byte[BLOCK_BYTES];
    private final byte[] text = new byte[TEXT_BYTES];
    private final CRC32 crc = new CRC32();
    private final Deflater deflater = new Deflater(6);
    private final BigInteger big = new BigInteger(BIG_BITS, new Random(3));
    private final IntUnaryOperator hugeMethod = GeneratedClasses.neverCompiled();
    private final MessageDigest sha256;
    private long x = 1;

    ComputeKinds() {
        new Random(4).nextBytes(from);
        byte[] words = "the quick brown fox jumps over it ".getBytes(StandardCharsets.US_ASCII);
        for (int i = 0; i < TEXT_BYTES; i++) {
            text[i] = (byte) (words[i % words.length] + (from[i] & 3));
        }
        try {
            sha256 = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }

    long kind_hotLeaf(CpuBudget budget) {
        do {
            for (int i = 0; i < LEAF_STEPS; i++) {
                x = inlinedLeaf(x, i);
            }
        } while (!budget.spent());
        return x;
    }

    private static long inlinedLeaf(long value, int i) {
        return rotate(value ^ i) * 0xFF51AFD7ED558CCDL;
    }

    private static long rotate(long value) {
        return value << 13 | value >>> 51;
    }

    /** The inner loop counts an int to a constant: compiled without a safepoint poll. */
    long kind_countedLoop(CpuBudget budget) {
        do {
            long sum = x;
            for (int i = 0; i < LOOP_STEPS; i++) {
                sum = sum * 31 + i;
            }
            x = sum;
        } while (!budget.spent());
        return x;
    }

    long kind_arrayCopy(CpuBudget budget) {
        do {
            System.arraycopy(from, 0, to, 0, BLOCK_BYTES);
            Arrays.fill(to, 0, BLOCK_BYTES / 2, (byte) x);
            x += to[100];
        } while (!budget.spent());
        return x;
    }

    long kind_crc32(CpuBudget budget) {
        do {
            crc.update(from, 0, BLOCK_BYTES);
        } while (!budget.spent());
        return crc.getValue();
    }

    long kind_sha256(CpuBudget budget) {
        do {
            x += sha256.digest(text)[0];
        } while (!budget.spent());
        return x;
    }

    long kind_deflate(CpuBudget budget) {
        do {
            deflater.reset();
            deflater.setInput(text);
            deflater.finish();
            x += deflater.deflate(to);
        } while (!budget.spent());
        return x;
    }

    long kind_bigMultiply(CpuBudget budget) {
        do {
            x += big.multiply(big).bitLength();
        } while (!budget.spent());
        return x;
    }

    /** Calls a method above the size that HotSpot compiles: interpreted on every JVM. */
    long kind_interpretedHuge(CpuBudget budget) {
        do {
            x += hugeMethod.applyAsInt((int) x);
        } while (!budget.spent());
        return x;
    }

    /** Interpreted when the JVM is told not to compile {@link #excludedLoop}. */
    long kind_interpretedLoop(CpuBudget budget) {
        do {
            x = excludedLoop(x);
        } while (!budget.spent());
        return x;
    }

    private static long excludedLoop(long value) {
        long result = value;
        for (int i = 0; i < 500; i++) {
            result = result * 31 + i;
        }
        return result;
    }

    long kind_recursion100(CpuBudget budget) {
        do {
            x = Recursion.descend(100, x);
        } while (!budget.spent());
        return x;
    }

    long kind_recursion1000(CpuBudget budget) {
        do {
            x = Recursion.descend(1000, x);
        } while (!budget.spent());
        return x;
    }

    long kind_recursion3000(CpuBudget budget) {
        do {
            x = Recursion.descend(3000, x);
        } while (!budget.spent());
        return x;
    }
}
