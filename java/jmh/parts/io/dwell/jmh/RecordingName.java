package io.dwell.jmh;

import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Names of files by benchmark, the same in each run, by which `dwell diff` matches folders. */
final class RecordingName {
    /** A longer name is cut; a file name has at most 255 bytes, and `-forkN.html` is added. */
    private static final int LENGTH_MAX = 200;

    private RecordingName() {
    }

    /** `package.Class.method-param=value-mode`. */
    static String of(String benchmark, Map<String, String> parameters, String mode) {
        StringBuilder name = new StringBuilder(escaped(benchmark));
        for (Map.Entry<String, String> parameter : parameters.entrySet()) {
            name.append('-').append(escaped(parameter.getKey()));
            name.append('=').append(escaped(parameter.getValue()));
        }
        String end = "-" + escaped(mode);
        if (name.length() + end.length() > LENGTH_MAX) {
            String hash = String.format("~%08x", name.toString().hashCode());
            name.setLength(LENGTH_MAX - end.length() - hash.length());
            name.append(hash);
        }
        return name + end;
    }

    /** The name of a fork's files, without ending; forks count from 1. */
    static String ofFork(String name, int fork) {
        return fork == 1 ? name : name + "-fork" + fork;
    }

    /** The fork of a file of this benchmark, or 0. */
    static int forkOf(String file, String name) {
        int dot = file.lastIndexOf('.');
        if (dot < 0 || !file.startsWith(name)) {
            return 0;
        }
        String rest = file.substring(name.length(), dot);
        if (rest.isEmpty()) {
            return 1;
        }
        return rest.matches("-fork[1-9][0-9]{0,6}") ? Integer.parseInt(rest.substring(5)) : 0;
    }

    /** Characters with a meaning for shells, file systems or dwell become `~` and two digits. */
    private static String escaped(String text) {
        StringBuilder escaped = new StringBuilder();
        for (byte b : text.getBytes(StandardCharsets.UTF_8)) {
            char c = (char) (b & 0xff);
            boolean isPlain = c < 128 && (Character.isLetterOrDigit(c) || "._+-".indexOf(c) >= 0);
            if (isPlain) {
                escaped.append(c);
            } else {
                escaped.append(String.format("~%02x", (int) c));
            }
        }
        return escaped.toString();
    }
}
