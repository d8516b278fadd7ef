package io.dwell.test;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.zip.Adler32;
import java.util.zip.CRC32;
import java.util.zip.Checksum;

/** Copies, fills, comparisons, texts and checksums. */
final class MemoryLoops {
    static final int KINDS = 20;
    private static final int TIMES = 500;
    private static final int LENGTH = 4096;

    private final byte[] bytes = new byte[LENGTH];
    private final byte[] moreBytes = new byte[LENGTH];
    private final short[] shorts = new short[LENGTH];
    private final int[] ints = new int[LENGTH];
    private final long[] longs = new long[LENGTH];
    private final Object[] objects = new Object[LENGTH];
    private final String[] strings = new String[LENGTH];
    private final ByteBuffer direct = ByteBuffer.allocateDirect(LENGTH);
    private final Checksum crc32 = new CRC32();
    private final Checksum adler32 = new Adler32();
    private final Checksum crc32c = crc32c();
    private final String latin;
    private final String wide;
    private final String same;
    private final byte[] encoded;
    private Object last;
    private long sum;

    MemoryLoops() {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < LENGTH; i++) {
            bytes[i] = (byte) (i * 31);
            text.append((char) ('a' + i % 23));
            objects[i] = "x";
        }
        latin = text.toString();
        same = text.append("").toString();
        wide = latin + '\u1234';
        encoded = Base64.getEncoder().encode(bytes);
    }

    /** Since Java 9. */
    private static Checksum crc32c() {
        try {
            Class<?> type = Class.forName("java.util.zip.CRC32C");
            return (Checksum) type.getConstructor().newInstance();
        } catch (ReflectiveOperationException e) {
            return new CRC32();
        }
    }

    void step(int kind) {
        switch (kind) {
            case 0:
                loopCopyBytes();
                break;
            case 1:
                loopCopyShorts();
                break;
            case 2:
                loopCopyInts();
                break;
            case 3:
                loopCopyLongs();
                break;
            case 4:
                loopCopyObjects();
                break;
            case 5:
                loopCopyChecked();
                break;
            case 6:
                loopCopyAny();
                break;
            case 7:
                loopCopyOverlapping();
                break;
            case 8:
                loopCopyShort();
                break;
            case 9:
                loopCopyDirect();
                break;
            case 10:
                loopClone();
                break;
            case 11:
                loopFill();
                break;
            case 12:
                loopMismatch();
                break;
            case 13:
                loopStrings();
                break;
            case 14:
                loopWideStrings();
                break;
            case 15:
                loopEncode();
                break;
            case 16:
                loopBase64Encode();
                break;
            case 17:
                loopBase64Decode();
                break;
            case 18:
                loopChecksums();
                break;
            default:
                loopChecksumsDirect();
                break;
        }
    }

    private void loopCopyBytes() {
        for (int i = 0; i < TIMES; i++) {
            System.arraycopy(bytes, i & 7, moreBytes, 1, LENGTH - 9);
        }
    }

    private void loopCopyShorts() {
        for (int i = 0; i < TIMES; i++) {
            System.arraycopy(shorts, 0, shorts, 2048 + (i & 7), 2000);
        }
    }

    private void loopCopyInts() {
        for (int i = 0; i < TIMES; i++) {
            System.arraycopy(ints, 0, ints, 2048 + (i & 7), 2000);
        }
    }

    private void loopCopyLongs() {
        for (int i = 0; i < TIMES; i++) {
            System.arraycopy(longs, 0, longs, 2048 + (i & 7), 2000);
        }
    }

    private void loopCopyObjects() {
        for (int i = 0; i < TIMES; i++) {
            System.arraycopy(objects, 0, objects, 2048 + (i & 7), 2000);
        }
    }

    private void loopCopyChecked() {
        for (int i = 0; i < TIMES / 10; i++) {
            System.arraycopy(objects, 0, strings, i & 7, 4000);
        }
    }

    private void loopCopyAny() {
        Object[] all = {bytes, ints, objects};
        Object[] to = {moreBytes, new int[LENGTH], new Object[LENGTH]};
        for (int i = 0; i < TIMES; i++) {
            copyAny(all[i % 3], to[i % 3], 100 + (i & 255));
        }
    }

    private static void copyAny(Object from, Object to, int length) {
        System.arraycopy(from, 1, to, 0, length);
    }

    private void loopCopyOverlapping() {
        for (int i = 0; i < TIMES; i++) {
            System.arraycopy(bytes, 0, bytes, 3, 3000);
            System.arraycopy(ints, 0, ints, 1, 1000);
            System.arraycopy(longs, 0, longs, 1, 500);
            System.arraycopy(objects, 1, objects, 0, 500);
        }
    }

    private void loopCopyShort() {
        for (int i = 0; i < TIMES * 20; i++) {
            System.arraycopy(bytes, 0, moreBytes, i & 63, i & 31);
            System.arraycopy(objects, 0, strings, i & 63, i & 3);
        }
    }

    private void loopCopyDirect() {
        for (int i = 0; i < TIMES; i++) {
            direct.clear();
            direct.put(bytes, 0, LENGTH - (i & 15));
            direct.flip();
            direct.get(moreBytes, 0, LENGTH - 16);
        }
    }

    private void loopClone() {
        for (int i = 0; i < TIMES; i++) {
            last = bytes.clone();
            last = Arrays.copyOf(objects, 500 + i);
        }
    }

    private void loopFill() {
        for (int i = 0; i < TIMES; i++) {
            Arrays.fill(moreBytes, (byte) i);
            Arrays.fill(shorts, (short) i);
            Arrays.fill(ints, i);
            direct.clear();
        }
    }

    private void loopMismatch() {
        byte[] copy = bytes.clone();
        for (int i = 0; i < TIMES; i++) {
            sum += Arrays.equals(bytes, copy) ? 1 : 0;
            sum += Arrays.equals(ints, ints.clone()) ? 1 : 0;
            sum += Arrays.hashCode(bytes);
        }
    }

    private void loopStrings() {
        for (int i = 0; i < TIMES; i++) {
            sum += latin.equals(same) ? 1 : 0;
            sum += latin.compareTo(same);
            sum += latin.indexOf("wab") + latin.indexOf("wa" + (char) ('b' + (i & 1)), 9);
            sum += latin.indexOf('?');
        }
    }

    private void loopWideStrings() {
        for (int i = 0; i < TIMES / 10; i++) {
            sum += wide.compareTo(latin) + latin.compareTo(wide);
            sum += wide.indexOf("wac") + wide.indexOf('\u1234') + wide.indexOf("c\u1234");
            last = wide.substring(0, 4000 + (i & 7));
            last = latin.concat("\u1234");
        }
    }

    private void loopEncode() {
        for (int i = 0; i < TIMES / 10; i++) {
            last = latin.getBytes(StandardCharsets.UTF_8);
            last = wide.getBytes(StandardCharsets.UTF_8);
            last = wide.getBytes(StandardCharsets.ISO_8859_1);
            last = new String(bytes, StandardCharsets.ISO_8859_1);
            last = new String(bytes, StandardCharsets.UTF_8);
        }
    }

    private void loopBase64Encode() {
        for (int i = 0; i < TIMES / 5; i++) {
            last = Base64.getEncoder().encode(bytes);
        }
    }

    private void loopBase64Decode() {
        for (int i = 0; i < TIMES / 5; i++) {
            last = Base64.getDecoder().decode(encoded);
        }
    }

    private void loopChecksums() {
        for (int i = 0; i < TIMES / 5; i++) {
            crc32.update(bytes, i & 7, LENGTH - 8);
            crc32c.update(bytes, i & 7, LENGTH - 8);
            adler32.update(bytes, i & 7, LENGTH - 8);
            crc32.update(i);
        }
    }

    private void loopChecksumsDirect() {
        CRC32 crc = (CRC32) crc32;
        Adler32 adler = (Adler32) adler32;
        for (int i = 0; i < TIMES / 5; i++) {
            direct.clear();
            crc.update(direct);
            direct.clear();
            adler.update(direct);
        }
    }
}
