package io.dwell.test;

import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * Threads that rename themselves after they have waited for {@code wait_ms}, and then wait again:
 * platform threads {@code late-0} and so on, and virtual ones {@code late-v0} and so on (if
 * supported). {@code late-busy} computes before and after. One thread, {@code late-short}, waits,
 * renames itself and ends at once.
 */
public final class LateNames {
    private static final int THREADS = 3;
    private static double sink;

    private LateNames() {}

    public static void main(String[] args) throws Exception {
        Harness harness = new Harness("LateNames", 2, args, "wait_ms");
        int waitMs = harness.number("wait_ms", 900, 1, 60_000);
        harness.ready();
        CountDownLatch never = new CountDownLatch(1);
        List<Thread> ending = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            daemon(named("late-" + i, waitMs, never)).start();
            startVirtual(named("late-v" + i, waitMs, never));
        }
        Thread busy = daemon(() -> {
            burn(waitMs);
            Thread.currentThread().setName("late-busy");
            burn(waitMs);
        });
        Thread brief = daemon(() -> {
            sleep(waitMs);
            Thread.currentThread().setName("late-short");
        });
        ending.add(busy);
        ending.add(brief);
        for (Thread thread : ending) {
            thread.start();
        }
        for (Thread thread : ending) {
            thread.join();
        }
        harness.finish();
        System.exit(0);
    }

    private static Runnable named(String name, int waitMs, CountDownLatch never) {
        return () -> {
            sleep(waitMs);
            Thread.currentThread().setName(name);
            try {
                never.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        };
    }

    private static Thread daemon(Runnable body) {
        Thread thread = new Thread(body);
        thread.setDaemon(true);
        return thread;
    }

    /** Runs it on a virtual thread without a name, if supported. */
    private static void startVirtual(Runnable body) throws ReflectiveOperationException {
        try {
            Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, body);
        } catch (NoSuchMethodException | InvocationTargetException e) {
            return; // Up to 20 there are none, or they are a preview.
        }
    }

    private static void burn(int ms) {
        long end = System.nanoTime() + ms * 1_000_000L;
        while (System.nanoTime() < end) {
            sink += Math.sin(sink + 1);
        }
    }

    private static void sleep(int ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
