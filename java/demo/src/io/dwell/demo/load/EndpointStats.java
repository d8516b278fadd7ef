package io.dwell.demo.load;

import java.util.concurrent.atomic.LongAdder;

/** Statistics of one endpoint as the clients see it: since the start, and since the last call. */
public final class EndpointStats {
    private final String path;
    private final LongAdder totalRequests = new LongAdder();
    private final LongAdder requests = new LongAdder();
    private final LongAdder failures = new LongAdder();
    private final LongAdder elapsedNanos = new LongAdder();

    EndpointStats(String path) {
        this.path = path;
    }

    void add(boolean success, long nanos) {
        totalRequests.increment();
        requests.increment();
        elapsedNanos.add(nanos);
        if (!success) {
            failures.increment();
        }
    }

    long totalRequests() {
        return totalRequests.sum();
    }

    /** The numbers since the last call. */
    Reading take() {
        long count = requests.sumThenReset();
        return new Reading(path, count, failures.sumThenReset(),
                count == 0 ? 0 : elapsedNanos.sumThenReset() / 1e6 / count);
    }

    /** One line of the status report. */
    public static final class Reading {
        public final String path;
        public final long requests;
        public final long failures;
        public final double meanMillis;

        Reading(String path, long requests, long failures, double meanMillis) {
            this.path = path;
            this.requests = requests;
            this.failures = failures;
            this.meanMillis = meanMillis;
        }
    }
}
