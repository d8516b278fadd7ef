import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.channels.Selector;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Groups of threads that measure each of their operations: {@code WallPlaces SECONDS}. The place is
 * the method on the stack ({@code placeSleep5}). The group is the thread's name up to a hyphen.
 * Prints {@code place PLACE@GROUP WALL WAITED}: the time of all such operations, and the part in
 * which they waited for a processor, by the kernel's account of the thread, in nanoseconds.
 *
 * <p>The groups want more than two processors. The account is read between operations, outside of
 * all places. A recording lasts longer than the program, so at its end the threads end that do not
 * wait for others.
 */
public final class WallPlaces {
    private static final Map<String, LongAdder[]> TIMES = new ConcurrentHashMap<>();
    private static final ThreadLocal<Meter> METER = ThreadLocal.withInitial(Meter::new);

    private static final BlockingQueue<Integer> FIRST = new ArrayBlockingQueue<>(4);
    private static final BlockingQueue<Integer> SECOND = new LinkedBlockingQueue<>(50);
    private static final Semaphore PERMITS = new Semaphore(2);
    private static final ReentrantLock LOCK = new ReentrantLock();
    private static final ReentrantLock OTHER_LOCK = new ReentrantLock();
    private static final Condition CONDITION = OTHER_LOCK.newCondition();
    private static final CyclicBarrier BARRIER = new CyclicBarrier(3);
    private static final Object MONITOR = new Object();
    private static final Object NOTE = new Object();
    private static volatile boolean over;
    private static volatile long sink;

    private WallPlaces() {}

    public static void main(String[] args) throws Exception {
        startPipeline();
        startLocks();
        startTimers();
        startSockets();
        startFile();
        startTasks();
        Thread.sleep(Long.parseLong(args[0]) * 1000);
        over = true;
        // The longest operations without another thread end.
        Thread.sleep(100);
        new TreeMap<>(TIMES).forEach((name, times) ->
            System.out.println("place " + name + " " + times[0] + " " + times[1]));
        System.exit(0);
    }

    private static void startPipeline() {
        repeat("producer", 1, () -> {
            measure("placeCompute3", WallPlaces::placeCompute3);
            measure("placePut", WallPlaces::placePut);
        });
        repeat("stage", 2, () -> {
            measure("placeTake", WallPlaces::placeTake);
            measure("placeSleep5", WallPlaces::placeSleep5);
            measure("placePutNext", WallPlaces::placePutNext);
        });
        repeat("consumer", 1, () -> {
            measure("placePoll", WallPlaces::placePoll);
            measure("placeComputeShort", WallPlaces::placeComputeShort);
        });
    }

    private static void startLocks() {
        repeat("permit", 6, () -> {
            measure("placeAcquire", WallPlaces::placeAcquire);
            measure("placeSleep5", WallPlaces::placeSleep5);
            PERMITS.release();
        });
        repeat("locker", 4, () -> {
            measure("placeLock", WallPlaces::placeLock);
            measure("placeComputeShort", WallPlaces::placeComputeShort);
            measure("placeSleep5", WallPlaces::placeSleep5);
            LOCK.unlock();
            measure("placeSleep30", WallPlaces::placeSleep30);
        });
        repeat("monitor", 3, () -> {
            measure("placeMonitor", WallPlaces::placeMonitor);
            measure("placeSleep5", WallPlaces::placeSleep5);
        });
        repeat("waiter", 3, () -> measure("placeWait", WallPlaces::placeWait));
        repeat("notifier", 1, () -> {
            measure("placeNotify", WallPlaces::placeNotify);
            measure("placeSleep30", WallPlaces::placeSleep30);
        });
        repeat("condition", 2, () -> measure("placeCondition", WallPlaces::placeCondition));
        repeat("barrier", 3, () -> {
            measure("placeBarrier", WallPlaces::placeBarrier);
            measure("placeComputeShort", WallPlaces::placeComputeShort);
            measure("placeSleep5", WallPlaces::placeSleep5);
        });
    }

    private static void startTimers() throws IOException {
        repeat("poller", 8, () -> {
            measure("placePark", WallPlaces::placePark);
            compute(50);
        });
        repeat("mixed", 2, () -> {
            measure("placeCompute30", WallPlaces::placeCompute30);
            measure("placeSleep30", WallPlaces::placeSleep30);
        });
        // Both sleeps leave the same words on the stack: only the methods differ.
        repeat("alternating", 4, () -> {
            Meter meter = METER.get();
            meter.begin();
            placeSleep5();
            meter.end("placeSleep5");
            meter.begin();
            placeSleep30();
            meter.end("placeSleep30");
        });
        Selector selector = Selector.open();
        repeat("selector", 1, () -> measure("placeSelect", () -> placeSelect(selector)));
    }

    private static void startSockets() throws IOException {
        for (int i = 0; i < 2; i++) {
            ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
            Socket client = new Socket(server.getInetAddress(), server.getLocalPort());
            Socket other = server.accept();
            client.setTcpNoDelay(true);
            other.setTcpNoDelay(true);
            repeat("ping", 1, () -> measure("placePing",
                () -> placePing(client.getInputStream(), client.getOutputStream())));
            repeat("echo", 1, () -> {
                measure("placeRead", () -> placeRead(other.getInputStream()));
                measure("placeSleep5", WallPlaces::placeSleep5);
                other.getOutputStream().write(1);
            });
        }
    }

    private static void startFile() throws IOException {
        File path = File.createTempFile("places", null);
        RandomAccessFile file = new RandomAccessFile(path, "rw");
        path.delete();
        repeat("file", 1, () -> {
            measure("placeFile", () -> placeFile(file));
            measure("placeSleep30", WallPlaces::placeSleep30);
        });
    }

    private static void startTasks() {
        repeat("spawner", 1, () -> {
            Thread task = start("task", () -> {
                measure("placeSleep30", WallPlaces::placeSleep30);
                measure("placeCompute3", WallPlaces::placeCompute3);
            });
            measure("placeJoin", () -> placeJoin(task));
        });
        repeat("starter", 1, () -> {
            start("brief", () -> {
                measure("placeSleep5", WallPlaces::placeSleep5);
                measure("placeComputeShort", WallPlaces::placeComputeShort);
                measure("placeSleep5", WallPlaces::placeSleep5);
            });
            measure("placeSleep5", WallPlaces::placeSleep5);
        });
        ForkJoinPool pool = new ForkJoinPool(2);
        repeat("async", 2, () -> {
            CompletableFuture<?> future = CompletableFuture.runAsync(() -> orHalt(() -> {
                measure("placeCompute3", WallPlaces::placeCompute3);
                measure("placeSleep5", WallPlaces::placeSleep5);
            }), pool);
            measure("placeFuture", () -> placeFuture(future));
        });
    }

    private static void placeCompute3() {
        compute(3000);
    }

    private static void placeCompute30() {
        compute(30_000);
    }

    private static void placeComputeShort() {
        compute(300);
    }

    private static void placePut() throws Exception {
        FIRST.put(1);
    }

    private static void placeTake() throws Exception {
        FIRST.take();
    }

    private static void placePutNext() throws Exception {
        SECOND.put(1);
    }

    private static void placePoll() throws Exception {
        SECOND.poll(500, TimeUnit.MILLISECONDS);
    }

    private static void placeAcquire() throws Exception {
        PERMITS.acquire();
    }

    private static void placeSleep5() throws Exception {
        Thread.sleep(5);
    }

    private static void placeSleep30() throws Exception {
        Thread.sleep(30);
    }

    private static void placePark() {
        LockSupport.parkNanos(5_000_000);
    }

    private static void placeLock() {
        LOCK.lock();
    }

    private static void placeMonitor() {
        synchronized (MONITOR) {
            compute(1500);
        }
    }

    private static void placeWait() throws Exception {
        synchronized (NOTE) {
            NOTE.wait(20);
        }
    }

    private static void placeNotify() {
        synchronized (NOTE) {
            NOTE.notifyAll();
        }
    }

    private static void placeCondition() throws Exception {
        OTHER_LOCK.lock();
        try {
            CONDITION.awaitNanos(10_000_000);
        } finally {
            OTHER_LOCK.unlock();
        }
    }

    private static void placeBarrier() throws Exception {
        BARRIER.await();
    }

    private static void placeSelect(Selector selector) throws Exception {
        selector.select(10);
    }

    private static void placePing(InputStream in, OutputStream out) throws Exception {
        out.write(1);
        in.read();
    }

    private static void placeRead(InputStream in) throws Exception {
        in.read();
    }

    private static void placeFile(RandomAccessFile file) throws Exception {
        file.seek(0);
        file.write(new byte[65_536]);
        file.getFD().sync();
    }

    private static void placeJoin(Thread thread) throws Exception {
        thread.join();
    }

    private static void placeFuture(CompletableFuture<?> future) throws Exception {
        future.get();
    }

    private static void compute(long micros) {
        long end = System.nanoTime() + micros * 1000;
        long value = micros;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 100; i++) {
                value = value * 0x5851f42d4c957f2dL + 1;
            }
        }
        sink = value;
    }

    /** An operation, or the life of a thread. */
    private interface Body {
        void run() throws Exception;
    }

    private static void measure(String place, Body operation) throws Exception {
        Meter meter = METER.get();
        meter.begin();
        operation.run();
        meter.end(place);
    }

    private static void repeat(String group, int count, Body body) {
        for (int i = 0; i < count; i++) {
            start(group + "-" + i, () -> {
                while (!over) {
                    body.run();
                }
            });
        }
    }

    private static Thread start(String name, Body life) {
        Thread thread = new Thread(() -> orHalt(() -> {
            life.run();
            METER.get().file.close();
        }), name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static void orHalt(Body body) {
        try {
            body.run();
        } catch (Exception e) {
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    /** The clocks of a thread. */
    private static final class Meter {
        private final String group = Thread.currentThread().getName().split("-")[0];
        private final byte[] text = new byte[100];
        private final RandomAccessFile file;
        private long waited;
        private long began;

        Meter() {
            try {
                file = new RandomAccessFile("/proc/thread-self/schedstat", "r");
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }

        void begin() throws IOException {
            waited = readWaited();
            began = System.nanoTime();
        }

        void end(String place) throws IOException {
            long wall = System.nanoTime() - began;
            LongAdder[] times = TIMES.computeIfAbsent(place + "@" + group,
                key -> new LongAdder[] {new LongAdder(), new LongAdder()});
            times[0].add(wall);
            times[1].add(readWaited() - waited);
        }

        /** The second of the numbers. */
        private long readWaited() throws IOException {
            file.seek(0);
            int length = file.read(text);
            int at = 0;
            while (text[at++] != ' ') {
                // The first one is the time on a processor.
            }
            long nanos = 0;
            for (; at < length && text[at] != ' '; at++) {
                nanos = nanos * 10 + text[at] - '0';
            }
            return nanos;
        }
    }
}
