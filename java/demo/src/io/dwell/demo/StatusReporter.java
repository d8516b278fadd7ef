package io.dwell.demo;

import io.dwell.demo.load.EndpointStats;
import io.dwell.demo.load.LoadGenerator;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/** Waits for the end of the run and prints the status on standard error now and then. */
final class StatusReporter {
    private static final long REPORT_EVERY_NS = TimeUnit.SECONDS.toNanos(5);

    private final LoadGenerator load;
    private final boolean quiet;

    StatusReporter(LoadGenerator load, boolean quiet) {
        this.load = load;
        this.quiet = quiet;
    }

    void reportFor(int seconds) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
        for (long left = end - System.nanoTime(); left > 0; left = end - System.nanoTime()) {
            TimeUnit.NANOSECONDS.sleep(Math.min(left, REPORT_EVERY_NS));
            if (!quiet) {
                System.err.println(statusLine(load.takeStats()));
            }
        }
    }

    private String statusLine(List<EndpointStats.Reading> readings) {
        StringBuilder line = new StringBuilder(
                String.format(Locale.ROOT, "%.1f cores busy", load.busyCores()));
        for (EndpointStats.Reading reading : readings) {
            line.append(String.format(Locale.ROOT, "  %s %d x %.1f ms", reading.path,
                    reading.requests, reading.meanMillis));
            if (reading.failures > 0) {
                line.append(" (").append(reading.failures).append(" failed)");
            }
        }
        return line.toString();
    }
}
