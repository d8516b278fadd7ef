package io.dwell.chaos;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/** Threads that start and end, wait for each other, and are inspected by others. */
final class Threads {
    private Threads() {}

    /** Many short platform threads. */
    static final class Platform extends Antagonist {
        Platform() {
            super("threads");
        }

        @Override
        void round(Random random) throws Exception {
            AtomicLong sum = new AtomicLong();
            List<Thread> all = new ArrayList<>();
            long x = random.nextLong();
            for (int i = 0; i < 16; i++) {
                int steps = 100 + random.nextInt(20000);
                Thread thread = new Thread(null,
                        helper(() -> sum.addAndGet(Work.back(Work.there(x, steps), steps))),
                        "churn-\u00e4\u4e2d-" + i, i % 4 == 0 ? 160 << 10 : 0);
                try {
                    thread.start();
                    all.add(thread);
                } catch (OutOfMemoryError e) {
                    disturbed.incrementAndGet();
                }
            }
            for (Thread thread : all) {
                thread.join();
            }
            helpersEnded();
            same(x * all.size(), sum.get());
        }
    }

    /** Virtual threads that unmount in all ways, at many depths. */
    static final class Virtual extends Antagonist {
        private Method start;
        private final ReentrantLock lock = new ReentrantLock();
        private final Object monitor = new Object();

        Virtual() {
            super("virtual");
        }

        @Override
        boolean possible() {
            try {
                start = Thread.class.getMethod("startVirtualThread", Runnable.class);
                start.invoke(null, (Runnable) () -> { });
                return true;
            } catch (ReflectiveOperationException e) {
                return false;
            }
        }

        @Override
        void round(Random random) throws Exception {
            AtomicLong sum = new AtomicLong();
            List<Thread> all = new ArrayList<>();
            long x = random.nextLong();
            for (int i = 0; i < 24; i++) {
                int frames = 1 + random.nextInt(i % 8 == 0 ? 600 : 60);
                int kind = i;
                all.add((Thread) start.invoke(null,
                        helper(() -> sum.addAndGet(descend(frames, kind, x)))));
            }
            for (Thread thread : all) {
                thread.join();
            }
            helpersEnded();
            same(x * all.size(), sum.get());
        }

        private long descend(int frames, int kind, long x) {
            if (frames == 0) {
                for (int i = 0; i < 5; i++) {
                    unmount(kind + i);
                    x = Work.back(Work.there(x, 300), 300);
                }
                return x;
            }
            long below = descend(frames - 1, kind, x + frames) - frames;
            if (frames % 16 == 0) {
                Thread.yield();
            }
            return below;
        }

        private void unmount(int how) {
            switch (how % 5) {
                case 0:
                    Thread.yield();
                    break;
                case 1:
                    LockSupport.parkNanos(50_000);
                    break;
                case 2:
                    sleep(1);
                    break;
                case 3:
                    lock.lock();
                    try {
                        Work.there(1, 2000);
                    } finally {
                        lock.unlock();
                    }
                    break;
                default:
                    synchronized (monitor) {
                        LockSupport.parkNanos(1000);
                    }
            }
        }
    }

    static void sleep(int ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Monitors, locks and queues that all threads use at once. */
    static final class Contention extends Antagonist {
        private final Object monitor = new Object();
        private final ReentrantLock lock = new ReentrantLock();
        private final ArrayBlockingQueue<Long> queue = new ArrayBlockingQueue<>(3);
        private long inMonitor;
        private long inLock;
        private final AtomicLong entries = new AtomicLong();

        Contention() {
            super("contention");
        }

        @Override
        int threads() {
            return 3;
        }

        @Override
        void round(Random random) throws Exception {
            for (int i = 0; i < 200; i++) {
                entries.incrementAndGet();
                synchronized (monitor) {
                    inMonitor++;
                    if (i % 50 == 0) {
                        monitor.wait(1);
                    }
                }
                lock.lock();
                try {
                    inLock += Work.back(Work.there(1, 20), 20);
                } finally {
                    lock.unlock();
                }
                if (!queue.offer((long) i)) {
                    queue.poll(1, TimeUnit.MILLISECONDS);
                }
            }
        }

        @Override
        void end() {
            // A round without enough memory may have ended before it did both.
            long missing = disturbed.get();
            sure(within(inMonitor, missing), inMonitor + " of " + entries + " in the monitor");
            sure(within(inLock, missing), inLock + " of " + entries + " in the lock");
        }

        private boolean within(long counted, long missing) {
            return counted <= entries.get() && counted >= entries.get() - missing;
        }
    }

    /** Safepoints and handshakes: requests the stacks of all threads again and again. */
    static final class Dumps extends Antagonist {
        Dumps() {
            super("dumps");
        }

        @Override
        int pauseMs() {
            return 60;
        }

        @Override
        void round(Random random) {
            StackTraceElement[] own = Thread.getAllStackTraces().get(Thread.currentThread());
            boolean found = false;
            for (StackTraceElement element : own) {
                found |= element.getMethodName().equals("round");
            }
            sure(found, "not in its own stack");
        }
    }
}
