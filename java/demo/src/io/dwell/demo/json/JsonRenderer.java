package io.dwell.demo.json;

import java.util.List;
import java.util.Map;

/** Writes values of {@link JsonParser} as JSON. */
public final class JsonRenderer {
    private final StringBuilder out = new StringBuilder();

    private JsonRenderer() {}

    public static String render(Object value) {
        JsonRenderer renderer = new JsonRenderer();
        renderer.value(value);
        return renderer.out.toString();
    }

    private void value(Object value) {
        if (value instanceof Map) {
            object((Map<?, ?>) value);
        } else if (value instanceof List) {
            array((List<?>) value);
        } else if (value instanceof String) {
            string((String) value);
        } else {
            out.append(value);
        }
    }

    private void object(Map<?, ?> members) {
        char separator = '{';
        for (Map.Entry<?, ?> member : members.entrySet()) {
            out.append(separator);
            string((String) member.getKey());
            out.append(':');
            value(member.getValue());
            separator = ',';
        }
        out.append(members.isEmpty() ? "{}" : "}");
    }

    private void array(List<?> items) {
        char separator = '[';
        for (Object item : items) {
            out.append(separator);
            value(item);
            separator = ',';
        }
        out.append(items.isEmpty() ? "[]" : "]");
    }

    private void string(String characters) {
        out.append('"');
        for (int i = 0; i < characters.length(); i++) {
            character(characters.charAt(i));
        }
        out.append('"');
    }

    private void character(char c) {
        if (c == '"' || c == '\\') {
            out.append('\\').append(c);
        } else if (c < ' ') {
            out.append(String.format("\\u%04x", (int) c));
        } else {
            out.append(c);
        }
    }
}
