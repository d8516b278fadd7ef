package io.dwell.test;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Virtual threads that wait for ever without a carrier, each kind for a known reason; the name tells
 * the kind: {@code park-N}, {@code sleep-N}, {@code lock-N}, {@code socket-N}, and with
 * {@code monitors=1} {@code monitor-N} and {@code object-wait-N} (since 24). Half of each kind are
 * started directly, half by an executor.
 */
public final class VirtualWaits {
    /** A connection each is needed, and a look at some of them is to be certain. */
    private static final int SOCKETS_MAX = 500;

    private final LinkedBlockingQueue<Object> queue = new LinkedBlockingQueue<>();
    private final ReentrantLock lock = new ReentrantLock();
    private final Object monitor = new Object();
    private final Object waited = new Object();
    private final CountDownLatch held = new CountDownLatch(1);
    private ServerSocket server;

    /** A way to wait for ever. */
    private interface Wait {
        void once() throws Exception;
    }

    private VirtualWaits() {}

    public static void main(String[] args) throws Exception {
        Harness harness = new Harness("VirtualWaits", 1, args, "threads", "monitors", "garbage",
                "owner");
        int threads = harness.number("threads", 1000, 1, 1_000_000);
        VirtualWaits program = new VirtualWaits();
        for (int i = harness.number("garbage", 0, 0, 100); i > 0; i--) {
            makeGarbage(i);
        }
        if (harness.number("owner", 0, 0, 1) == 1) {
            program.waitForVirtual();
        }
        program.begin(threads, harness.number("monitors", 0, 0, 1) == 1);
        harness.ready();
        harness.finish();
        // Nobody ends the executors' threads.
        System.exit(0);
    }

    private void begin(int threads, boolean monitors) throws Exception {
        Thread holder = new Thread(this::hold, "hold-1");
        holder.setDaemon(true);
        holder.start();
        held.await();
        server = new ServerSocket(0, SOCKETS_MAX, InetAddress.getLoopbackAddress());
        start("park", threads, queue::take);
        start("sleep", threads, () -> Thread.sleep(1_000_000));
        start("lock", threads, lock::lock);
        start("socket", Math.min(threads, SOCKETS_MAX), this::read);
        if (monitors) {
            start("monitor", threads, this::enter);
            start("object-wait", threads, this::await);
        }
        // They only have to get to where they wait.
        Thread.sleep(1000);
    }

    /** Some of it lives for a while, so that the collector has something to move. */
    private static void makeGarbage(int seed) {
        Thread maker = new Thread(() -> {
            SplittableRandom random = new SplittableRandom(seed);
            byte[][] kept = new byte[20_000][];
            while (true) {
                for (int i = 0; i < 2000; i++) {
                    kept[random.nextInt(kept.length)] = new byte[100 + random.nextInt(400)];
                }
                LockSupport.parkNanos(1_000_000);
            }
        }, "garbage-" + seed);
        maker.setDaemon(true);
        maker.start();
    }

    private static void start(String kind, int threads, Wait wait) throws InterruptedException {
        CountDownLatch begun = new CountDownLatch(threads);
        Runnable body = () -> {
            begun.countDown();
            try {
                wait.once();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        };
        ThreadFactory named = Thread.ofVirtual().name(kind + "-e", 0).factory();
        ExecutorService executor = Executors.newThreadPerTaskExecutor(named);
        for (int i = 0; i < threads; i++) {
            if (i % 2 == 0) {
                Thread.ofVirtual().name(kind + "-d" + i).start(body);
            } else {
                executor.execute(body);
            }
        }
        begun.await();
    }

    private void hold() {
        lock.lock();
        synchronized (monitor) {
            held.countDown();
            holdForEver();
        }
    }

    private static void holdForEver() {
        try {
            Thread.sleep(1_000_000);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private void read() throws IOException {
        try (Socket socket = new Socket(server.getInetAddress(), server.getLocalPort())) {
            socket.getInputStream().read();
        }
    }

    /** Platform threads wait for what a virtual thread has, which sleeps. */
    private void waitForVirtual() throws InterruptedException {
        ReentrantLock owned = new ReentrantLock();
        Object entered = new Object();
        CountDownLatch has = new CountDownLatch(1);
        Thread.ofVirtual().name("owner-1").start(() -> {
            owned.lock();
            synchronized (entered) {
                // From here on the JVM keeps a monitor, which knows its owner.
                waitABit(entered);
                has.countDown();
                holdForEver();
            }
        });
        has.await();
        startDaemon("entering-1", () -> {
            synchronized (entered) {
                throw new IllegalStateException("nobody leaves it");
            }
        });
        startDaemon("locking-1", owned::lock);
    }

    private static void waitABit(Object monitor) {
        try {
            monitor.wait(1);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void startDaemon(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        thread.start();
    }

    private void enter() {
        synchronized (monitor) {
            throw new IllegalStateException("nobody lets go of it");
        }
    }

    private void await() throws InterruptedException {
        synchronized (waited) {
            waited.wait();
        }
    }
}
