import io.dwell.api.Dwell;
import io.dwell.api.Scope;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongUnaryOperator;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;
import java.util.logging.StreamHandler;

/**
 * A small service that is healthy or has one fault. Requests come at a fixed rate to a pool. Each
 * does a little work in many methods, and the work that the fault adds.
 *
 * <p>Arguments: the fault ({@code healthy}, or one of the names in {@link #faults}), and {@code
 * seconds} (default 10). It prints the number of requests done.
 */
public final class Faults {
    private static final String ENDPOINT = "GET /work";
    private static final int WORKERS = 3;
    private static final int EVERY_MS = 10;
    private static final String TEXT = "one 17, two 42; three 5, four 99, five, six 66 and seven";
    private static final Semaphore PERMIT = new Semaphore(1);
    private static final AtomicLong DONE = new AtomicLong();

    static volatile long sink;

    /** A fault: the additional work of each request. */
    interface Fault {
        void run() throws Exception;
    }

    private Faults() {}

    public static void main(String[] args) throws Exception {
        String name = args.length > 0 ? args[0] : "healthy";
        int seconds = args.length > 1 ? Integer.parseInt(args[1]) : 10;
        Fault fault = faults().get(name);
        if (fault == null) {
            throw new IllegalArgumentException(name + ": there are " + faults().keySet());
        }
        if (name.equals("polling")) {
            named("poller").newThread(Faults::poll).start();
        }
        if (name.equals("spinning")) {
            named("spinner").newThread(Faults::spin).start();
        }
        ExecutorService workers = Executors.newFixedThreadPool(WORKERS, named("worker"));
        ScheduledExecutorService clock = Executors.newScheduledThreadPool(1, named("clock"));
        clock.scheduleAtFixedRate(() -> workers.execute(() -> serve(fault)), EVERY_MS, EVERY_MS,
                TimeUnit.MILLISECONDS);
        Thread.sleep(TimeUnit.SECONDS.toMillis(seconds));
        System.out.println("requests " + DONE.get());
        System.exit(0);
    }

    private static Map<String, Fault> faults() throws IOException {
        Map<String, Fault> all = new LinkedHashMap<>();
        all.put("healthy", () -> { });
        all.put("polling", () -> { });
        all.put("spinning", () -> { });
        all.put("exceptions", Faults::throwMany);
        all.put("logging", Faults::logMany);
        all.put("reflection", Faults::reflectMany);
        all.put("regex", Faults::matchMany);
        all.put("format", Faults::formatMany);
        all.put("reads", reader());
        all.put("permits", Faults::borrow);
        all.put("held-up", Faults::waitLong);
        all.put("lock", Faults::lock);
        all.put("naps", Faults::nap);
        all.put("downstream", new Downstream());
        all.put("hot", Faults::crunch);
        all.put("garbage", new Garbage());
        all.put("dumps", Faults::dump);
        all.put("pinned", new Pinned());
        all.put("crew", new Crew(2));
        all.put("crew-well", new Crew(12));
        return all;
    }

    private static ThreadFactory named(String pool) {
        AtomicLong number = new AtomicLong();
        return task -> {
            Thread thread = new Thread(task, pool + "-" + number.incrementAndGet());
            thread.setDaemon(true);
            return thread;
        };
    }

    private static void serve(Fault fault) {
        String id = Long.toHexString(DONE.incrementAndGet());
        try (Scope scope = Dwell.scope(id, id, ENDPOINT)) {
            for (LongUnaryOperator part : PARTS) {
                sink += part.applyAsLong(20_000);
            }
            fault.run();
        } catch (Exception e) {
            e.printStackTrace();
            System.exit(1);
        }
    }

    /** Work in many methods, each with a small part. */
    private static final LongUnaryOperator[] PARTS = {
        n -> { long s = 0; for (long i = 0; i < n; i++) { s += i * i; } return s; },
        n -> { long s = 1; for (long i = 0; i < n; i++) { s ^= s << 3 ^ i; } return s; },
        n -> { long s = 2; for (long i = 0; i < n; i++) { s = s * 31 + i; } return s; },
        n -> { long s = 3; for (long i = 0; i < n; i++) { s += s >>> 7 ^ i; } return s; },
        n -> { long s = 4; for (long i = 0; i < n; i++) { s ^= s * 17 + i; } return s; },
        n -> { long s = 5; for (long i = 0; i < n; i++) { s = Long.rotateLeft(s, 5) + i; } return s; },
        n -> { long s = 6; for (long i = 0; i < n; i++) { s += s << 1 ^ i; } return s; },
        n -> { long s = 7; for (long i = 0; i < n; i++) { s = s * 13 ^ i; } return s; },
        n -> { long s = 8; for (long i = 0; i < n; i++) { s -= s >> 3 ^ i; } return s; },
        n -> { long s = 9; for (long i = 0; i < n; i++) { s = Long.reverse(s) + i; } return s; },
        n -> { long s = 10; for (long i = 0; i < n; i++) { s += s * 7 ^ i; } return s; },
        n -> { long s = 11; for (long i = 0; i < n; i++) { s ^= s >>> 9 + i; } return s; },
    };

    private static void throwMany() {
        for (int i = 0; i < 300; i++) {
            try {
                sink += parse(TEXT, 25);
            } catch (NumberFormatException e) {
                sink += e.getStackTrace().length > 0 ? 1 : 0;
            }
        }
    }

    private static int parse(String text, int depth) {
        return depth == 0 ? Integer.parseInt(text) : parse(text, depth - 1);
    }

    private static void logMany() {
        for (int i = 0; i < 300; i++) {
            Log.LOGGER.log(Level.INFO, "request {0} took {1}", new Object[] {i, sink});
        }
    }

    /** A logger with output that is not read. */
    private static final class Log {
        static final Logger LOGGER = Logger.getLogger("faults");

        static {
            LOGGER.setUseParentHandlers(false);
            LOGGER.addHandler(new StreamHandler(new OutputStream() {
                @Override
                public void write(int b) {
                    sink += b;
                }

                @Override
                public void write(byte[] bytes, int from, int length) {
                    sink += length;
                }
            }, new SimpleFormatter()));
        }
    }

    private static void reflectMany() throws ReflectiveOperationException {
        for (int i = 0; i < 300; i++) {
            for (Method method : TimeUnit.class.getDeclaredMethods()) {
                if (method.getName().equals("toNanos")) {
                    sink += (Long) method.invoke(TimeUnit.SECONDS, (long) i);
                }
            }
        }
    }

    private static void matchMany() {
        for (int i = 0; i < 150; i++) {
            sink += TEXT.replaceAll("[^a-z]+", " ").split("\\s+|,").length;
        }
    }

    private static void formatMany() {
        for (int i = 0; i < 300; i++) {
            sink += String.format("%-8s %05d %.3f", TEXT, i, i / 7.0).length();
        }
    }

    private static Fault reader() throws IOException {
        Path file = Files.createTempFile("faults", ".txt");
        file.toFile().deleteOnExit();
        Files.write(file, new byte[4 << 20]);
        return () -> sink += Files.readAllBytes(file).length;
    }

    private static void borrow() throws InterruptedException {
        PERMIT.acquire();
        try {
            Thread.sleep(12);
        } finally {
            PERMIT.release();
        }
    }

    private static synchronized void lock() throws InterruptedException {
        Thread.sleep(12);
    }

    private static void nap() throws InterruptedException {
        Thread.sleep(12);
    }

    private static void crunch() {
        long sum = sink;
        for (int i = 0; i < 3_000_000; i++) {
            sum = sum * 31 + i;
        }
        sink = sum;
    }

    /** A peer that answers after 15 ms; each worker keeps its connection. */
    private static final class Downstream implements Fault {
        private final ThreadLocal<Socket> connection = ThreadLocal.withInitial(this::connect);
        private final ThreadFactory peers = named("peer");
        private ServerSocket server;

        private synchronized Socket connect() {
            try {
                if (server == null) {
                    server = new ServerSocket(0, WORKERS, InetAddress.getLoopbackAddress());
                }
                peers.newThread(this::answer).start();
                return new Socket(server.getInetAddress(), server.getLocalPort());
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        private void answer() {
            try (Socket socket = server.accept()) {
                while (socket.getInputStream().read() >= 0) {
                    Thread.sleep(15);
                    socket.getOutputStream().write(1);
                }
            } catch (IOException | InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }

        @Override
        public void run() throws IOException {
            Socket socket = connection.get();
            socket.getOutputStream().write(1);
            sink += socket.getInputStream().read();
        }
    }

    /** A health check that reads all threads and their locks, which it finds in the whole heap. */
    private static void dump() {
        sink += ManagementFactory.getThreadMXBean().dumpAllThreads(true, true).length;
    }

    private static void waitLong() throws InterruptedException {
        Thread.sleep(60);
    }

    private static void poll() {
        try {
            while (true) {
                Thread.sleep(2);
                sink++;
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Polls a queue that stays empty. */
    private static void spin() {
        Queue<Long> queue = new ConcurrentLinkedQueue<>();
        while (true) {
            Long next = queue.poll();
            if (next == null) {
                Thread.yield();
            } else {
                sink += next;
            }
        }
    }

    /** Keeps much of what it allocates for a while. */
    private static final class Garbage implements Fault {
        private final ArrayDeque<byte[][]> kept = new ArrayDeque<>();

        @Override
        public synchronized void run() {
            byte[][] pieces = new byte[2000][];
            for (int i = 0; i < pieces.length; i++) {
                pieces[i] = new byte[500];
            }
            kept.add(pieces);
            if (kept.size() > 36) {
                kept.remove();
            }
        }
    }

    /** A hand-made pool: threads that take the requests' tasks from a queue; 30 ms for each. */
    private static final class Crew implements Fault {
        private final BlockingQueue<Integer> queue = new ArrayBlockingQueue<>(4);
        private int missing;

        Crew(int threads) {
            missing = threads;
        }

        @Override
        public void run() throws InterruptedException {
            start();
            queue.put(1);
        }

        private synchronized void start() {
            ThreadFactory threads = named("crew");
            for (; missing > 0; missing--) {
                threads.newThread(this::work).start();
            }
        }

        private void work() {
            try {
                while (true) {
                    sink += queue.take();
                    for (LongUnaryOperator part : PARTS) {
                        sink += part.applyAsLong(20_000);
                    }
                    Thread.sleep(30);
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Starts virtual threads that sleep inside a monitor; reflection, to be compiled for Java 8. */
    private static final class Pinned implements Fault {
        @Override
        public void run() throws ReflectiveOperationException {
            Thread.class.getMethod("startVirtualThread", Runnable.class)
                    .invoke(null, (Runnable) Pinned::sleepInside);
        }

        private static void sleepInside() {
            synchronized (new Object()) {
                try {
                    Thread.sleep(15);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            }
        }
    }
}
