package io.dwell.demo.math;

/**
 * Evaluates {@code + - * /} and parentheses by recursive descent: three frames per level of
 * nesting, so 265 levels make a stack of about 800 frames.
 */
public final class ExpressionParser {
    private static final int NESTING_MAX = 500;

    private final String source;
    private int position;
    private int nesting;

    private ExpressionParser(String source) {
        this.source = source;
    }

    public static double evaluate(String source) {
        ExpressionParser parser = new ExpressionParser(source);
        double value = parser.sum();
        if (parser.position != source.length()) {
            throw parser.error("an operator");
        }
        return value;
    }

    private double sum() {
        double value = product();
        for (;;) {
            if (accept('+')) {
                value += product();
            } else if (accept('-')) {
                value -= product();
            } else {
                return value;
            }
        }
    }

    private double product() {
        double value = factor();
        for (;;) {
            if (accept('*')) {
                value *= factor();
            } else if (accept('/')) {
                value /= factor();
            } else {
                return value;
            }
        }
    }

    private double factor() {
        if (!accept('(')) {
            return number();
        }
        if (++nesting > NESTING_MAX) {
            throw new IllegalArgumentException("nested deeper than " + NESTING_MAX);
        }
        double value = sum();
        if (!accept(')')) {
            throw error("')'");
        }
        nesting--;
        return value;
    }

    private double number() {
        int start = position;
        double value = 0;
        while (position < source.length() && isDigit(source.charAt(position))) {
            value = value * 10 + (source.charAt(position++) - '0');
        }
        if (position == start) {
            throw error("a number");
        }
        return value;
    }

    private static boolean isDigit(char c) {
        return c >= '0' && c <= '9';
    }

    private boolean accept(char expected) {
        if (position < source.length() && source.charAt(position) == expected) {
            position++;
            return true;
        }
        return false;
    }

    private IllegalArgumentException error(String expected) {
        return new IllegalArgumentException("expected " + expected + " at offset " + position);
    }
}
