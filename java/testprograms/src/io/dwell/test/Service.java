package io.dwell.test;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.dwell.api.Dwell;
import io.dwell.api.Scope;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URL;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * An ordinary service: an HTTP server with a pool of workers, and clients that ask it. Some
 * endpoints wait, each for something else, others compute. For each it says how many requests it
 * had and how long they took, measured inside of their scopes.
 */
public final class Service {
    private static final int PEER_MS = 120;
    private static final int SLEEP_MS = 100;
    private static final int HELD_MS = 20;
    private static final int THREADS_MAX = 1000;

    private final Harness harness;
    private final int workers;
    private final int clients;
    private final int thinkMs;
    private final List<Endpoint> endpoints = new ArrayList<>();
    private final Object ledger = new Object();
    private volatile boolean isOver;

    /** What an endpoint does, and what its requests took. */
    private static final class Endpoint {
        final String path;
        final Work work;
        final AtomicLong requests = new AtomicLong();
        final AtomicLong nanos = new AtomicLong();

        Endpoint(String path, Work work) {
            this.path = path;
            this.work = work;
        }
    }

    /** A request's work. */
    private interface Work {
        void run() throws IOException, InterruptedException;
    }

    private Service(String[] args) {
        harness = new Harness("Service", 10, args, "workers", "clients", "think_ms");
        workers = harness.number("workers", 12, 1, THREADS_MAX);
        clients = harness.number("clients", 16, 1, THREADS_MAX);
        thinkMs = harness.number("think_ms", 50, 0, 60_000);
    }

    public static void main(String[] args) throws Exception {
        new Service(args).run();
    }

    private void run() throws Exception {
        try (ServerSocket peer = new ServerSocket(0, THREADS_MAX, InetAddress.getLoopbackAddress())) {
            daemon("peer", () -> serve(peer));
            endpoints.add(new Endpoint("/peer", () -> ask(peer, PEER_MS)));
            endpoints.add(new Endpoint("/sleep", () -> TimeUnit.MILLISECONDS.sleep(SLEEP_MS)));
            endpoints.add(new Endpoint("/ledger", () -> askInLedger(peer)));
            endpoints.add(new Endpoint("/sort", () -> sortNumbers(60_000)));
            endpoints.add(new Endpoint("/words", () -> joinWords(2_000)));
            endpoints.add(new Endpoint("/sieve", () -> countPrimes(400_000)));
            ExecutorService pool = Executors.newFixedThreadPool(workers, new Workers());
            HttpServer server = HttpServer.create(
                    new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), THREADS_MAX);
            server.setExecutor(pool);
            endpoints.forEach(it -> server.createContext(it.path, exchange -> answer(it, exchange)));
            server.start();
            harness.ready();
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < clients; i++) {
                Random random = new Random(i);
                threads.add(daemon("client-" + i, () -> load(server.getAddress().getPort(), random)));
            }
            while (harness.timeLeft()) {
                TimeUnit.MILLISECONDS.sleep(10);
            }
            isOver = true;
            for (Thread thread : threads) {
                thread.join();
            }
            server.stop(0);
            pool.shutdown();
            pool.awaitTermination(1, TimeUnit.MINUTES);
        }
        for (Endpoint it : endpoints) {
            String name = "GET_" + it.path.substring(1);
            harness.info(name + ".count", Long.toString(it.requests.get()));
            harness.info(name + ".ns", Long.toString(it.nanos.get()));
        }
        harness.finish();
    }

    private static final class Workers implements java.util.concurrent.ThreadFactory {
        private int count;

        @Override
        public synchronized Thread newThread(Runnable task) {
            Thread thread = new Thread(task, "worker-" + count++);
            thread.setDaemon(true);
            return thread;
        }
    }

    private static Thread daemon(String name, Runnable task) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private void answer(Endpoint endpoint, HttpExchange exchange) throws IOException {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        long id = random.nextLong() | 1;
        long began;
        long ended;
        try (Scope scope = Dwell.scope(random.nextLong(), id, id, id, "GET " + endpoint.path)) {
            began = System.nanoTime();
            try {
                endpoint.work.run();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            exchange.sendResponseHeaders(204, -1);
            ended = System.nanoTime();
        }
        endpoint.requests.incrementAndGet();
        endpoint.nanos.addAndGet(ended - began);
        exchange.close();
    }

    /** One client: a request after the other, to an endpoint drawn at random. */
    private void load(int port, Random random) {
        while (!isOver) {
            Endpoint endpoint = endpoints.get(random.nextInt(endpoints.size()));
            try (InputStream in = new URL("http://127.0.0.1:" + port + endpoint.path).openStream()) {
                while (in.read() >= 0) {
                    // No body is expected.
                }
                // It thinks.
                TimeUnit.MILLISECONDS.sleep(thinkMs / 2 + random.nextInt(thinkMs + 1));
            } catch (IOException e) {
                throw new IllegalStateException("client: " + e, e);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    /** The service behind: answers each byte after as many times 10 ms as it says. */
    private void serve(ServerSocket peer) {
        try {
            while (!peer.isClosed()) {
                Socket socket = peer.accept();
                daemon("peer-connection", () -> reply(socket));
            }
        } catch (IOException e) {
            // Closed at the end.
        }
    }

    private void reply(Socket socket) {
        try (Socket own = socket) {
            int tens = own.getInputStream().read();
            TimeUnit.MILLISECONDS.sleep(10L * tens);
            own.getOutputStream().write(1);
        } catch (IOException | InterruptedException e) {
            // The one who asked is told by the end of the stream.
        }
    }

    private static void ask(ServerSocket peer, int millis) throws IOException {
        try (Socket socket = new Socket(peer.getInetAddress(), peer.getLocalPort())) {
            OutputStream out = socket.getOutputStream();
            out.write(millis / 10);
            if (socket.getInputStream().read() != 1) {
                throw new IOException("the peer gave no answer");
            }
        }
    }

    private void askInLedger(ServerSocket peer) throws IOException {
        synchronized (ledger) {
            ask(peer, HELD_MS);
        }
    }

    private static void sortNumbers(int count) {
        Integer[] numbers = new Integer[count];
        Random random = new Random(count);
        for (int i = 0; i < count; i++) {
            numbers[i] = random.nextInt();
        }
        Arrays.sort(numbers);
        if (numbers[0] > numbers[count - 1]) {
            throw new IllegalStateException("not sorted");
        }
    }

    private static void joinWords(int count) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < count; i++) {
            text.append(String.format("%06d-%x ", i, i * 31L));
        }
        if (text.length() < count) {
            throw new IllegalStateException("too short");
        }
    }

    private static void countPrimes(int limit) {
        boolean[] composite = new boolean[limit];
        int primes = 0;
        for (int i = 2; i < limit; i++) {
            if (!composite[i]) {
                primes++;
                for (long at = (long) i * i; at < limit; at += i) {
                    composite[(int) at] = true;
                }
            }
        }
        if (primes == 0) {
            throw new IllegalStateException("no primes");
        }
    }
}
