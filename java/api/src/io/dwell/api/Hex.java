package io.dwell.api;

import java.nio.ByteBuffer;

/** Parses textual ids, without allocation. Used by one thread. */
final class Hex {
    private static final int DIGITS = 16;
    private static final int BAD = 0x80;
    /** Values by character; {@link #BAD} for characters that are not digits. */
    private static final byte[] VALUES = values();
    /** A one in each of eight bytes. */
    private static final long ONES = 0x0101_0101_0101_0101L;

    /** The characters of one trace and one span. */
    private final byte[] text = new byte[3 * DIGITS];
    private final ByteBuffer words = ByteBuffer.wrap(text);
    /** The last ids that were parsed. */
    long traceHi;
    long traceLo;
    long span;

    private static byte[] values() {
        byte[] values = new byte[BAD];
        for (int c = 0; c < values.length; c++) {
            int digit = Character.digit(c, 16);
            values[c] = (byte) (digit < 0 ? BAD : digit);
        }
        return values;
    }

    /** Parses a trace of at most 32 digits and a span of at most 16; 0 for any other text. */
    void read(String traceId, String spanId) {
        if (traceId == null || spanId == null || traceId.length() != 2 * DIGITS
                || spanId.length() != DIGITS || !readWhole(traceId, spanId)) {
            readAny(traceId, spanId);
        }
    }

    /**
     * Parses eight digits at a time; false if one of them is invalid. Of a character above 255 only
     * the lower byte counts here: such a text can pass for the digits of these bytes.
     */
    @SuppressWarnings("deprecation") // The one way to copy characters that allocates nothing.
    private boolean readWhole(String traceId, String spanId) {
        traceId.getBytes(0, 2 * DIGITS, text, 0);
        spanId.getBytes(0, DIGITS, text, 2 * DIGITS);
        ByteBuffer from = words;
        long a = from.getLong(0);
        long b = from.getLong(8);
        long c = from.getLong(16);
        long d = from.getLong(24);
        long e = from.getLong(32);
        long f = from.getLong(40);
        if ((wrong(a) | wrong(b) | wrong(c) | wrong(d) | wrong(e) | wrong(f)) != 0) {
            return false;
        }
        traceHi = number(a) << 32 | number(b);
        traceLo = number(c) << 32 | number(d);
        span = number(e) << 32 | number(f);
        return true;
    }

    /** Not 0 if one of the eight characters is invalid. */
    private static long wrong(long characters) {
        long letters = characters >>> 6 & ONES;
        long low = characters & 0x0f * ONES;
        // 0x3n for digits, 0x4n or 0x6n for letters.
        long high = 0x30 * ONES + (letters << 4) + (characters & letters << 5);
        long tooHigh = low + 6 * ONES + 3 * letters & 0x10 * ONES;
        // For letters also n = 0.
        long tooLow = letters & ~(low + 0x0f * ONES >>> 4);
        return characters & 0xf0 * ONES ^ high | tooHigh | tooLow;
    }

    /** The value of eight digits. */
    private static long number(long characters) {
        long digits = (characters & 0x0f * ONES) + 9 * (characters >>> 6 & ONES);
        long pairs = (digits | digits >>> 4) & 0x00ff_00ff_00ff_00ffL;
        long fours = (pairs | pairs >>> 8) & 0x0000_ffff_0000_ffffL;
        return (fours | fours >>> 16) & 0xffff_ffffL;
    }

    private void readAny(String traceId, String spanId) {
        int length = traceId == null ? 0 : traceId.length();
        int above = Math.max(0, length - DIGITS);
        traceHi = above == 0 ? 0 : number(traceId, 0, above);
        traceLo = length == 0 ? 0 : number(traceId, above, length);
        span = spanId == null ? 0 : number(spanId, 0, spanId.length());
    }

    private static long number(String text, int from, int to) {
        if (to - from > DIGITS) {
            return malformed();
        }
        long number = 0;
        int seen = 0;
        for (int i = from; i < to; i++) {
            char c = text.charAt(i);
            int value = c < BAD ? VALUES[c] : BAD;
            seen |= value;
            number = number << 4 | value & 0xf;
        }
        return (seen & BAD) == 0 ? number : malformed();
    }

    private static long malformed() {
        Trouble.MALFORMED_ID.count();
        return 0;
    }
}
