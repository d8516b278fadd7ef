package io.dwell.test;

import io.dwell.api.Dwell;
import io.dwell.api.Label;
import io.dwell.api.Scope;
import io.dwell.api.Trouble;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Set;

/**
 * What contexts have to stand: two copies of the API in one process, threads that end with a scope
 * open, more texts and labels than are kept. The name of a method {@code burn...} tells what counts.
 */
public final class ContextLimits {
    private static final long TRACE_HI = 0x0af7651916cd43ddL;
    private static final long TRACE_LO = 0x8448eb211c80319cL;
    private static final int TEXTS_MAX = 10_000;
    private static final int TEXTS_MORE = 50;
    private static final int LABELS_MAX = 16;
    private static final int ENDED_THREADS = 400;
    private static final int ENDED_AT_A_TIME = 50;
    private static final int COLLECTIONS_MAX = 200;

    private long value = 1;

    private ContextLimits() {}

    public static void main(String[] args) throws Exception {
        Harness harness = new Harness("ContextLimits", 1, args);
        Burn.warmUp();
        harness.ready();
        ContextLimits program = new ContextLimits();
        Thread copies = new Thread(program::copies, "copies-1");
        copies.start();
        copies.join();
        program.endWithScopesOpen(harness);
        program.texts();
        for (Trouble trouble : Trouble.values()) {
            harness.info(trouble.name(), trouble.times());
        }
        harness.finish();
    }

    /** Scopes of two copies of the API, in two class loaders, within each other. */
    private void copies() {
        URL jar = Dwell.class.getProtectionDomain().getCodeSource().getLocation();
        try (URLClassLoader loader = new URLClassLoader(new URL[] {jar}, null)) {
            Class<?> other = loader.loadClass("io.dwell.api.Dwell");
            if (other == Dwell.class) {
                throw new IllegalStateException("the same class");
            }
            Method open = other.getMethod("scope", long.class, long.class, long.class, long.class,
                    String.class);
            for (int i = 0; i < 10; i++) {
                burnNone();
                try (Scope first = Dwell.scope(TRACE_HI, TRACE_LO, 0xa1, 0xa1, "GET /first")) {
                    burnInFirst();
                    try (AutoCloseable second = (AutoCloseable) open.invoke(null, TRACE_HI,
                            TRACE_LO, 0xb1L, 0xb1L, "GET /second")) {
                        burnInSecond();
                        try (Scope third =
                                Dwell.scope(TRACE_HI, TRACE_LO, 0xc1, 0xc1, "GET /third")) {
                            burnInThird();
                        }
                        burnInSecond();
                    }
                    burnInFirst();
                }
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    /** Their records are free again when the collector has found out. */
    private void endWithScopesOpen(Harness harness) throws Exception {
        Field field = Class.forName("io.dwell.api.Context").getDeclaredField("HOLDS");
        field.setAccessible(true);
        Set<?> holds = (Set<?>) field.get(null);
        int most = 0;
        for (int i = 0; i < ENDED_THREADS; i++) {
            Thread thread = new Thread(
                    () -> Dwell.scope(TRACE_HI, TRACE_LO, 0xd1, 0xd1, "GET /ended"), "ended-" + i);
            thread.start();
            thread.join();
            most = Math.max(most, holds.size());
            if (i % ENDED_AT_A_TIME == ENDED_AT_A_TIME - 1) {
                collect(holds);
            }
        }
        harness.info("held_at_most", most);
        harness.info("held_in_the_end", holds.size());
        Thread last = new Thread(() -> {
            for (int i = 0; i < 20; i++) {
                burnNone();
            }
        }, "after-1");
        last.start();
        last.join();
    }

    /** The next thread that gets a record frees those of threads that are gone. */
    private static void collect(Set<?> holds) throws InterruptedException {
        for (int i = 0; i < COLLECTIONS_MAX && holds.size() > ENDED_AT_A_TIME / 2; i++) {
            System.gc();
            Thread.sleep(1);
            Thread thread = new Thread(
                    () -> Dwell.scope(TRACE_HI, TRACE_LO, 0xd2, 0xd2, null).close(), "collect");
            thread.start();
            thread.join();
        }
    }

    private void texts() throws InterruptedException {
        Thread thread = new Thread(() -> {
            for (int i = 0; i < TEXTS_MAX + TEXTS_MORE; i++) {
                Dwell.scope(TRACE_HI, TRACE_LO, 0xe1, 0xe1, "GET /many/" + i).close();
            }
            Label[] labels = new Label[LABELS_MAX + 1];
            // A label counts from its first use on.
            try (Scope scope = Dwell.scope(TRACE_HI, TRACE_LO, 0xe1, 0xe1, null)) {
                for (int i = 0; i < labels.length; i++) {
                    labels[i] = Dwell.label("label" + i);
                    Dwell.setLabel(labels[i], "first");
                }
            }
            for (int i = 0; i < 10; i++) {
                try (Scope scope = Dwell.scope(TRACE_HI, TRACE_LO, 0xe2, 0xe2, "GET /late")) {
                    burnWithOther();
                }
                try (Scope scope = Dwell.scope(TRACE_HI, TRACE_LO, 0xe3, 0xe3, "GET /many/17")) {
                    Dwell.setLabel(labels[0], "kept");
                    Dwell.setLabel(labels[LABELS_MAX], "lost");
                    burnWithKept();
                }
            }
        }, "texts-1");
        thread.start();
        thread.join();
    }

    private void burn() {
        for (int i = 0; i < 150; i++) {
            value = Burn.unit(value);
        }
        Burn.sink = value;
    }

    private void burnNone() {
        burn();
    }

    private void burnInFirst() {
        burn();
    }

    private void burnInSecond() {
        burn();
    }

    private void burnInThird() {
        burn();
    }

    private void burnWithOther() {
        burn();
    }

    private void burnWithKept() {
        burn();
    }
}
