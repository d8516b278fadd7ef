package io.dwell.demo.server;

import com.sun.net.httpserver.HttpServer;
import io.dwell.api.Dwell;
import io.dwell.demo.store.Packer;
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
    private final ExecutorService renderer;
    private final ExecutorService helper;
    private final Backend backend;

    private DemoServer(HttpServer http, ExecutorService workers, ExecutorService renderer,
            ExecutorService helper, Backend backend) {
        this.http = http;
        this.workers = workers;
        this.renderer = renderer;
        this.helper = helper;
        this.backend = backend;
    }

    /** Starts on the given port of 127.0.0.1; 0 takes any free one. */
    public static DemoServer start(int port) throws IOException {
        InetAddress loopback = InetAddress.getByAddress(new byte[] {127, 0, 0, 1});
        HttpServer http = HttpServer.create(new InetSocketAddress(loopback, port), BACKLOG);
        ExecutorService workers = Executors.newFixedThreadPool(WORKERS, threads("http-worker-"));
        ExecutorService renderer = Executors.newFixedThreadPool(1, threads("renderer-"));
        ExecutorService helper = Executors.newFixedThreadPool(2, threads("helper-"));
        Backend backend = Backend.start(loopback);
        http.setExecutor(workers);
        List<Endpoint> endpoints =
                endpoints(Dwell.wrap(renderer), Dwell.wrap(helper), backend);
        for (Endpoint endpoint : endpoints) {
            http.createContext(endpoint.path(), new EndpointHandler(endpoint));
        }
        http.start();
        return new DemoServer(http, workers, renderer, helper, backend);
    }

    private static List<Endpoint> endpoints(ExecutorService renderer, ExecutorService helper,
            Backend backend) throws IOException {
        return Arrays.asList(new JsonEndpoint(), new CompressEndpoint(), new HotEndpoint(),
                new RecurseEndpoint(), new LockEndpoint(), new AllocEndpoint(), new RetryEndpoint(),
                new StockEndpoint(), new RenderEndpoint(renderer), new QuoteEndpoint(backend),
                new AuditEndpoint(), new ShipEndpoint(Packer.start()), new HealthEndpoint(),
                new TariffEndpoint(helper), new RulesEndpoint(), new ArchiveEndpoint(),
                new LoginEndpoint());
    }

    private static ThreadFactory threads(String name) {
        AtomicInteger number = new AtomicInteger();
        return task -> new Thread(task, name + number.incrementAndGet());
    }

    public int port() {
        return http.getAddress().getPort();
    }

    public void stop() {
        http.stop(0);
        workers.shutdownNow();
        renderer.shutdownNow();
        helper.shutdownNow();
        backend.stop();
    }
}
