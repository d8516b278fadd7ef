import java.util.SplittableRandom;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Threads besides those that are measured, by a word: {@code idle:N} wait for ever; {@code
 * nap:N:MS} wait for MS to 2 MS milliseconds again and again; {@code pool:N} are a pool of which
 * three others work each second; {@code tenth:N} run for a tenth of their time, all together for
 * at most 0.3 of a CPU, and wait in three places; {@code virtual:N} are virtual threads of
 * which 20 work and the others sleep for one to two seconds; {@code brief:N} begin N times a second
 * and end at once; {@code handover} are two threads that hand over some 20,000 times a second.
 */
final class WallOthers {
    private static final int POOL_WORKING = 3;
    private static final int VIRTUAL_WORKING = 20;
    private static final double TENTHS_BUSY = 0.3;
    /** Busy time of a thread in each turn of a hand-over. */
    private static final long HAND_NS = 30_000;

    private static volatile long sink;

    private WallOthers() {}

    /** Starts them; returns when all have begun. */
    static void start(String words) throws Exception {
        String[] parts = words.split(":");
        int count = parts.length > 1 ? Integer.parseInt(parts[1]) : 0;
        switch (parts[0]) {
            case "idle":
                each(count, random -> LockSupport.park());
                break;
            case "nap":
                long nap = TimeUnit.MILLISECONDS.toNanos(Long.parseLong(parts[2]));
                each(count, random -> LockSupport.parkNanos(nap + random.nextLong(nap)));
                break;
            case "tenth":
                tenth(count);
                break;
            case "pool":
                pool(count);
                break;
            case "virtual":
                virtual(count);
                break;
            case "brief":
                started("starter", () -> brief(count));
                break;
            case "handover":
                handOver();
                break;
            default:
                throw new IllegalArgumentException(words);
        }
    }

    /** A step of a thread's life. */
    private interface Step {
        void take(SplittableRandom random) throws Exception;
    }

    private static void each(int count, Step step) {
        for (int i = 0; i < count; i++) {
            SplittableRandom random = new SplittableRandom(-1 - i);
            started("other-" + i, () -> {
                while (true) {
                    step.take(random);
                }
            });
        }
    }

    private static void started(String name, WallMix.Body body) {
        WallMix.start(name, body);
    }

    private static void busy(long nanos) {
        long end = System.nanoTime() + nanos;
        long value = nanos;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 100; i++) {
                value = value * 0x5851f42d4c957f2dL + 1;
            }
        }
        sink = value;
    }

    private static void tenth(int count) {
        // A tenth of 10 ms each, or less: no thread should wait for a processor.
        long run = (long) (10_000_000 * Math.min(0.1, TENTHS_BUSY / count));
        ThreadLocal<Object> own = ThreadLocal.withInitial(Object::new);
        each(count, random -> {
            busy(run);
            long wait = 5_000_000 + random.nextLong(10_000_000);
            switch (random.nextInt(3)) {
                case 0:
                    LockSupport.parkNanos(wait);
                    break;
                case 1:
                    TimeUnit.NANOSECONDS.sleep(wait);
                    break;
                default:
                    Object monitor = own.get();
                    synchronized (monitor) {
                        TimeUnit.NANOSECONDS.timedWait(monitor, wait);
                    }
            }
        });
    }

    private static void pool(int count) {
        Semaphore[] turns = new Semaphore[count];
        for (int i = 0; i < count; i++) {
            Semaphore turn = turns[i] = new Semaphore(0);
            SplittableRandom random = new SplittableRandom(i);
            started("other-" + i, () -> {
                while (true) {
                    turn.acquire();
                    work(random, TimeUnit.SECONDS.toNanos(1));
                }
            });
        }
        started("dispatcher", () -> {
            for (int next = 0; true; next += POOL_WORKING) {
                for (int i = 0; i < POOL_WORKING; i++) {
                    turns[(next + i) % count].release();
                }
                Thread.sleep(1000);
            }
        });
    }

    private static void work(SplittableRandom random, long nanos) throws Exception {
        long end = System.nanoTime() + nanos;
        while (System.nanoTime() < end) {
            busy(random.nextLong(1_000_000));
            LockSupport.parkNanos(random.nextLong(30_000_000));
        }
    }

    private static void virtual(int count) throws Exception {
        // This file is compiled for older JVMs.
        java.lang.reflect.Method start =
            Thread.class.getMethod("startVirtualThread", Runnable.class);
        for (int i = 0; i < count; i++) {
            SplittableRandom random = new SplittableRandom(i);
            boolean works = i < VIRTUAL_WORKING;
            Runnable life = () -> {
                try {
                    while (true) {
                        if (works) {
                            work(random, Long.MAX_VALUE / 4);
                        } else {
                            Thread.sleep(1000 + random.nextInt(1000));
                        }
                    }
                } catch (Exception e) {
                    e.printStackTrace();
                }
            };
            start.invoke(null, life);
        }
    }

    private static void brief(int count) throws Exception {
        long between = TimeUnit.SECONDS.toNanos(1) / count;
        long next = System.nanoTime();
        for (int i = 0; true; i++) {
            started("brief-" + i, () -> LockSupport.parkNanos(2_000_000));
            next += between;
            LockSupport.parkNanos(next - System.nanoTime());
        }
    }

    private static void handOver() {
        Semaphore[] turns = {new Semaphore(1), new Semaphore(0)};
        for (int i = 0; i < 2; i++) {
            Semaphore own = turns[i];
            Semaphore other = turns[1 - i];
            started("other-" + i, () -> {
                while (true) {
                    own.acquire();
                    busy(HAND_NS);
                    other.release();
                }
            });
        }
    }
}
