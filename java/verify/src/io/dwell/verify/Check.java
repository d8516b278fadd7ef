package io.dwell.verify;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;

/**
 * Reads a recording with the JDK's own reader and prints its contents, one fact per line: an oracle
 * that shares no code with the writer. It does not judge; tests compare the lines.
 */
public final class Check {
    private static final int EXIT_FAILURE = 1;
    private static final int EXIT_USAGE = 2;

    private Check() {}

    public static void main(String[] args) {
        CheckOptions options;
        try {
            options = CheckOptions.parse(args);
        } catch (IllegalArgumentException e) {
            System.err.println("dwell-verify: " + e.getMessage() + "\n" + CheckOptions.USAGE);
            System.exit(EXIT_USAGE);
            return;
        }
        try {
            check(options);
        } catch (IOException | UncheckedIOException e) {
            System.err.println("dwell-verify: cannot read " + options.file() + ": "
                    + e.getMessage());
            System.exit(EXIT_FAILURE);
        }
    }

    private static void check(CheckOptions options) throws IOException {
        Map<String, Long> eventCounts = new TreeMap<>();
        Samples samples = new Samples(options);
        try (RecordingFile recording = new RecordingFile(Path.of(options.file()))) {
            while (recording.hasMoreEvents()) {
                RecordedEvent event = recording.readEvent();
                String name = event.getEventType().getName();
                eventCounts.merge(name, 1L, Long::sum);
                if (name.equals("dwell.SampleDetail")) {
                    samples.setWeight(event);
                }
                if (name.equals(options.event())) {
                    samples.add(event);
                }
            }
        }
        eventCounts.forEach((name, count) -> System.out.println("event " + name + " " + count));
        samples.print(System.out);
    }
}
