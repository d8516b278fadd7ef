package io.dwell.api;

import java.util.concurrent.ConcurrentHashMap;

/** Numbers of texts, cached here and assigned by the agent. Bounded. */
final class Texts {
    /** The agent's limit: texts beyond it are {@code (other)}. */
    static final int TEXTS_MAX = 10_000;
    /** The number of {@code (other)}. */
    static final int OTHER = 1;

    private final int kind;
    private final ConcurrentHashMap<String, Integer> numbers = new ConcurrentHashMap<>();

    Texts(int kind) {
        this.kind = kind;
    }

    /** The number of the text; 0 for null. */
    int number(String text) {
        if (text == null) {
            return 0;
        }
        Integer known = numbers.get(text);
        return known != null ? known : add(text);
    }

    private int add(String text) {
        if (numbers.size() >= TEXTS_MAX) {
            Trouble.TEXT_OVERFLOW.count();
            return OTHER;
        }
        int number = Native.intern(kind, text);
        if (number == OTHER) {
            Trouble.TEXT_OVERFLOW.count();
        } else {
            numbers.put(text, number);
        }
        return number;
    }
}
