package io.dwell.test;

import io.dwell.api.Dwell;
import io.dwell.api.Scope;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Virtual threads of two kinds that hop from carrier to carrier with a scope open. The method on the
 * stack tells the kind, the thread's name its number: so each sample tells which span it has to
 * carry. {@code a-17} works for span 0x100011 in {@code burnKindA}, {@code b-17} for 0x200011 in
 * {@code burnKindB}.
 */
public final class VirtualRequests {
    private static final long TRACE_A = 0xaaaaL;
    private static final long TRACE_B = 0xbbbbL;

    private final Harness harness;
    private final Semaphore wakers = new Semaphore(0);
    private final ReentrantLock lock = new ReentrantLock();
    private final AtomicLong hops = new AtomicLong();

    private VirtualRequests(String[] args) {
        harness = new Harness("VirtualRequests", 5, args, "threads");
    }

    public static void main(String[] args) throws InterruptedException {
        VirtualRequests program = new VirtualRequests(args);
        int count = program.harness.number("threads", 1000, 1, 1_000_000);
        Burn.warmUp();
        program.harness.ready();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int number = i / 2;
            threads.add(i % 2 == 0
                    ? Thread.ofVirtual().name("a-" + number).start(() -> program.liveA(number))
                    : Thread.ofVirtual().name("b-" + number).start(() -> program.liveB(number)));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        program.harness.info("hops", program.hops.get());
        program.harness.info("active", Dwell.isActive());
        program.harness.finish();
    }

    private void liveA(int number) {
        long span = 0x100000 + number;
        while (harness.timeLeft()) {
            try (Scope scope = Dwell.scope(0, TRACE_A, span, span, "GET /a")) {
                burnKindA(number);
            }
            burnNoKind(number);
        }
    }

    private void liveB(int number) {
        long span = 0x200000 + number;
        while (harness.timeLeft()) {
            try (Scope outer = Dwell.scope(0, TRACE_B, 7, 7, "GET /outer")) {
                try (Scope scope = Dwell.scope(0, TRACE_B, span, span, "GET /b")) {
                    burnKindB(number);
                }
                burnOuter(number);
            }
            burnNoKind(number);
        }
    }

    private void burnKindA(int number) {
        bursts(number);
    }

    private void burnKindB(int number) {
        bursts(number);
    }

    private void burnOuter(int number) {
        bursts(number);
    }

    private void burnNoKind(int number) {
        bursts(number);
    }

    /** Work, and everything that makes a virtual thread let go of its carrier. */
    private void bursts(int number) {
        for (int i = 0; i < 6 && harness.timeLeft(); i++) {
            String before = carrier();
            switch ((i + number) % 5) {
                case 0 -> Thread.yield();
                case 1 -> LockSupport.parkNanos(TimeUnit.MICROSECONDS.toNanos(300));
                case 2 -> {
                    lock.lock();
                    try {
                        Burn.sink = Burn.unit(number);
                    } finally {
                        lock.unlock();
                    }
                }
                case 3 -> {
                    wakers.release();
                    wakers.acquireUninterruptibly();
                }
                default -> sleep();
            }
            Burn.sink = Burn.unit(number);
            if (!before.equals(carrier())) {
                hops.incrementAndGet();
            }
        }
    }

    private static void sleep() {
        try {
            Thread.sleep(1);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** The carrier's name, which is behind the {@code @} of a mounted virtual thread. */
    private static String carrier() {
        String text = Thread.currentThread().toString();
        return text.substring(text.lastIndexOf('@') + 1);
    }
}
