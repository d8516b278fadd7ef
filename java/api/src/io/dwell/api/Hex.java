package io.dwell.api;

/** Ids as text. */
final class Hex {
    private static final int DIGITS = 16;
    private static final int BAD = 0x80;
    /** By character; {@link #BAD} for those that are no digits. */
    private static final byte[] VALUES = values();

    private Hex() {}

    private static byte[] values() {
        byte[] values = new byte[BAD];
        for (int c = 0; c < values.length; c++) {
            int digit = Character.digit(c, 16);
            values[c] = (byte) (digit < 0 ? BAD : digit);
        }
        return values;
    }

    /** The number that a text of at most 16 digits tells; 0 for null and for anything else. */
    static long span(String text) {
        return text == null ? 0 : number(text, 0, text.length());
    }

    /** The upper half of up to 32 digits. */
    static long traceHi(String text) {
        int above = text == null ? 0 : text.length() - DIGITS;
        return above <= 0 ? 0 : number(text, 0, above);
    }

    /** The lower half. */
    static long traceLo(String text) {
        if (text == null) {
            return 0;
        }
        int length = text.length();
        return number(text, Math.max(0, length - DIGITS), length);
    }

    private static long number(String text, int from, int to) {
        if (to - from > DIGITS) {
            return malformed();
        }
        byte[] values = VALUES;
        long number = 0;
        int seen = 0;
        int i = from;
        // Four at a time depend on each other less.
        for (; to - i >= 4; i += 4) {
            int a = value(values, text.charAt(i));
            int b = value(values, text.charAt(i + 1));
            int c = value(values, text.charAt(i + 2));
            int d = value(values, text.charAt(i + 3));
            seen |= a | b | c | d;
            number = number << 16 | (a << 12 | b << 8 | c << 4 | d) & 0xffff;
        }
        for (; i < to; i++) {
            int value = value(values, text.charAt(i));
            seen |= value;
            number = number << 4 | value & 0xf;
        }
        return (seen & BAD) == 0 ? number : malformed();
    }

    private static int value(byte[] values, char c) {
        return c < BAD ? values[c] : BAD;
    }

    private static long malformed() {
        Trouble.MALFORMED_ID.count();
        return 0;
    }
}
