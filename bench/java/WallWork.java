import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;

/**
 * Few of the threads work at a time, in known ways, and measure their own times: {@code WallWork
 * moving|handover SECONDS}. The method on the stack is the activity ({@code kindSleep}). Threads
 * without work are in {@code idle}. Prints {@code info NAME NANOSECONDS} for each of them.
 *
 * <ul>
 *   <li>{@code moving}: a pool of 200 threads, of which others work each second, 3 at a time.
 *   <li>{@code handover}: two threads hand over to each other, some 20,000 times a second; {@code
 *       info handovers} is the number.
 * </ul>
 */
public final class WallWork {
    private static final int POOL = 200;
    private static final int WORKING = 3;
    private static final long RUN_NS = 1_000_000;
    private static final long WAIT_NS = 15_000_000;
    /** Busy time of a thread in each of its turns. */
    private static final long HAND_NS = 30_000;
    private static final TreeMap<String, LongAdder> TRUTHS = new TreeMap<>();

    private static volatile boolean over;
    static volatile long sink;

    private final SplittableRandom random;
    private final Semaphore turn = new Semaphore(0);
    private final LinkedBlockingQueue<Object> queue = new LinkedBlockingQueue<>();
    private int step;
    private int second;

    private WallWork(int number) {
        random = new SplittableRandom(number);
        step = number;
    }

    public static void main(String[] args) throws Exception {
        long seconds = Long.parseLong(args[1]);
        for (String name : new String[] {"kindRun", "kindSleep", "kindPark", "kindQueue",
            "kindWait"}) {
            TRUTHS.put(name, new LongAdder());
        }
        switch (args[0]) {
            case "moving":
                moving(seconds);
                break;
            case "handover":
                handOver(seconds);
                break;
            default:
                throw new IllegalArgumentException(args[0]);
        }
        TRUTHS.forEach((name, nanos) -> System.out.println("info " + name + " " + nanos.sum()));
        System.exit(0);
    }

    private static Thread started(String name, Callable<?> body) {
        Thread thread = new Thread(null, checked(body), name, 256 << 10);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static Runnable checked(Callable<?> body) {
        return () -> {
            try {
                body.call();
            } catch (Exception e) {
                e.printStackTrace();
                Runtime.getRuntime().halt(1);
            }
        };
    }

    private static void moving(long seconds) throws Exception {
        CountDownLatch[] done = new CountDownLatch[(int) seconds];
        List<WallWork> pool = new ArrayList<>();
        long[] until = new long[1];
        for (int i = 0; i < POOL; i++) {
            WallWork one = new WallWork(i);
            pool.add(one);
            started("work-" + i, () -> {
                while (true) {
                    one.idle();
                    one.cycles(until[0]);
                    done[one.second].countDown();
                }
            });
        }
        SplittableRandom draw = new SplittableRandom(-1);
        for (int second = 0; second < seconds; second++) {
            done[second] = new CountDownLatch(WORKING);
            until[0] = System.nanoTime() + TimeUnit.SECONDS.toNanos(1);
            // Without replacement: those drawn last are not drawn again at once.
            for (int i = 0; i < WORKING; i++) {
                WallWork one = pool.remove(draw.nextInt(pool.size() - 2 * WORKING));
                pool.add(one);
                one.second = second;
                one.turn.release();
            }
            done[second].await();
        }
    }

    private static void handOver(long seconds) throws Exception {
        AtomicInteger turn = new AtomicInteger();
        long[] counts = new long[2];
        Thread[] two = new Thread[2];
        CountDownLatch ready = new CountDownLatch(1);
        for (int i = 0; i < two.length; i++) {
            int mine = i;
            two[i] = started("work-" + i, () -> {
                ready.await();
                long began = System.nanoTime();
                while (!over) {
                    kindPark(turn, mine);
                    long woken = System.nanoTime();
                    TRUTHS.get("kindPark").add(woken - began);
                    began = kindRun(woken, two[1 - mine], turn, 1 - mine);
                    TRUTHS.get("kindRun").add(began - woken);
                    counts[mine]++;
                }
                return null;
            });
        }
        ready.countDown();
        Thread.sleep(seconds * 1000);
        over = true;
        for (Thread thread : two) {
            LockSupport.unpark(thread);
            thread.join();
        }
        System.out.println("info handovers " + (counts[0] + counts[1]));
    }

    private static void kindPark(AtomicInteger turn, int mine) {
        while (turn.get() != mine && !over) {
            LockSupport.park();
        }
    }

    /** Works, and hands over to the other; when that was done. */
    private static long kindRun(long began, Thread other, AtomicInteger turn, int its) {
        long now = began;
        while (now - began < HAND_NS) {
            now = System.nanoTime();
        }
        turn.set(its);
        LockSupport.unpark(other);
        return System.nanoTime();
    }

    private void idle() throws InterruptedException {
        turn.acquire();
    }

    private void cycles(long until) throws Exception {
        while (System.nanoTime() < until) {
            long began = System.nanoTime();
            String kind = once(step++ % 5);
            TRUTHS.get(kind).add(System.nanoTime() - began);
        }
    }

    private String once(int what) throws Exception {
        switch (what) {
            case 0:
                return kindRun();
            case 1:
                return kindSleep();
            case 2:
                return kindPark();
            case 3:
                return kindQueue();
            default:
                return kindWait();
        }
    }

    /** From none to twice as much. */
    private long about(long nanos) {
        return (long) (2 * nanos * random.nextDouble());
    }

    private String kindRun() {
        run(about(RUN_NS));
        return "kindRun";
    }

    private static void run(long nanos) {
        long end = System.nanoTime() + nanos;
        long value = nanos;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 50; i++) {
                value = value * 0x5851f42d4c957f2dL + 1;
            }
        }
        sink = value;
    }

    private String kindSleep() throws InterruptedException {
        TimeUnit.NANOSECONDS.sleep(about(WAIT_NS));
        return "kindSleep";
    }

    private String kindPark() {
        long end = System.nanoTime() + about(WAIT_NS);
        // It may return at once.
        while (System.nanoTime() < end) {
            LockSupport.parkNanos(end - System.nanoTime());
        }
        return "kindPark";
    }

    private String kindQueue() throws InterruptedException {
        queue.poll(about(WAIT_NS), TimeUnit.NANOSECONDS);
        return "kindQueue";
    }

    private String kindWait() throws InterruptedException {
        synchronized (queue) {
            TimeUnit.NANOSECONDS.timedWait(queue, about(WAIT_NS));
        }
        return "kindWait";
    }
}
