package io.dwell.jmh;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A reader of JSON: objects are maps, arrays are lists, numbers are doubles. It exists because a
 * profiler must not bring libraries into the class path of a benchmark.
 */
final class Json {
    private static final int DEPTH_MAX = 100;
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** The value of a whole text. */
    static Object parse(String text) {
        Json json = new Json(text);
        Object value = json.value(0);
        json.blanks();
        if (json.at != text.length()) {
            throw json.wrong();
        }
        return value;
    }

    /** A member of an object; null if it is absent, or `value` is no object. */
    static Object get(Object value, String key) {
        return value instanceof Map ? ((Map<?, ?>) value).get(key) : null;
    }

    /** The rows of an array; none if `value` is no array. */
    static List<?> rows(Object value) {
        return value instanceof List ? (List<?>) value : new ArrayList<>();
    }

    /** A number; 0 if `value` is none. */
    static double number(Object value) {
        return value instanceof Double ? (Double) value : 0;
    }

    private IllegalArgumentException wrong() {
        return new IllegalArgumentException("no JSON at character " + at);
    }

    private void blanks() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    /** The next character that is no blank, or 0 at the end. */
    private char peek() {
        blanks();
        return at < text.length() ? text.charAt(at) : 0;
    }

    private void take(char c) {
        if (peek() != c) {
            throw wrong();
        }
        at++;
    }

    private Object value(int depth) {
        if (depth > DEPTH_MAX) {
            throw wrong();
        }
        switch (peek()) {
            case '{':
                return object(depth);
            case '[':
                return array(depth);
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

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw wrong();
        }
        at += word.length();
        return value;
    }

    private Map<String, Object> object(int depth) {
        Map<String, Object> object = new LinkedHashMap<>();
        take('{');
        if (peek() == '}') {
            at++;
            return object;
        }
        while (true) {
            blanks();
            String key = string();
            take(':');
            object.put(key, value(depth + 1));
            if (peek() == '}') {
                at++;
                return object;
            }
            take(',');
        }
    }

    private List<Object> array(int depth) {
        List<Object> array = new ArrayList<>();
        take('[');
        if (peek() == ']') {
            at++;
            return array;
        }
        while (true) {
            array.add(value(depth + 1));
            if (peek() == ']') {
                at++;
                return array;
            }
            take(',');
        }
    }

    private String string() {
        StringBuilder string = new StringBuilder();
        take('"');
        while (at < text.length()) {
            char c = text.charAt(at++);
            if (c == '"') {
                return string.toString();
            }
            if (c != '\\') {
                string.append(c);
                continue;
            }
            if (at >= text.length()) {
                break;
            }
            char escape = text.charAt(at++);
            if (escape == 'u') {
                if (at + 4 > text.length()) {
                    break;
                }
                string.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                at += 4;
                continue;
            }
            int known = "\"\\/bfnrt".indexOf(escape);
            if (known < 0) {
                break;
            }
            string.append("\"\\/\b\f\n\r\t".charAt(known));
        }
        throw wrong();
    }

    private Double number() {
        int from = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        try {
            return Double.valueOf(text.substring(from, at));
        } catch (NumberFormatException e) {
            at = from;
            throw wrong();
        }
    }
}
