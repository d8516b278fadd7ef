import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Threads that run and wait in known ways, and measure their own times: {@code WallMix THREADS
 * SECONDS [OTHERS]}. The method on the stack is the activity ({@code kindSleep}). The one
 * below it is one of three groups of threads, of a tenth, three tenths and six tenths of all.
 * Prints {@code info NAME NANOSECONDS} for each of them, and for each thread. OTHERS are more
 * threads (see {@link WallOthers}).
 *
 * <p>Any number of threads uses no more than a third of one processor. So no time is spent
 * waiting for one, which would be added to the true cause of a wait. Durations are drawn again
 * each time, so that threads do not keep in step with each other. Otherwise, samples of several
 * threads at one moment would be equal, and count as one observation.
 */
public final class WallMix {
    /** Each thread that reads from a socket has two of them, and a writer. */
    private static final int SOCKETS_MAX = 16;
    private static final int HOLDERS = 8;
    private static final long HELD_NS = 40_000_000;

    private static final TreeMap<String, LongAdder> TRUTHS = new TreeMap<>();
    private static final Object[] MONITORS = new Object[HOLDERS];
    private static final ReentrantLock[] LOCKS = new ReentrantLock[HOLDERS];
    private static volatile boolean over;
    static volatile long sink;

    private final int number;
    private final long cycleNanos;
    private final double runs;
    private final LinkedBlockingQueue<Object> queue = new LinkedBlockingQueue<>();
    private final SplittableRandom random;
    private final TreeMap<String, Long> own = new TreeMap<>();
    private InputStream in;

    private WallMix(int number, int threads) {
        this.number = number;
        random = new SplittableRandom(number);
        cycleNanos = TimeUnit.MILLISECONDS.toNanos(Math.max(250, threads));
        runs = Math.min(0.1, 0.3 / threads);
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]);
        long seconds = Long.parseLong(args[1]);
        for (String name : new String[] {"kindRun", "kindSleep", "kindPark", "kindQueue",
            "kindMonitor", "kindLock", "kindWait", "kindSocket", "groupA", "groupB", "groupC"}) {
            TRUTHS.put(name, new LongAdder());
        }
        if (args.length > 2) {
            WallOthers.start(args[2]);
        }
        for (int i = 0; i < HOLDERS; i++) {
            MONITORS[i] = new Object();
            LOCKS[i] = new ReentrantLock();
            int index = i;
            start("holder-" + i, () -> hold(index));
        }
        List<Thread> workers = new ArrayList<>();
        List<WallMix> all = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            WallMix worker = new WallMix(i, threads);
            if (i < SOCKETS_MAX) {
                worker.connect();
            }
            all.add(worker);
            workers.add(start("mix-" + i, worker::live));
        }
        System.out.println("ready");
        Thread.sleep(seconds * 1000);
        over = true;
        for (Thread worker : workers) {
            worker.join();
        }
        TRUTHS.forEach((name, nanos) -> System.out.println("info " + name + " " + nanos.sum()));
        for (WallMix one : all) {
            one.own.forEach((name, nanos) ->
                System.out.println("info mix-" + one.number + "." + name + " " + nanos));
        }
        System.exit(0);
    }

    /** The work of a thread. */
    interface Body {
        void run() throws Exception;
    }

    static Thread start(String name, Body body) {
        Thread thread = new Thread(null, () -> {
            try {
                body.run();
            } catch (Exception e) {
                e.printStackTrace();
                Runtime.getRuntime().halt(1);
            }
        }, name, 256 << 10);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private void connect() throws Exception {
        ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Socket client = new Socket(server.getInetAddress(), server.getLocalPort());
        OutputStream out = server.accept().getOutputStream();
        in = client.getInputStream();
        SplittableRandom writes = random.split();
        start("writer-" + number, () -> {
            while (true) {
                TimeUnit.NANOSECONDS.sleep(about(writes, part()));
                out.write(1);
            }
        });
    }

    private long part() {
        return (long) (cycleNanos * (1 - runs) / 7);
    }

    private long oneWait() {
        return about(random, part());
    }

    /** From none to twice as much. */
    private static long about(SplittableRandom random, long nanos) {
        return (long) (2 * nanos * random.nextDouble());
    }

    private void live() throws Exception {
        long began = System.nanoTime();
        switch (number % 10) {
            case 0:
                groupA(began);
                break;
            case 1: case 2: case 3:
                groupB(began);
                break;
            default:
                groupC(began);
        }
    }

    private void groupA(long began) throws Exception {
        cycles();
        TRUTHS.get("groupA").add(System.nanoTime() - began);
    }

    private void groupB(long began) throws Exception {
        cycles();
        TRUTHS.get("groupB").add(System.nanoTime() - began);
    }

    private void groupC(long began) throws Exception {
        cycles();
        TRUTHS.get("groupC").add(System.nanoTime() - began);
    }

    private void cycles() throws Exception {
        // Not all at once.
        int step = number;
        while (!over) {
            long began = System.nanoTime();
            String kind = once(step++ % 8);
            long nanos = System.nanoTime() - began;
            TRUTHS.get(kind).add(nanos);
            own.merge(kind, nanos, Long::sum);
        }
    }

    private String once(int step) throws Exception {
        switch (step) {
            case 0:
                return kindRun();
            case 1:
                return kindSleep();
            case 2:
                return kindPark();
            case 3:
                return kindQueue();
            case 4:
                return kindMonitor();
            case 5:
                return kindLock();
            case 6:
                return kindWait();
            default:
                return in == null ? kindSleep() : kindSocket();
        }
    }

    private String kindRun() {
        long end = System.nanoTime() + about(random, (long) (cycleNanos * runs));
        long value = number;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 500; i++) {
                value = value * 0x5851f42d4c957f2dL + 1;
            }
        }
        sink = value;
        return "kindRun";
    }

    private String kindSleep() throws InterruptedException {
        TimeUnit.NANOSECONDS.sleep(oneWait());
        return "kindSleep";
    }

    private String kindPark() {
        LockSupport.parkNanos(oneWait());
        return "kindPark";
    }

    private String kindQueue() throws InterruptedException {
        queue.poll(oneWait(), TimeUnit.NANOSECONDS);
        return "kindQueue";
    }

    private String kindMonitor() {
        synchronized (MONITORS[number % HOLDERS]) {
            sink++;
        }
        return "kindMonitor";
    }

    private String kindLock() {
        LOCKS[number % HOLDERS].lock();
        LOCKS[number % HOLDERS].unlock();
        return "kindLock";
    }

    private String kindWait() throws InterruptedException {
        synchronized (queue) {
            TimeUnit.NANOSECONDS.timedWait(queue, oneWait());
        }
        return "kindWait";
    }

    private String kindSocket() throws Exception {
        // A byte that was written before would end the wait at once.
        while (in.available() > 0) {
            in.skip(in.available());
        }
        if (in.read() < 0) {
            throw new IllegalStateException("the writer has gone");
        }
        return "kindSocket";
    }

    /** Has a monitor, then a lock, most of the time, asleep. */
    private static void hold(int index) throws InterruptedException {
        SplittableRandom random = new SplittableRandom(-1 - index);
        while (true) {
            synchronized (MONITORS[index]) {
                TimeUnit.NANOSECONDS.sleep(about(random, HELD_NS));
            }
            LOCKS[index].lock();
            try {
                TimeUnit.NANOSECONDS.sleep(about(random, HELD_NS));
            } finally {
                LOCKS[index].unlock();
            }
        }
    }
}
