package io.dwell.verify.jmc;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.openjdk.jmc.common.item.IItemCollection;
import org.openjdk.jmc.flightrecorder.CouldNotLoadRecordingException;
import org.openjdk.jmc.flightrecorder.JfrLoaderToolkit;

/**
 * Reads a recording with the parser of JDK Mission Control and with the JDK's own reader. Fails
 * unless both see the same: every field of every event, down to the frames. Prints the number of
 * events, and Mission Control's view of the samples.
 */
public final class Compare {
    private static final int EXIT_DIFFERENT = 1;
    private static final int EXIT_UNREADABLE = 2;
    private static final int SHOWN_MAX = 5;
    private static final int SHOWN_LENGTH_MAX = 2000;

    private Compare() {}

    public static void main(String[] args) {
        if (args.length != 1) {
            System.err.println("usage: java -jar dwell-verify-jmc.jar FILE.jfr");
            System.exit(EXIT_UNREADABLE);
        }
        File file = new File(args[0]);
        try {
            IItemCollection items = JfrLoaderToolkit.loadEvents(file);
            List<String> seen = JmcEvents.lines(items);
            if (!same(seen, JdkEvents.lines(file.toPath()))) {
                System.exit(EXIT_DIFFERENT);
            }
            Map<String, Integer> counts = new TreeMap<>();
            seen.forEach(line -> counts.merge(line.substring(0, line.indexOf(' ')), 1,
                    Integer::sum));
            counts.forEach((name, count) -> System.out.println("event " + name + " " + count));
            Samples.print(items, System.out);
        } catch (IOException | CouldNotLoadRecordingException e) {
            System.err.println("dwell-verify-jmc: cannot read " + file + ": " + e);
            System.exit(EXIT_UNREADABLE);
        }
    }

    /** Whether the lines are the same in any order; prints the differences. */
    private static boolean same(List<String> jmc, List<String> jdk) {
        Collections.sort(jmc);
        Collections.sort(jdk);
        List<String> onlyJmc = without(jmc, jdk);
        List<String> onlyJdk = without(jdk, jmc);
        show("seen by Mission Control only", onlyJmc);
        show("seen by the JDK only", onlyJdk);
        return onlyJmc.isEmpty() && onlyJdk.isEmpty();
    }

    /** The lines of one sorted list that are not in the other. */
    private static List<String> without(List<String> from, List<String> taken) {
        List<String> rest = new ArrayList<>();
        int next = 0;
        for (String line : from) {
            while (next < taken.size() && taken.get(next).compareTo(line) < 0) {
                next++;
            }
            if (next < taken.size() && taken.get(next).equals(line)) {
                next++;
            } else {
                rest.add(line);
            }
        }
        return rest;
    }

    private static void show(String what, List<String> lines) {
        if (!lines.isEmpty()) {
            System.err.println(what + ": " + lines.size());
        }
        for (String line : lines.subList(0, Math.min(SHOWN_MAX, lines.size()))) {
            System.err.println(
                    "  " + line.substring(0, Math.min(SHOWN_LENGTH_MAX, line.length())));
        }
    }
}
