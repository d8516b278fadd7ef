package io.dwell.jmh;

import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * The options after the profiler's name: {@code key=value}, divided by semicolons as those of JMH's
 * own profilers.
 */
final class ProfilerOptions {
    static final String USAGE = "options are dir=DIR, command=PATH, events=cpu,wall,alloc,live,lock,"
            + " page=true|false and verbose, divided by ;";
    private static final List<String> EVENTS = Arrays.asList("cpu", "wall", "alloc", "live", "lock");

    /** The folder of recordings and pages. */
    String dir = "dwell-jmh";
    /** The command, or null: that of DWELL, else `dwell` on the path. */
    String command;
    /** Recorded events, for `dwell start -e`, or null: all that cost little. */
    String events;
    /** Whether each recording gets an HTML page. */
    boolean page = true;
    /** Whether each command is printed. */
    boolean verbose;

    /** Parses the text; null is the same as none. */
    static ProfilerOptions parse(String text) {
        ProfilerOptions options = new ProfilerOptions();
        Set<String> seen = new LinkedHashSet<>();
        for (String part : (text == null ? "" : text).split(";")) {
            if (part.trim().isEmpty()) {
                continue;
            }
            int sign = part.indexOf('=');
            String key = (sign < 0 ? part : part.substring(0, sign)).trim();
            String value = sign < 0 ? null : part.substring(sign + 1).trim();
            if (!seen.add(key)) {
                throw new IllegalArgumentException("option " + key + " is given twice");
            }
            options.set(key, value);
        }
        return options;
    }

    private void set(String key, String value) {
        switch (key) {
            case "dir":
                dir = needed(key, value);
                break;
            case "command":
                command = needed(key, value);
                break;
            case "events":
                events = events(needed(key, value));
                break;
            case "page":
                page = isTrue(key, value);
                break;
            case "verbose":
                verbose = isTrue(key, value);
                break;
            default:
                throw new IllegalArgumentException("unknown option '" + key + "'; " + USAGE);
        }
    }

    private static String needed(String key, String value) {
        if (value == null || value.isEmpty()) {
            throw new IllegalArgumentException("option " + key + " needs a value; " + USAGE);
        }
        return value;
    }

    private static boolean isTrue(String key, String value) {
        if (value == null || value.equals("true")) {
            return true;
        }
        if (value.equals("false")) {
            return false;
        }
        throw new IllegalArgumentException("option " + key + " is true or false, not '" + value + "'");
    }

    /** Each event once; CPU time is always recorded. */
    private static String events(String value) {
        Set<String> events = new LinkedHashSet<>();
        events.add("cpu");
        for (String event : value.split(",", -1)) {
            if (!EVENTS.contains(event.trim())) {
                throw new IllegalArgumentException("option events has '" + event.trim()
                        + "'; events are " + String.join(",", EVENTS));
            }
            events.add(event.trim());
        }
        return String.join(",", events);
    }

    /** The events to record on a JVM of this version. Before 11 it cannot sample allocations. */
    String eventsOn(String version) {
        if (events != null) {
            return events;
        }
        return major(version) >= 11 ? "cpu,wall,alloc" : "cpu,wall";
    }

    /** The major version of Java: 8 of 1.8.0_402, 21 of 21-ea; 0 if it is unknown. */
    static int major(String version) {
        String[] parts = String.valueOf(version).split("[^0-9]+");
        try {
            int first = Integer.parseInt(parts[0]);
            return first == 1 && parts.length > 1 ? Integer.parseInt(parts[1]) : first;
        } catch (NumberFormatException | ArrayIndexOutOfBoundsException e) {
            return 0;
        }
    }

    /** The command to run, in an environment with this value of DWELL. */
    String commandOr(String environment) {
        if (command != null) {
            return command;
        }
        return environment == null || environment.isEmpty() ? "dwell" : environment;
    }
}
