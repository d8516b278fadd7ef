package io.dwell.demo.json;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A small JSON parser. Objects become {@link Map}, arrays {@link List}, numbers {@link Double}.
 * Text that is not JSON, or is nested too deeply, causes an {@link IllegalArgumentException}.
 */
public final class JsonParser {
    private static final int NESTING_MAX = 100;

    private final String text;
    private int position;
    private int nesting;

    private JsonParser(String text) {
        this.text = text;
    }

    public static Object parse(String text) {
        JsonParser parser = new JsonParser(text);
        Object value = parser.value();
        parser.skipSpace();
        if (parser.position != text.length()) {
            throw parser.error("the end");
        }
        return value;
    }

    private Object value() {
        skipSpace();
        switch (peek()) {
            case '{':
                return object();
            case '[':
                return array();
            case '"':
                return string();
            case 't':
                return word("true", Boolean.TRUE);
            case 'f':
                return word("false", Boolean.FALSE);
            case 'n':
                return word("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> object() {
        enter('{');
        Map<String, Object> members = new LinkedHashMap<>();
        if (!accept('}')) {
            do {
                skipSpace();
                String name = string();
                expect(':');
                members.put(name, value());
            } while (accept(','));
            expect('}');
        }
        nesting--;
        return members;
    }

    private List<Object> array() {
        enter('[');
        List<Object> items = new ArrayList<>();
        if (!accept(']')) {
            do {
                items.add(value());
            } while (accept(','));
            expect(']');
        }
        nesting--;
        return items;
    }

    private void enter(char open) {
        expect(open);
        if (++nesting > NESTING_MAX) {
            throw new IllegalArgumentException("nested deeper than " + NESTING_MAX);
        }
    }

    private String string() {
        if (peek() != '"') {
            throw error("a string");
        }
        position++;
        StringBuilder characters = new StringBuilder();
        for (char c = next(); c != '"'; c = next()) {
            characters.append(c == '\\' ? escaped() : c);
        }
        return characters.toString();
    }

    private char escaped() {
        char c = next();
        switch (c) {
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            case 'u':
                return hexadecimal();
            case '"':
            case '\\':
            case '/':
                return c;
            default:
                throw error("an escape");
        }
    }

    private char hexadecimal() {
        int code = 0;
        for (int i = 0; i < 4; i++) {
            int digit = Character.digit(next(), 16);
            if (digit < 0) {
                throw error("four hexadecimal digits");
            }
            code = code << 4 | digit;
        }
        return (char) code;
    }

    private Double number() {
        int start = position;
        while (position < text.length() && isNumberCharacter(text.charAt(position))) {
            position++;
        }
        try {
            return Double.valueOf(text.substring(start, position));
        } catch (NumberFormatException e) {
            throw error("a value");
        }
    }

    private static boolean isNumberCharacter(char c) {
        return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, position)) {
            throw error(word);
        }
        position += word.length();
        return value;
    }

    private void skipSpace() {
        while (position < text.length() && text.charAt(position) <= ' ') {
            position++;
        }
    }

    private boolean accept(char expected) {
        skipSpace();
        if (position < text.length() && text.charAt(position) == expected) {
            position++;
            return true;
        }
        return false;
    }

    private void expect(char expected) {
        if (!accept(expected)) {
            throw error("'" + expected + "'");
        }
    }

    private char peek() {
        return position < text.length() ? text.charAt(position) : '\0';
    }

    private char next() {
        if (position >= text.length()) {
            throw error("more input");
        }
        return text.charAt(position++);
    }

    private IllegalArgumentException error(String expected) {
        return new IllegalArgumentException("expected " + expected + " at offset " + position);
    }
}
