package io.dwell.test;

import io.dwell.api.Dwell;
import io.dwell.api.Scope;
import java.util.Arrays;
import java.util.concurrent.locks.LockSupport;

/**
 * Requests of three endpoints, each on a thread of its own, with known durations: long ones that
 * sleep, and very short ones that follow each other without pause.
 */
public final class Latency {
    private static final long TRACE_HI = 0x0af7651916cd43ddL;
    private static final long TRACE_LO = 0x8448eb211c80319cL;
    private static final int KEPT = 1 << 20;

    private final Harness harness;

    private Latency(String[] args) {
        harness = new Harness("Latency", 4, args);
    }

    public static void main(String[] args) throws Exception {
        Latency program = new Latency(args);
        program.harness.ready();
        Workers workers = Workers.start("slow", 1, n -> program.live("GET /slow", 1, 20_000_000));
        workers.startOne("fast-1", 1, 0, n -> program.live("GET /fast", 2, 2_000_000));
        workers.startOne("tiny-1", 1, 0, n -> program.live("GET /tiny", 3, 0));
        workers.join();
        program.harness.finish();
    }

    private void live(String endpoint, int number, long sleepNanos) {
        long[] nanos = new long[KEPT];
        int count = 0;
        long first = System.nanoTime();
        while (harness.timeLeft() && count < KEPT) {
            long began = System.nanoTime();
            long span = ((long) number << 32) + count;
            try (Scope scope = Dwell.scope(TRACE_HI, TRACE_LO, span, span, endpoint)) {
                if (sleepNanos > 0) {
                    // A third of them takes twice as long.
                    LockSupport.parkNanos(count % 3 == 0 ? 2 * sleepNanos : sleepNanos);
                }
                try (Scope inner = Dwell.scope(TRACE_HI, TRACE_LO, 1L << 60, span, null)) {
                    Burn.sink = count;
                }
            }
            nanos[count++] = System.nanoTime() - began;
        }
        long elapsed = System.nanoTime() - first;
        Arrays.sort(nanos, 0, count);
        String name = endpoint.substring("GET /".length());
        harness.info(name + ".elapsed", elapsed);
        harness.info(name + ".count", count);
        for (int percent : new int[] {34, 66}) {
            harness.info(name + ".p" + percent, nanos[(int) ((long) count * percent / 100)]);
        }
    }
}
