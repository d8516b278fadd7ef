package io.dwell.test;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Allocates on all threads beside what can keep a safepoint waiting: long loops that poll, and
 * arrays that native code holds fast (JNI critical regions, inside zlib). What is alive is checked
 * before it dies, so that a heap in which anything moved wrongly ends the program with 1.
 */
public final class HeapStress {
    private static final long BATCH_NS = 20_000_000;
    private static final long NS_PER_MS = 1_000_000;
    private static final int CHAIN_NODES = 32;
    /** A node of ours with compressed references, and what is left of a chain. */
    private static final int CHAIN_BYTES = CHAIN_NODES * 32;
    private static final int CHAINS_A_ROUND = 400;
    private static final int LARGE_BYTES_MAX = 600 * 1024;
    /** A loop ends where these bits are 0: after 2^17 steps on average. */
    private static final long LOOP_MASK = (1L << 17) - 1;
    private static final int ROUNDS_A_CYCLE = 16;

    /** Immutable, so that threads may hand chains to each other without further ado. */
    private static final class Node {
        final long value;
        final Node next;

        Node(long value, Node next) {
            this.value = value;
            this.next = next;
        }
    }

    private final int keepOneIn;
    private final Node[] live;
    private final AtomicLong checked = new AtomicLong();
    private final TruthTable truths = new TruthTable();
    private volatile byte[] large;
    private volatile boolean isBroken;
    private int collectionsMin;

    private HeapStress(int liveMegabytes, int keepOneIn) {
        this.keepOneIn = keepOneIn;
        live = new Node[liveMegabytes * 1024 * 1024 / CHAIN_BYTES];
        for (int i = 0; i < live.length; i++) {
            live[i] = chain(i);
        }
    }

    public static void main(String[] args) throws InterruptedException {
        Harness harness =
                new Harness("HeapStress", 5, args, "live_mb", "threads", "provoke_ms", "warm_ms",
                        "collections", "keep_one_in");
        int threads = harness.number("threads", 2, 1, 64);
        int provokeMs = harness.number("provoke_ms", 0, 0, 60_000);
        long warmNs = harness.number("warm_ms", 200, 0, 60_000) * NS_PER_MS;
        int keepOneIn = harness.number("keep_one_in", 8, 1, 1_000_000);
        HeapStress program = new HeapStress(harness.number("live_mb", 16, 1, 1024), keepOneIn);
        program.stressHeap(new CpuBudget().grant(warmNs), threads + 1);
        program.collectionsMin = harness.number("collections", 0, 0, 1_000_000);
        harness.ready();
        harness.info("measured_from_ms", uptimeMs());
        if (provokeMs > 0) {
            provoke(provokeMs);
        }
        Workers.start("stress", threads, number -> program.run(harness, number)).join();
        harness.info("measured_to_ms", uptimeMs());
        program.report(harness);
    }

    private void report(Harness harness) {
        harness.info("collections", collections());
        harness.info("chains_checked", checked.get());
        truths.print(harness);
        harness.truth("process", CpuClock.processNanos());
        harness.finish();
        if (isBroken) {
            System.err.println("HeapStress: the heap is not as it was left");
            System.exit(1);
        }
    }

    private static long collections() {
        long sum = 0;
        for (GarbageCollectorMXBean collector :
                ManagementFactory.getGarbageCollectorMXBeans()) {
            sum += collector.getCollectionCount();
        }
        return sum;
    }

    private static long uptimeMs() {
        return ManagementFactory.getRuntimeMXBean().getUptime();
    }

    /** Asks for a safepoint that no collector needs, again and again: FindDeadlocks. */
    private static void provoke(int everyMs) {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        Thread thread = new Thread(() -> {
            try {
                while (true) {
                    TimeUnit.MILLISECONDS.sleep(everyMs);
                    threads.findDeadlockedThreads();
                }
            } catch (InterruptedException e) {
                return;
            }
        }, "provoker");
        thread.setDaemon(true);
        thread.start();
    }

    private void run(Harness harness, int number) {
        CpuBudget budget = new CpuBudget();
        while (harness.timeLeft() || collections() < collectionsMin) {
            truths.measure("stressHeap", budget.grant(BATCH_NS), b -> stressHeap(b, number));
        }
    }

    /** Mostly small objects, now and then something else, in an order of its own. */
    private long stressHeap(CpuBudget budget, int number) {
        CriticalArrays arrays = new CriticalArrays(number);
        // Odd, so not 0; and different each time.
        long x = (number + checked.get()) * 0x9E3779B97F4A7C15L | 1;
        do {
            x = step(x);
            switch ((int) (x >>> 20) & (ROUNDS_A_CYCLE - 1)) {
                case 0:
                    check(arrays.thereAndBack(x));
                    break;
                case 1:
                    large = new byte[(int) ((x >>> 33) % LARGE_BYTES_MAX)];
                    break;
                case 2:
                    x = loopWithPolls(x);
                    break;
                default:
                    x = replaceChains(x);
                    break;
            }
        } while (!budget.spent());
        arrays.close();
        return x;
    }

    /** One chain in so many replaces a live one, which is looked at for the last time. */
    private long replaceChains(long start) {
        long x = start;
        long seen = 0;
        for (int i = 0; i < CHAINS_A_ROUND; i++) {
            x = step(x);
            Node made = chain(x);
            if ((x >>> 8) % keepOneIn == 0) {
                int at = (int) ((x >>> 33) % live.length);
                check(isWhole(live[at]));
                live[at] = made;
                seen++;
            } else {
                check(made.next.value == made.value - 1);
            }
        }
        checked.addAndGet(seen);
        return x;
    }

    private void check(boolean isWell) {
        if (!isWell) {
            isBroken = true;
        }
    }

    private static Node chain(long seed) {
        Node head = null;
        for (int i = 0; i < CHAIN_NODES; i++) {
            head = new Node(seed + i, head);
        }
        return head;
    }

    private static boolean isWhole(Node head) {
        int nodes = 1;
        for (Node node = head; node.next != null; node = node.next) {
            if (node.next.value != node.value - 1) {
                return false;
            }
            nodes++;
        }
        return nodes == CHAIN_NODES;
    }

    /** Not a counted loop, so every JVM polls in it. */
    private static long loopWithPolls(long start) {
        long x = start;
        do {
            x = step(x);
        } while ((x & LOOP_MASK) != 0);
        return x;
    }

    /** Never 0 unless it was: all other numbers in turn. */
    private static long step(long value) {
        long x = value;
        x ^= x << 13;
        x ^= x >>> 7;
        x ^= x << 17;
        return x;
    }
}
