package io.dwell.test;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;

/**
 * Allocates objects of known classes and sizes, from the smallest to 8 MiB, with the same number of
 * bytes for each in turn. Each is allocated in a method of its own, and counted.
 *
 * <p>Sizes depend on the JVM's object headers, so the JVM itself measures them before, on the main
 * thread.
 */
public final class Allocations {
    /** Bytes of each kind in one round: the largest object. */
    private static final long ROUND_BYTES = 8L << 20;
    private static final int ARRAY_8M = 8 << 20;
    private static final int MEASURED = 100;
    private static final int MEASURED_LARGE = 4;

    private static final com.sun.management.ThreadMXBean THREADS =
            (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();

    /** Objects are stored here, so that none of them is optimised away. */
    private static volatile Object kept;
    private static final String TEXT = "some text";

    /** Without fields. */
    static final class Small {}

    /** With fields. */
    static final class Node {
        long a, b, c, d, e, f, g, h, i, j;
    }

    private enum Kinds {
        small {
            @Override void make(long count) {
                kind_small(count);
            }
        },
        node {
            @Override void make(long count) {
                kind_node(count);
            }
        },
        boxed {
            @Override void make(long count) {
                kind_boxed(count);
            }
        },
        string {
            @Override void make(long count) {
                kind_string(count);
            }
        },
        bytes1k {
            @Override void make(long count) {
                kind_bytes1k(count);
            }
        },
        strings {
            @Override void make(long count) {
                kind_strings(count);
            }
        },
        ints64k {
            @Override void make(long count) {
                kind_ints64k(count);
            }
        },
        longs1m {
            @Override void make(long count) {
                kind_longs1m(count);
            }
        },
        bytes8m {
            @Override void make(long count) {
                kind_bytes8m(count);
            }
        };

        private long bytes;
        private long made;

        abstract void make(long count);

        /** Measures the bytes of one object with the JVM's counter. */
        void measure() {
            int count = this == bytes8m || this == longs1m ? MEASURED_LARGE : MEASURED;
            long thread = Thread.currentThread().getId();
            long before = THREADS.getThreadAllocatedBytes(thread);
            make(count);
            long each = (THREADS.getThreadAllocatedBytes(thread) - before) / count;
            // Reading the counter allocates a little, too.
            bytes = each & ~7L;
        }

        void round() {
            long count = Math.max(1, ROUND_BYTES / bytes);
            make(count);
            synchronized (this) {
                made += count;
            }
        }
    }

    private Allocations() {}

    public static void main(String[] args) throws Exception {
        Harness harness = new Harness("Allocations", 60, args, "mib", "threads", "virtual");
        long rounds = ((long) harness.number("mib", 128, 8, 8192) << 20) / ROUND_BYTES;
        int threads = harness.number("threads", 1, 1, 1000);
        boolean isVirtual = harness.number("virtual", 0, 0, 1) == 1;
        for (Kinds kind : Kinds.values()) {
            kind.measure();
            kind.measure();
        }
        harness.ready();
        List<Thread> all = new ArrayList<>();
        for (int number = 1; number <= threads; number++) {
            String name = "allocations-" + number;
            Runnable work = () -> {
                Thread.currentThread().setName(name);
                run(rounds);
            };
            all.add(isVirtual ? startVirtual(work) : start(work));
        }
        for (Thread thread : all) {
            thread.join();
        }
        for (Kinds kind : Kinds.values()) {
            harness.info("size." + kind.name(), kind.bytes);
            harness.info("objects." + kind.name(), kind.made);
        }
        harness.finish();
    }

    private static Thread start(Runnable work) {
        Thread thread = new Thread(work);
        thread.start();
        return thread;
    }

    /** Exists since 21; this is compiled for an older version. */
    private static Thread startVirtual(Runnable work) throws Exception {
        return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class)
                .invoke(null, work);
    }

    private static void run(long rounds) {
        for (long round = 0; round < rounds; round++) {
            for (Kinds kind : Kinds.values()) {
                kind.round();
            }
        }
    }

    private static void kind_small(long count) {
        for (long i = 0; i < count; i++) {
            kept = new Small();
        }
    }

    private static void kind_node(long count) {
        for (long i = 0; i < count; i++) {
            kept = new Node();
        }
    }

    private static void kind_boxed(long count) {
        for (long i = 0; i < count; i++) {
            kept = Long.valueOf(1_000_000 + i);
        }
    }

    /** The text's characters are shared. */
    private static void kind_string(long count) {
        for (long i = 0; i < count; i++) {
            kept = new String(TEXT);
        }
    }

    private static void kind_bytes1k(long count) {
        for (long i = 0; i < count; i++) {
            kept = new byte[1000];
        }
    }

    private static void kind_strings(long count) {
        for (long i = 0; i < count; i++) {
            kept = new String[100];
        }
    }

    private static void kind_ints64k(long count) {
        for (long i = 0; i < count; i++) {
            kept = new int[16 << 10];
        }
    }

    private static void kind_longs1m(long count) {
        for (long i = 0; i < count; i++) {
            kept = new long[128 << 10];
        }
    }

    private static void kind_bytes8m(long count) {
        for (long i = 0; i < count; i++) {
            kept = new byte[ARRAY_8M];
        }
    }
}
