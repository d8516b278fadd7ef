import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.dwell.api.Dwell;
import io.dwell.api.Scope;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A service with one endpoint that is slow: {@code GET /numbers} runs tasks on a pool, each of which
 * allocates a pair of large buffers and fills them with random numbers. Whether it waits for memory,
 * for a processor, or only for the numbers, depends on the memory and processors of the JVM.
 *
 * <p>It prints its port, answers on loopback, and ends when its standard input does. Arguments:
 * {@code tasks} of a request, {@code threads} of the pool, {@code MiB} of a buffer (30, 10, 50).
 */
public final class Latency {
    private static final String ENDPOINT = "GET /numbers";
    /** Header of an array: it is part of the given size of a buffer. */
    private static final int HEADER_BYTES = 16;

    private final AtomicLong requests = new AtomicLong();
    private final int tasks;
    private final int bytes;
    private final ExecutorService pool;

    private Latency(int tasks, int threads, int mebibytes) {
        this.tasks = tasks;
        this.bytes = (mebibytes << 20) - HEADER_BYTES;
        this.pool = Dwell.wrap(Executors.newFixedThreadPool(threads, named("numbers")));
    }

    public static void main(String[] args) throws IOException {
        int[] numbers = {30, 10, 50};
        for (int i = 0; i < Math.min(args.length, numbers.length); i++) {
            numbers[i] = Integer.parseInt(args[i]);
        }
        Latency service = new Latency(numbers[0], numbers[1], numbers[2]);
        HttpServer http = HttpServer.create(
                new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 16);
        http.setExecutor(Executors.newFixedThreadPool(4, named("http")));
        http.createContext("/numbers", service::serve);
        http.start();
        System.out.println("port " + http.getAddress().getPort());
        while (System.in.read() >= 0) {
            // The input has no content; its end ends the service.
        }
        System.exit(0);
    }

    /** Names threads by their purpose, so that a profile shows them as one group. */
    private static ThreadFactory named(String pool) {
        AtomicInteger number = new AtomicInteger();
        return task -> {
            Thread thread = new Thread(task, pool + "-" + number.incrementAndGet());
            thread.setDaemon(true);
            return thread;
        };
    }

    private void serve(HttpExchange exchange) throws IOException {
        String id = Long.toHexString(requests.incrementAndGet());
        try (Scope scope = Dwell.scope(id, id, ENDPOINT)) {
            byte[] answer = Long.toString(runAll()).getBytes("UTF-8");
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
        } catch (InterruptedException | ExecutionException e) {
            exchange.sendResponseHeaders(500, -1);
            System.out.println("failed " + e);
        } finally {
            exchange.close();
        }
    }

    private long runAll() throws InterruptedException, ExecutionException {
        List<Future<Long>> running = new ArrayList<>();
        for (int task = 0; task < tasks; task++) {
            long seed = task;
            running.add(pool.submit(() -> task(seed)));
        }
        long sum = 0;
        for (Future<Long> one : running) {
            sum += one.get();
        }
        return sum;
    }

    private long task(long seed) {
        ByteBuffer first = ByteBuffer.allocate(bytes);
        ByteBuffer second = ByteBuffer.allocate(bytes);
        SplittableRandom random = new SplittableRandom(seed);
        fill(first, random);
        fill(second, random);
        return first.getInt(bytes - Integer.BYTES) + (long) second.getInt(bytes - Integer.BYTES);
    }

    private static void fill(ByteBuffer buffer, SplittableRandom random) {
        while (buffer.remaining() >= Integer.BYTES) {
            buffer.putInt(random.nextInt());
        }
    }
}
