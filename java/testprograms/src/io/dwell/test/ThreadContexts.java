package io.dwell.test;

import io.dwell.api.Dwell;
import io.dwell.api.Scope;
import java.lang.reflect.InvocationTargetException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Work for spans that a native library publishes by thread-local records: the name of the method on
 * the stack tells what counts, that of the thread which span. The library is loaded after the gate.
 */
public final class ThreadContexts {
    private static final long TRACE_HI = 0x0af7651916cd43ddL;
    private static final long TRACE_LO = 0x8448eb211c80319cL;
    /** A profiler that is attached has noticed the library by then. */
    private static final long EARLY_NS = 700_000_000L;
    private static final int ROUNDS = 6;

    private long value = 1;

    private ThreadContexts() {}

    private static native void attach(long traceHi, long traceLo, long span);

    private static native void detach();

    private static native void invalidate();

    public static void main(String[] args) throws Exception {
        Harness harness = new Harness("ThreadContexts", 1, args, "library", "virtual");
        String library = harness.choice("library", "threadctx", "threadctx_desc");
        boolean virtual = harness.number("virtual", 0, 0, 1) == 1;
        Burn.warmUp();
        CountDownLatch loaded = new CountDownLatch(1);
        Thread older = start(1, loaded);
        harness.ready();
        System.load(NativeSupport.library(library));
        ThreadContexts program = new ThreadContexts();
        program.burnEarly();
        Thread younger = start(2, loaded);
        loaded.countDown();
        older.join();
        younger.join();
        if (virtual) {
            program.startVirtual().join();
        }
        harness.finish();
    }

    private static Thread start(long span, CountDownLatch loaded) {
        Thread thread = new Thread(() -> {
            try {
                loaded.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            new ThreadContexts().live(span);
        }, "span-" + span);
        thread.start();
        return thread;
    }

    private void live(long span) {
        for (int i = 0; i < ROUNDS; i++) {
            attach(TRACE_HI, TRACE_LO, span);
            burnAttached();
            sleepAttached();
            try (Scope scope = Dwell.scope(TRACE_HI, TRACE_LO, 0xa1, 0xa1, "GET /a")) {
                burnInScope();
            }
            invalidate();
            burnInvalid();
            sleepInvalid();
            attach(TRACE_HI, TRACE_LO, span);
            burnAttached();
            detach();
            burnDetached();
        }
    }

    /** What this publishes is its carrier's, and stays there. */
    private Thread startVirtual() throws ReflectiveOperationException {
        Runnable body = () -> {
            attach(TRACE_HI, TRACE_LO, 3);
            for (int i = 0; i < 50; i++) {
                burnOnCarrier();
            }
            detach();
        };
        try {
            // Of 21.
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class)
                    .invoke(null, body);
        } catch (InvocationTargetException e) {
            throw new IllegalStateException(e);
        }
    }

    private void burn() {
        for (int i = 0; i < 200; i++) {
            value = Burn.unit(value);
        }
        Burn.sink = value;
    }

    private void burnEarly() {
        long end = System.nanoTime() + EARLY_NS;
        while (System.nanoTime() < end) {
            value = Burn.unit(value);
        }
    }

    private void burnAttached() {
        burn();
    }

    private void burnInScope() {
        burn();
    }

    private void burnInvalid() {
        burn();
    }

    private void burnDetached() {
        burn();
    }

    private void burnOnCarrier() {
        burn();
    }

    private static void sleepAttached() {
        sleep();
    }

    private static void sleepInvalid() {
        sleep();
    }

    private static void sleep() {
        try {
            TimeUnit.MILLISECONDS.sleep(20);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
