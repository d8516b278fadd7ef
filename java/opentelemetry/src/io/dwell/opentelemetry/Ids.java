package io.dwell.opentelemetry;

/** OpenTelemetry's ids, which are always lower-case hexadecimal and of one length. */
final class Ids {
    private Ids() {}

    /** The sixteen digits from a place on. */
    static long parse(String text, int from) {
        long value = 0;
        for (int i = from; i < from + 16; i++) {
            char c = text.charAt(i);
            value = value << 4 | (c <= '9' ? c - '0' : c - 'a' + 10);
        }
        return value;
    }
}
