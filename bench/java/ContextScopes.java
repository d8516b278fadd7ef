import com.sun.management.ThreadMXBean;
import io.dwell.api.Dwell;
import io.dwell.api.Label;
import io.dwell.api.Scope;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Random;

/**
 * The cost of a scope: {@code ROUNDS} times a loop of {@code SCOPES} scopes, opened and closed, for
 * each kind, in CPU time of the thread (virtual threads: in wall-clock time). Prints a line each:
 * kind, median in ns, lower and upper quartile, rounds, bytes allocated per scope.
 */
public final class ContextScopes {
    private static final int SCOPES = 200_000;
    private static final int WARM_UP_ROUNDS = 20;
    private static final ThreadMXBean THREADS =
            (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final Label LABEL = Dwell.label("tenant");

    /** Ids as text: others in each scope, so that none is a constant to the compiler. */
    private static final int IDS = 1024;
    private static final String[] TRACES = new String[IDS];
    private static final String[] SPANS = new String[IDS];

    static volatile long sink;

    static {
        Random random = new Random(1);
        for (int i = 0; i < IDS; i++) {
            TRACES[i] = String.format("%016x%016x", random.nextLong(), random.nextLong());
            SPANS[i] = String.format("%016x", random.nextLong());
        }
    }

    private ContextScopes() {}

    private interface Kind {
        void scope(long number);
    }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        System.out.println("active " + Dwell.isActive());
        onThread("platform", false, rounds);
        if (Runtime.version().feature() >= 21) {
            onThread("virtual", true, rounds);
        }
    }

    private static void onThread(String name, boolean virtual, int rounds) throws Exception {
        Runnable work = () -> {
            measure(name + " nothing", virtual, rounds, number -> sink = number);
            measure(name + " numbers", virtual, rounds, ContextScopes::numbers);
            measure(name + " text", virtual, rounds, ContextScopes::text);
            measure(name + " label", virtual, rounds, ContextScopes::label);
            try (Scope outer = Dwell.scope(1, 2, 3, 3, "GET /outer")) {
                measure(name + " nested", virtual, rounds, ContextScopes::numbers);
            }
        };
        Thread thread;
        if (virtual) {
            Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
            thread = (Thread) start.invoke(null, work);
        } else {
            thread = new Thread(work, "scopes");
            thread.start();
        }
        thread.join();
    }

    private static void measure(String name, boolean virtual, int rounds, Kind kind) {
        double[] ns = new double[rounds];
        long bytes = 0;
        for (int round = -WARM_UP_ROUNDS; round < rounds; round++) {
            long allocated = virtual ? 0 : THREADS.getThreadAllocatedBytes(
                    Thread.currentThread().getId());
            long before = now(virtual);
            for (int i = 0; i < SCOPES; i++) {
                kind.scope(i);
            }
            long spent = now(virtual) - before;
            if (round >= 0) {
                ns[round] = (double) spent / SCOPES;
                bytes += virtual ? 0 : THREADS.getThreadAllocatedBytes(
                        Thread.currentThread().getId()) - allocated;
            }
        }
        Arrays.sort(ns);
        String each = virtual ? "-" : String.format("%.2f", (double) bytes / rounds / SCOPES);
        System.out.printf("%s %.1f %.1f %.1f %d %s%n", name, ns[rounds / 2], ns[rounds / 4],
                ns[rounds * 3 / 4], rounds, each);
    }

    private static long now(boolean virtual) {
        return virtual ? System.nanoTime() : THREADS.getCurrentThreadCpuTime();
    }

    private static void numbers(long number) {
        try (Scope scope = Dwell.scope(1, 2, number, 4, "GET /users/{id}")) {
            sink = number;
        }
    }

    private static void text(long number) {
        int at = (int) number & (IDS - 1);
        try (Scope scope = Dwell.scope(TRACES[at], SPANS[at], "GET /users/{id}")) {
            sink = number;
        }
    }

    private static void label(long number) {
        try (Scope scope = Dwell.scope(1, 2, number, 4, "GET /users/{id}")) {
            Dwell.setLabel(LABEL, "acme");
            sink = number;
        }
    }
}
