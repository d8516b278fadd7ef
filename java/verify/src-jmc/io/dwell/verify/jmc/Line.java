package io.dwell.verify.jmc;

import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/** An event as one line of text, in a form that is independent of the reader. */
final class Line {
    /**
     * Longer names are replaced by their length and a hash, because a file of long names would fill
     * the memory.
     */
    private static final int SHOWN_MAX = 200;

    private final String event;
    private final Map<String, String> fields = new TreeMap<>();

    Line(String event) {
        this.event = event;
    }

    /** Adds a field; its value is one of the texts made below, or a number. */
    void add(String field, String value) {
        if (fields.put(field, value) != null) {
            throw new IllegalStateException(event + " has two fields " + field);
        }
    }

    @Override
    public String toString() {
        return event + " " + fields;
    }

    /** A name: quoted, without characters that are not printable. */
    static String quoted(String name) {
        if (name == null) {
            return "null";
        }
        StringBuilder text = new StringBuilder("'");
        for (int i = 0; i < Math.min(name.length(), SHOWN_MAX); i++) {
            char c = name.charAt(i);
            boolean plain = c > ' ' && c < 127 && c != '\'' && c != '\\';
            text.append(plain ? String.valueOf(c) : String.format("\\u%04x", (int) c));
        }
        if (name.length() > SHOWN_MAX) {
            text.append("...").append(name.length()).append('#').append(name.hashCode());
        }
        return text.append('\'').toString();
    }

    static String thread(String name, long javaId, String group) {
        return "(" + quoted(name) + " " + javaId + " " + quoted(group) + ")";
    }

    /** A class as in Java: {@code byte[]}. Readers show arrays in different forms. */
    static String type(String name) {
        String element = name.replaceAll("^\\[+", "");
        int dimensions = name.length() - element.length();
        if (dimensions == 0) {
            return quoted(name);
        }
        int code = element.length() == 1 ? "BCDFIJSZ".indexOf(element) : -1;
        String[] names = {"byte", "char", "double", "float", "int", "long", "short", "boolean"};
        String readable = code >= 0 ? names[code] : element.replaceAll("^L|;$", "");
        return quoted(readable + "[]".repeat(dimensions));
    }

    static String frame(String type, String method, String descriptor, int modifiers,
            boolean hidden, int line, int bytecode, String kind) {
        // Mission Control converts the names of kinds to identifiers.
        String identifier = kind.equals("C++") ? "CPP"
                : kind.toUpperCase(Locale.ROOT).replace(' ', '_');
        return "\n    " + quoted(type) + " " + quoted(method) + " " + quoted(descriptor) + " "
                + modifiers + " " + hidden + " " + line + " " + bytecode + " " + identifier;
    }

    static String stack(boolean truncated, StringBuilder frames) {
        return (truncated ? "truncated" : "whole") + frames;
    }
}
