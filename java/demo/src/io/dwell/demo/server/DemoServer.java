package io.dwell.demo.server;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;

/** The HTTP server: its endpoints and its pool of worker threads. Listens on loopback only. */
public final class DemoServer {
    private static final int WORKERS = 6;
    private static final int BACKLOG = 64;

    private final HttpServer http;
    private final ExecutorService workers;

    private DemoServer(HttpServer http, ExecutorService workers) {
        this.http = http;
        this.workers = workers;
    }

    /** Starts on the given port of 127.0.0.1; 0 takes any free one. */
    public static DemoServer start(int port) throws IOException {
        InetAddress loopback = InetAddress.getByAddress(new byte[] {127, 0, 0, 1});
        HttpServer http = HttpServer.create(new InetSocketAddress(loopback, port), BACKLOG);
        ExecutorService workers = Executors.newFixedThreadPool(WORKERS, workerThreads());
        http.setExecutor(workers);
        for (Endpoint endpoint : endpoints()) {
            http.createContext(endpoint.path(), new EndpointHandler(endpoint));
        }
        http.start();
        return new DemoServer(http, workers);
    }

    private static List<Endpoint> endpoints() {
        return Arrays.asList(new JsonEndpoint(), new CompressEndpoint(), new HotEndpoint(),
                new RecurseEndpoint(), new LockEndpoint(), new AllocEndpoint());
    }

    private static ThreadFactory workerThreads() {
        AtomicInteger number = new AtomicInteger();
        return task -> new Thread(task, "http-worker-" + number.incrementAndGet());
    }

    public int port() {
        return http.getAddress().getPort();
    }

    public void stop() {
        http.stop(0);
        workers.shutdownNow();
    }
}
