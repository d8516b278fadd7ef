package io.dwell.test;

import java.util.Arrays;
import java.util.zip.DataFormatException;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/**
 * Packs an array and unpacks it. The JDK does both in JNI critical regions: no collector may move
 * the arrays meanwhile, and some cannot begin. Not for use by two threads.
 */
final class CriticalArrays {
    private static final int BYTES = 8 * 1024;

    private final Deflater deflater = new Deflater(Deflater.BEST_SPEED);
    private final Inflater inflater = new Inflater();
    private final byte[] pattern = new byte[BYTES];

    CriticalArrays(int seed) {
        for (int i = 0; i < BYTES; i++) {
            pattern[i] = (byte) (i * i / (seed + 3));
        }
    }

    /** Whether an array comes back as it was. */
    boolean thereAndBack(long salt) {
        byte[] plain = pattern.clone();
        plain[(int) ((salt >>> 33) % BYTES)] ^= (byte) salt;
        byte[] packed = new byte[2 * BYTES];
        byte[] unpacked = new byte[BYTES];
        deflater.reset();
        deflater.setInput(plain);
        deflater.finish();
        int length = deflater.deflate(packed);
        inflater.reset();
        inflater.setInput(packed, 0, length);
        try {
            return inflater.inflate(unpacked) == BYTES && Arrays.equals(plain, unpacked);
        } catch (DataFormatException e) {
            return false;
        }
    }

    /** Gives back zlib's memory. */
    void close() {
        deflater.end();
        inflater.end();
    }
}
