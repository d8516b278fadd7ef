package io.dwell.test;

import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that wait for known reasons and measure their waits: the truth that a wall-clock profile
 * must show, by thread and cause.
 *
 * <p>Each kind of thread runs for a while, then waits, over and over. Prints one line {@code info
 * wall.THREAD.CAUSE NANOSECONDS} for each thread and cause, including the time until it runs again,
 * and {@code info wall.THREAD.least NANOSECONDS}: the requested time, or that of the owner.
 */
public final class Waits {
    private static final String[] KINDS = {
        "sleep", "park", "object-wait", "queue", "monitor", "lock", "socket", "pipe", "init"
    };
    /** Duration of a class's initialisation. */
    private static final long INIT_MILLIS = 1000;

    private final Harness harness;
    private final long runNanos;
    private final long waitNanos;
    private final Object monitor = new Object();
    private final ReentrantLock lock = new ReentrantLock();
    private final Map<String, Long> truths = new TreeMap<>();

    /** A way to wait; returns when the wait is over. */
    private interface Wait {
        void once() throws Exception;
    }

    private Waits(String[] args) {
        harness = new Harness("Waits", 5, args, "run_us", "wait_us", "idle", "collect");
        runNanos = TimeUnit.MICROSECONDS.toNanos(harness.number("run_us", 1000, 1, 1_000_000));
        waitNanos = TimeUnit.MICROSECONDS.toNanos(harness.number("wait_us", 9000, 1, 10_000_000));
    }

    public static void main(String[] args) throws Exception {
        Waits program = new Waits(args);
        int idle = program.harness.number("idle", 0, 0, 20_000);
        Burn.warmUp();
        int collect = program.harness.number("collect", 0, 0, 10_000);
        Object never = new Object();
        for (int i = 1; i <= idle; i++) {
            Thread thread = new Thread(null, () -> forEver(never), "idle-" + i, 128 << 10);
            thread.setDaemon(true);
            thread.start();
        }
        if (collect > 0) {
            collectOften(collect);
        }
        program.harness.ready();
        Workers workers = Workers.start("hold", 1, number -> program.hold());
        for (String kind : KINDS) {
            workers.startOne(kind + "-1", 1, 0, number -> program.run(kind));
        }
        workers.join();
        program.truths.forEach((name, nanos) -> program.harness.info("wall." + name, nanos));
        program.harness.finish();
    }

    /** Stops all threads for full collections, with so many ms between two. */
    private static void collectOften(int pauseMillis) {
        Object[] kept = new Object[400_000];
        for (int i = 0; i < kept.length; i++) {
            kept[i] = new int[8];
        }
        Thread thread = new Thread(() -> {
            while (kept.length > 0) {
                System.gc();
                sleep(pauseMillis);
            }
        }, "collect-1");
        thread.setDaemon(true);
        thread.start();
    }

    private static void forEver(Object never) {
        synchronized (never) {
            while (true) {
                try {
                    never.wait();
                } catch (InterruptedException e) {
                    return;
                }
            }
        }
    }

    private void run(String kind) throws Exception {
        String thread = kind + "-1";
        switch (kind) {
            case "sleep":
                loop(thread, "sleep", () -> TimeUnit.NANOSECONDS.sleep(waitNanos));
                break;
            case "park":
                loop(thread, "park", () -> LockSupport.parkNanos(waitNanos));
                break;
            case "object-wait":
                Object own = new Object();
                loop(thread, "object-wait", () -> {
                    synchronized (own) {
                        TimeUnit.NANOSECONDS.timedWait(own, waitNanos);
                    }
                });
                break;
            case "queue":
                LinkedBlockingQueue<String> queue = new LinkedBlockingQueue<>();
                loop(thread, "park", () -> queue.poll(waitNanos, TimeUnit.NANOSECONDS));
                break;
            case "monitor":
                loop(thread, "monitor", () -> {
                    synchronized (monitor) {
                        Burn.sink++;
                    }
                });
                break;
            case "lock":
                loop(thread, "lock", () -> {
                    lock.lock();
                    lock.unlock();
                });
                break;
            case "pipe":
                pipe(thread);
                break;
            case "init":
                init(thread);
                break;
            default:
                socket(thread);
        }
    }

    private void loop(String thread, String cause, Wait wait) throws Exception {
        CpuBudget budget = new CpuBudget();
        long waited = 0;
        long times = 0;
        long began = System.nanoTime();
        while (harness.timeLeft()) {
            Burn.sink = Burn.until(budget.grant(runNanos), 1);
            long asked = System.nanoTime();
            wait.once();
            waited += System.nanoTime() - asked;
            times++;
        }
        tell(thread, cause, waited, System.nanoTime() - began);
        if (isTimed(cause)) {
            tell(thread, "least", times * waitNanos);
        }
    }

    private static boolean isTimed(String cause) {
        return cause.equals("sleep") || cause.equals("park") || cause.equals("object-wait");
    }

    /** A class with a slow initialiser, and a thread that needs it during that time. */
    private static final class Slow {
        static int value;

        static {
            sleep(INIT_MILLIS);
            value = 1;
        }
    }

    private void init(String thread) throws Exception {
        Thread first = new Thread(() -> Burn.sink += Slow.value, "initialiser-1");
        first.start();
        sleep(INIT_MILLIS / 10);
        long asked = System.nanoTime();
        Burn.sink += Slow.value;
        long waited = System.nanoTime() - asked;
        first.join();
        tell(thread, "class-init", waited, waited);
        tell(thread, "least", INIT_MILLIS * 700_000);
    }

    private static void sleep(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Reads the output of a child process, which writes now and then. */
    private void pipe(String thread) throws Exception {
        String pause = String.valueOf(waitNanos / 1e9);
        String[] words = {"sh", "-c", "while echo x; do sleep " + pause + "; done"};
        Process child = new ProcessBuilder(words).start();
        try (InputStream in = child.getInputStream()) {
            loop(thread, "file", () -> {
                if (in.read() < 0) {
                    throw new IllegalStateException("the writer has gone");
                }
            });
        } finally {
            // The program does not wait for its end: on a slow machine that would be a wait of
            // another kind.
            child.destroy();
        }
    }

    /** Owns monitor and lock for most of the time, asleep. */
    private void hold() throws InterruptedException {
        while (harness.timeLeft()) {
            synchronized (monitor) {
                TimeUnit.NANOSECONDS.sleep(waitNanos);
            }
            lock.lock();
            try {
                TimeUnit.NANOSECONDS.sleep(waitNanos);
            } finally {
                lock.unlock();
            }
        }
    }

    private void socket(String thread) throws Exception {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                Socket client = new Socket(server.getInetAddress(), server.getLocalPort());
                Socket accepted = server.accept()) {
            Thread writer = new Thread(() -> write(accepted), "writer-1");
            writer.start();
            InputStream in = client.getInputStream();
            loop(thread, "socket", () -> {
                if (in.read() < 0) {
                    throw new IllegalStateException("the writer has gone");
                }
            });
            writer.join();
        }
    }

    private void write(Socket socket) {
        try {
            OutputStream out = socket.getOutputStream();
            // One more when the time is over, because the reader may be waiting.
            boolean more;
            do {
                more = harness.timeLeft();
                TimeUnit.NANOSECONDS.sleep(waitNanos);
                out.write(1);
            } while (more);
        } catch (Exception e) {
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    private void tell(String thread, String cause, long waited, long elapsed) {
        tell(thread, cause, waited);
        tell(thread, "elapsed", elapsed);
    }

    private synchronized void tell(String thread, String what, long nanos) {
        truths.put(thread + "." + what, nanos);
    }
}
