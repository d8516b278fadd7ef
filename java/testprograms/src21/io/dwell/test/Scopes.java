package io.dwell.test;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * Virtual threads that wait for ever, forked in scopes ({@code StructuredTaskScope}, a preview, whose
 * ways to be opened differ between versions); the name tells who has forked them: {@code platform-fN}
 * a platform thread, {@code virtual-fN} one virtual thread, {@code nested-fN} virtual threads that
 * were forked themselves, 10 each. The virtual threads that wait for those they have forked are
 * {@code owner-N}, the platform thread is {@code forker}.
 */
public final class Scopes {
    private static final int NESTED = 10;

    private final LinkedBlockingQueue<Object> queue = new LinkedBlockingQueue<>();
    private final Method fork;
    private final Method join;

    private Scopes() throws ReflectiveOperationException {
        Class<?> type = Class.forName("java.util.concurrent.StructuredTaskScope");
        fork = type.getMethod("fork", Callable.class);
        join = type.getMethod("join");
    }

    public static void main(String[] args) throws Exception {
        Harness harness = new Harness("Scopes", 1, args, "threads", "owners");
        int threads = harness.number("threads", 300, 1, 1_000_000);
        int owners = harness.number("owners", 30, 0, 100_000);
        Scopes program = new Scopes();
        CountDownLatch begun = new CountDownLatch(2 * threads + NESTED * owners);
        Thread forker = new Thread(() -> program.inScope("platform", threads, begun), "forker");
        forker.setDaemon(true);
        forker.start();
        Thread.ofVirtual().name("owner-v").start(
                () -> program.inScope("virtual", threads, begun));
        Thread.ofVirtual().name("owner-n").start(() -> program.nested(owners, begun));
        begun.await();
        // They only have to get to where they wait.
        Thread.sleep(500);
        harness.ready();
        harness.finish();
        System.exit(0);
    }

    private static Object open() throws ReflectiveOperationException {
        Class<?> type = Class.forName("java.util.concurrent.StructuredTaskScope");
        if (Runtime.version().feature() < 25) {
            return type.getConstructor().newInstance();
        }
        return type.getMethod("open").invoke(null);
    }

    private void fork(Object scope, String name, Runnable body)
            throws ReflectiveOperationException {
        Callable<Object> task = () -> {
            Thread.currentThread().setName(name);
            body.run();
            return null;
        };
        fork.invoke(scope, task);
    }

    /** Forks threads that wait for ever, and waits for them. */
    private void inScope(String kind, int threads, CountDownLatch begun) {
        try (AutoCloseable scope = (AutoCloseable) open()) {
            for (int i = 0; i < threads; i++) {
                fork(scope, kind + "-f" + i, () -> await(begun));
            }
            join.invoke(scope);
        } catch (InvocationTargetException e) {
            throw new IllegalStateException(e.getCause());
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private void nested(int owners, CountDownLatch begun) {
        try (AutoCloseable scope = (AutoCloseable) open()) {
            for (int i = 0; i < owners; i++) {
                fork(scope, "owner-" + i, () -> inScope("nested", NESTED, begun));
            }
            join.invoke(scope);
        } catch (InvocationTargetException e) {
            throw new IllegalStateException(e.getCause());
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private void await(CountDownLatch begun) {
        begun.countDown();
        try {
            queue.take();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
