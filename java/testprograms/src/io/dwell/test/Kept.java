package io.dwell.test;

import java.lang.management.ManagementFactory;
import java.lang.ref.WeakReference;
import java.util.concurrent.locks.LockSupport;

/**
 * Allocates objects of three classes, as many bytes of each in turn, and keeps one in so many: of
 * {@code Leaked} twice as many as of the others. Counts what it keeps, and in the end what of some
 * others can still be reached, which must be nothing.
 *
 * <p>Sizes are those that the JVM itself counts before: they depend on its object headers.
 */
public final class Kept {
    /** Bytes of each class in one round. */
    private static final long ROUND_BYTES = 256 << 10;
    private static final int ARRAY_BYTES = 8000;
    private static final int MEASURED = 100;
    /** Collectors look at objects of a time in the second or third cycle after it at the latest. */
    private static final int COLLECTIONS = 4;

    private static final com.sun.management.ThreadMXBean THREADS =
            (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();

    /** Objects go here, so that none of them is optimised away. */
    private static volatile Object seen;

    /** What is kept, with room for all of it from the start. */
    private static Object[] leaked;
    private static Object[] cached;
    private static Object[] buffers;
    private static WeakReference<?>[] weak;
    private static int leakedCount;
    private static int cachedCount;
    private static int bufferCount;
    private static int weakCount;
    /** The last array that is not kept. */
    private static Object dropped;
    private static long leakedMade;
    private static long cachedMade;
    private static long bufferMade;

    static final class Leaked {
        long a, b, c, d, e, f, g, h, i, j;
    }

    static final class Cached {
        long a, b, c;
    }

    private Kept() {}

    public static void main(String[] args) throws Exception {
        Harness harness = new Harness("Kept", 60, args, "mib", "keep", "pause_ms");
        int rounds = (int) (((long) harness.number("mib", 32, 1, 65_536) << 20) / ROUND_BYTES);
        int pauseMs = harness.number("pause_ms", 0, 0, 10_000);
        int keep = harness.number("keep", 1000, 2, 1_000_000);
        long leakedBytes = measure(() -> leak(MEASURED, Integer.MAX_VALUE));
        long cachedBytes = measure(() -> cache(MEASURED, Integer.MAX_VALUE));
        long bufferBytes = measure(() -> buffer(MEASURED, Integer.MAX_VALUE));
        long all = rounds * ROUND_BYTES;
        leaked = new Object[(int) (2 * all / leakedBytes / (keep / 2 * 2) + 1)];
        cached = new Object[(int) (all / cachedBytes / keep + 1)];
        buffers = new Object[(int) (all / bufferBytes / keep + 1)];
        weak = new WeakReference<?>[rounds];
        leakedMade = cachedMade = bufferMade = 0;
        dropped = null;
        harness.ready();
        Thread thread = new Thread(() -> {
            for (int round = 0; round < rounds; round++) {
                leak(ROUND_BYTES / leakedBytes, keep / 2);
                cache(ROUND_BYTES / cachedBytes, keep);
                buffer(ROUND_BYTES / bufferBytes, keep);
                if (dropped != null) {
                    weak[weakCount++] = new WeakReference<>(dropped);
                    dropped = null;
                }
                LockSupport.parkNanos(pauseMs * 1_000_000L);
            }
            seen = null;
        }, "kept-1");
        thread.start();
        thread.join();
        for (int i = 0; i < COLLECTIONS; i++) {
            System.gc();
        }
        harness.info("size.leak", leakedBytes);
        harness.info("size.cache", cachedBytes);
        harness.info("size.buffer", bufferBytes);
        harness.info("kept.leak", leakedCount);
        harness.info("kept.cache", cachedCount);
        harness.info("kept.buffer", bufferCount);
        harness.info("weak", weakCount);
        harness.info("reachable", reachable());
        harness.finish();
    }

    /** The bytes of one object, as the JVM counts them. */
    private static long measure(Runnable made) {
        long each = 0;
        for (int i = 0; i < 2; i++) {
            long thread = Thread.currentThread().getId();
            long before = THREADS.getThreadAllocatedBytes(thread);
            made.run();
            // Asking allocates a little, too.
            each = (THREADS.getThreadAllocatedBytes(thread) - before) / MEASURED & ~7L;
        }
        return each;
    }

    private static long reachable() {
        long count = 0;
        for (int i = 0; i < weakCount; i++) {
            if (weak[i].get() != null) {
                count++;
            }
        }
        return count;
    }

    private static void leak(long count, int keep) {
        for (long i = 0; i < count; i++) {
            Leaked object = new Leaked();
            seen = object;
            if (++leakedMade % keep == 0) {
                leaked[leakedCount++] = object;
            }
        }
    }

    private static void cache(long count, int keep) {
        for (long i = 0; i < count; i++) {
            Cached object = new Cached();
            seen = object;
            if (++cachedMade % keep == 0) {
                cached[cachedCount++] = object;
            }
        }
    }

    private static void buffer(long count, int keep) {
        for (long i = 0; i < count; i++) {
            byte[] object = new byte[ARRAY_BYTES];
            seen = object;
            if (++bufferMade % keep == 0) {
                buffers[bufferCount++] = object;
            } else {
                dropped = object;
            }
        }
    }
}
