package io.dwell.opentelemetry;

/** OpenTelemetry's ids, which are always lower-case hexadecimal and have a fixed length. */
final class Ids {
    private Ids() {}

    /** The value of sixteen digits. */
    static long parse(String text, int from) {
        long value = 0;
        for (int i = from; i < from + 16; i++) {
            char c = text.charAt(i);
            value = value << 4 | (c <= '9' ? c - '0' : c - 'a' + 10);
        }
        return value;
    }
}
