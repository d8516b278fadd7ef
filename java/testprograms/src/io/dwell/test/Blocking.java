package io.dwell.test;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import java.nio.channels.Selector;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that compute for a moment and wait for a moment, over and over, each in its own way, and
 * notice if a wait is over before its time or fails: by Java's means, which call the system again
 * where a signal has ended a call, and by bare system calls, which do not.
 *
 * <p>A first round is made before {@code ready}. After the gate they go on until the next line, or
 * for {@code seconds} without a gate. Prints, for either, {@code info first.NAME.calls},
 * {@code info first.NAME.early}, {@code info NAME.calls} and {@code info NAME.early}; what is early
 * in {@code native-NAME} is a call that failed with {@code EINTR}.
 */
public final class Blocking {
    private static final String[] NATIVES = {
        "poll", "epoll_wait", "select", "nanosleep", "futex", "recv", "read"
    };
    private static final int EINTR = 4;
    private static final int FIRST_ROUND = 100;
    private static final int MILLI = 1_000_000;
    /** The shortest waits, where they can be shorter than a millisecond. */
    private static final int WAIT_NANOS = 300_000;

    private final Harness harness;
    private final Map<String, Way> ways = new TreeMap<>();
    private final Map<String, Long> counts = new TreeMap<>();
    /** The other end of a silent socket, which would be closed with the last reference to it. */
    private Socket peer;
    private volatile boolean over;

    /** A way to wait: false if it ended before its time. */
    private interface Way {
        boolean once() throws Exception;
    }

    /** The same without an outcome. */
    private interface Wait {
        void once() throws Exception;
    }

    private static native int call(int number);

    private static native int feed();

    private Blocking(String[] args) {
        harness = new Harness("Blocking", 3, args);
    }

    public static void main(String[] args) throws Exception {
        System.load(NativeSupport.library("blocking"));
        new Blocking(args).run();
    }

    private void run() throws Exception {
        Burn.warmUp();
        check(feed());
        ordinary();
        sockets();
        channels();
        for (int i = 0; i < NATIVES.length; i++) {
            int number = i;
            ways.put("native-" + NATIVES[i], () -> bare(number));
        }
        CountDownLatch first = new CountDownLatch(ways.size());
        CountDownLatch go = new CountDownLatch(1);
        Workers workers = new Workers();
        ways.forEach((name, way) -> workers.startOne(name, 1, 0, n -> {
            repeat("first." + name, way, FIRST_ROUND);
            first.countDown();
            go.await();
            repeat(name, way, Long.MAX_VALUE);
        }));
        first.await();
        harness.ready();
        go.countDown();
        harness.awaitEnd();
        over = true;
        workers.join();
        counts.forEach(harness::info);
        harness.finish();
    }

    private void repeat(String name, Way way, long most) throws Exception {
        long calls = 0;
        long early = 0;
        while (calls < most && !over) {
            Burn.sink = Burn.unit(Burn.unit(calls));
            calls++;
            if (!way.once()) {
                early++;
            }
        }
        tell(name + ".calls", calls);
        tell(name + ".early", early);
    }

    private synchronized void tell(String name, long count) {
        counts.put(name, count);
    }

    private static boolean lasts(long nanos, Wait wait) throws Exception {
        long began = System.nanoTime();
        wait.once();
        return System.nanoTime() - began >= nanos;
    }

    /** A wait that ends with an exception. */
    private static boolean timesOut(Wait wait) throws Exception {
        long began = System.nanoTime();
        try {
            wait.once();
            return false;
        } catch (SocketTimeoutException e) {
            return System.nanoTime() - began >= MILLI;
        }
    }

    private static boolean bare(int number) throws IOException {
        int error = call(number);
        if (error != EINTR) {
            check(error);
        }
        return error == 0;
    }

    private static void check(int error) throws IOException {
        if (error != 0) {
            throw new IOException("errno " + error);
        }
    }

    private void ordinary() {
        Object monitor = new Object();
        ReentrantLock lock = new ReentrantLock();
        Condition condition = lock.newCondition();
        ways.put("sleep", () -> lasts(MILLI, () -> Thread.sleep(1)));
        ways.put("park", () -> lasts(WAIT_NANOS, () -> LockSupport.parkNanos(WAIT_NANOS)));
        ways.put("object-wait", () -> lasts(MILLI, () -> {
            synchronized (monitor) {
                monitor.wait(1);
            }
        }));
        ways.put("condition", () -> {
            lock.lock();
            try {
                return condition.awaitNanos(WAIT_NANOS) <= 0;
            } finally {
                lock.unlock();
            }
        });
    }

    private void sockets() throws IOException {
        InetAddress here = InetAddress.getLoopbackAddress();
        ServerSocket server = new ServerSocket(0, 4, here);
        Socket silent = new Socket(here, server.getLocalPort());
        peer = server.accept();
        Socket client = new Socket(here, server.getLocalPort());
        OutputStream there = server.accept().getOutputStream();
        silent.setSoTimeout(1);
        server.setSoTimeout(1);
        DatagramSocket datagrams = new DatagramSocket(0, here);
        datagrams.setSoTimeout(1);
        InputStream nothing = silent.getInputStream();
        InputStream data = client.getInputStream();
        ways.put("socket-timeout", () -> timesOut(nothing::read));
        ways.put("accept-timeout", () -> timesOut(server::accept));
        DatagramPacket packet = new DatagramPacket(new byte[1], 1);
        ways.put("datagram-timeout", () -> timesOut(() -> datagrams.receive(packet)));
        ways.put("socket-data", () -> data.read() == 'x');
        writer("socket", () -> there.write('x'));
    }

    private void channels() throws IOException {
        Selector selector = Selector.open();
        ways.put("selector", () -> lasts(MILLI, () -> selector.select(1)));
        Pipe pipe = Pipe.open();
        ByteBuffer room = ByteBuffer.allocateDirect(1);
        ways.put("pipe-data", () -> {
            room.clear();
            return pipe.source().read(room) == 1;
        });
        ByteBuffer byteOut = ByteBuffer.allocateDirect(1);
        writer("pipe", () -> {
            byteOut.clear();
            pipe.sink().write(byteOut);
        });
        writer("native", () -> check(feed()));
    }

    /** Ends waits of others about as often as they are made; ends with the program. */
    private static void writer(String name, Wait write) {
        Thread thread = new Thread(() -> {
            try {
                while (true) {
                    write.once();
                    TimeUnit.NANOSECONDS.sleep(WAIT_NANOS);
                }
            } catch (Exception e) {
                e.printStackTrace();
                Runtime.getRuntime().halt(1);
            }
        }, "writer-" + name);
        thread.setDaemon(true);
        thread.start();
    }
}
