package io.dwell.test;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;

/**
 * Few virtual threads work among many that wait for ever. The method on the stack of those that
 * work tells what they do; {@code info kindSleep NANOSECONDS} and the like tell for how long all of
 * them did, as they measured it themselves. They wait for 0 to 30 ms each time, and run for 0 to
 * {@code run_us} times two in between.
 */
public final class VirtualFew {
    private static final long WAIT_NS = 15_000_000;

    private static final Map<String, LongAdder> TRUTHS = new TreeMap<>(Map.of(
            "kindRun", new LongAdder(), "kindSleep", new LongAdder(),
            "kindPark", new LongAdder(), "kindQueue", new LongAdder()));
    private static volatile long sink;

    private final SplittableRandom random;
    private final long runNanos;
    private final LinkedBlockingQueue<Object> queue = new LinkedBlockingQueue<>();
    private int step;

    private VirtualFew(int number, long runNanos) {
        this.runNanos = runNanos;
        random = new SplittableRandom(number);
        step = number;
    }

    public static void main(String[] args) throws InterruptedException {
        Harness harness = new Harness("VirtualFew", 8, args, "idle", "working", "run_us");
        int idle = harness.number("idle", 10_000, 0, 1_000_000);
        int working = harness.number("working", 20, 1, 10_000);
        long runNanos = 1000L * harness.number("run_us", 1000, 1, 1_000_000);
        CountDownLatch waiting = new CountDownLatch(idle);
        CountDownLatch never = new CountDownLatch(1);
        for (int i = 0; i < idle; i++) {
            Thread.ofVirtual().name("idle-" + i).start(() -> {
                waiting.countDown();
                await(never);
            });
        }
        await(waiting);
        harness.ready();
        List<Thread> workers = new ArrayList<>();
        for (int i = 0; i < working; i++) {
            VirtualFew worker = new VirtualFew(i, runNanos);
            workers.add(Thread.ofVirtual().name("work-" + i).start(() -> worker.live(harness)));
        }
        for (Thread worker : workers) {
            worker.join();
        }
        TRUTHS.forEach((name, nanos) -> harness.info(name, nanos.sum()));
        harness.finish();
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private void live(Harness harness) {
        try {
            while (harness.timeLeft()) {
                long began = System.nanoTime();
                String kind = once(step++ % 4);
                TRUTHS.get(kind).add(System.nanoTime() - began);
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private String once(int what) throws InterruptedException {
        return switch (what) {
            case 0 -> kindRun();
            case 1 -> kindSleep();
            case 2 -> kindPark();
            default -> kindQueue();
        };
    }

    /** From none to twice as much. */
    private long about(long nanos) {
        return (long) (2 * nanos * random.nextDouble());
    }

    private String kindRun() {
        long end = System.nanoTime() + about(runNanos);
        long value = step;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 50; i++) {
                value = value * 0x5851f42d4c957f2dL + 1;
            }
        }
        sink = value;
        return "kindRun";
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
}
