package io.dwell.demo.load;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** The load: a fixed number of client threads and the governor that sets their pace. */
public final class LoadGenerator {
    private static final int CLIENTS = 6;
    private static final long WARM_REQUESTS_PER_ENDPOINT = 120;
    private static final long WARM_UP_MAX_NS = TimeUnit.SECONDS.toNanos(15);
    private static final long WARM_UP_POLL_MS = 50;
    /** Time in which the governor reaches its target. */
    private static final long SLOW_DOWN_MS = 1500;
    private static final long JOIN_MAX_MS = 2000;

    private final LoadGovernor governor;
    private final Map<RequestMix, EndpointStats> stats;
    private final List<Thread> threads = new ArrayList<>();

    private final double busyCores;

    private LoadGenerator(double busyCores) {
        this.busyCores = busyCores;
        // At full speed until all code is compiled.
        this.governor = new LoadGovernor(Runtime.getRuntime().availableProcessors());
        Map<RequestMix, EndpointStats> byRequest = new EnumMap<>(RequestMix.class);
        for (RequestMix request : RequestMix.values()) {
            byRequest.put(request, new EndpointStats(request.path));
        }
        this.stats = Collections.unmodifiableMap(byRequest);
    }

    public static LoadGenerator start(int port, double busyCores) throws IOException {
        LoadGenerator load = new LoadGenerator(busyCores);
        load.startThread(load.governor, "load-governor");
        for (int i = 1; i <= CLIENTS; i++) {
            load.startThread(new LoadClient(port, i, load.governor, load.stats),
                    "load-client-" + i);
        }
        return load;
    }

    private void startThread(Runnable task, String name) {
        Thread thread = new Thread(task, name);
        // After a failure elsewhere, the process must not stay alive just to send requests to
        // itself.
        thread.setDaemon(true);
        threads.add(thread);
        thread.start();
    }

    /** Returns when every endpoint has served enough requests to be compiled, or after 15 s. */
    public void awaitWarm() throws InterruptedException {
        long deadline = System.nanoTime() + WARM_UP_MAX_NS;
        while (!isWarm() && System.nanoTime() < deadline) {
            Thread.sleep(WARM_UP_POLL_MS);
        }
        governor.target(busyCores);
        Thread.sleep(SLOW_DOWN_MS);
        takeStats();
    }

    private boolean isWarm() {
        for (EndpointStats endpoint : stats.values()) {
            if (endpoint.totalRequests() < WARM_REQUESTS_PER_ENDPOINT) {
                return false;
            }
        }
        return true;
    }

    /** The numbers of each endpoint since the last call. */
    public List<EndpointStats.Reading> takeStats() {
        List<EndpointStats.Reading> readings = new ArrayList<>();
        for (EndpointStats endpoint : stats.values()) {
            readings.add(endpoint.take());
        }
        return readings;
    }

    /** CPU time used by this process recently, in cores. */
    public double busyCores() {
        return governor.busyCores();
    }

    public void stop() throws InterruptedException {
        governor.stop();
        for (Thread thread : threads) {
            thread.join(JOIN_MAX_MS);
        }
    }
}
