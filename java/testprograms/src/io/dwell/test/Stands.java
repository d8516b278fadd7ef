package io.dwell.test;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * Threads that stay where they are, each for another reason, and one that runs: {@code runner}.
 * {@code deadlock=1} adds two threads that wait for each other's monitors, and two that wait for
 * each other's locks. {@code locks=1} adds two that own monitors without waiters: {@code
 * locks-cold} in the interpreter and {@code locks-hot} in compiled code. {@code shared=1} adds one
 * that waits for a lock which {@code main} has to read.
 */
public final class Stands {
    private static final long LONG = 1_000_000_000L;
    /** Number of calls after which a method is compiled. */
    private static final int HOT = 30_000;
    private static final Object HELD = new Object();
    private static final Object LEFT = new Object();
    private static final Object RIGHT = new Object();
    private static final Object EMPTY = new Object();
    private static final ReentrantLock LOCK = new ReentrantLock();
    private static ServerSocket server;
    private static volatile long sink;
    private static volatile int ready;
    private static volatile boolean stays;

    private Stands() {}

    /** The work of one thread. Not a lambda: its frames have other names in each version. */
    private abstract static class Body implements Runnable {
        abstract void stand() throws Exception;

        @Override
        public void run() {
            try {
                stand();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }
    }

    private static Thread start(String name, Body body) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private static synchronized void tell() {
        ready++;
    }

    public static void main(String[] args) throws Exception {
        Harness harness = new Harness("Stands", 5, args, "deadlock", "pool", "locks", "shared");
        int pool = harness.number("pool", 5, 0, 10_000);
        server = new ServerSocket(0, 5, InetAddress.getLoopbackAddress());
        start("runner", new Body() {
            void stand() {
                while (true) {
                    sink += runAround();
                }
            }
        });
        start("holder \u00e9\u20ac", new Body() {
            void stand() throws Exception {
                synchronized (HELD) {
                    tell();
                    Thread.sleep(LONG);
                }
            }
        });
        start("locker", new Body() {
            void stand() throws Exception {
                LOCK.lock();
                tell();
                Thread.sleep(LONG);
            }
        });
        await(2);
        start("deep", new Body() {
            void stand() throws Exception {
                descend(200);
            }
        });
        start("monitor-wanter", new Body() {
            void stand() {
                synchronized (HELD) {
                    sink++;
                }
            }
        });
        start("lock-wanter", new Body() {
            void stand() {
                LOCK.lock();
            }
        });
        start("waiter", new Body() {
            void stand() throws Exception {
                synchronized (EMPTY) {
                    EMPTY.wait();
                }
            }
        });
        start("acceptor", new Body() {
            void stand() throws Exception {
                server.accept().getInputStream().read();
            }
        });
        start("reader", new Body() {
            void stand() throws Exception {
                InetAddress host = server.getInetAddress();
                new Socket(host, server.getLocalPort()).getInputStream().read();
            }
        });
        for (int i = 0; i < pool; i++) {
            start("pool-" + i, new Body() {
                void stand() throws Exception {
                    new LinkedBlockingQueue<Object>().take();
                }
            });
        }
        if (harness.number("deadlock", 0, 0, 1) == 1) {
            deadlock();
        }
        if (harness.number("locks", 0, 0, 1) == 1) {
            locks();
        }
        if (harness.number("shared", 0, 0, 1) == 1) {
            final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
            lock.readLock().lock();
            start("shared-wanter", new Body() {
                void stand() {
                    lock.writeLock().lock();
                }
            });
        }
        // Time for them to reach their places, which they do not report.
        Thread.sleep(500);
        harness.ready();
        harness.finish();
    }

    private static void deadlock() throws Exception {
        final ReentrantLock left = new ReentrantLock();
        final ReentrantLock right = new ReentrantLock();
        for (final boolean isFirst : new boolean[] {true, false}) {
            start(isFirst ? "locked-left" : "locked-right", new Body() {
                void stand() throws Exception {
                    (isFirst ? left : right).lock();
                    tell();
                    await(6);
                    (isFirst ? right : left).lock();
                }
            });
        }
        for (final boolean isFirst : new boolean[] {true, false}) {
            start(isFirst ? "dead-left" : "dead-right", new Body() {
                void stand() throws Exception {
                    synchronized (isFirst ? LEFT : RIGHT) {
                        tell();
                        await(6);
                        synchronized (isFirst ? RIGHT : LEFT) {
                            sink++;
                        }
                    }
                }
            });
        }
    }

    /** The work below all locks; it has many implementations, so that it is never inlined. */
    private interface Inmost {
        void work() throws Exception;
    }

    private static final class Nothing implements Inmost {
        @Override
        public void work() {
            sink++;
        }
    }

    private static final class More implements Inmost {
        @Override
        public void work() {
            sink += 2;
        }
    }

    private static final class Most implements Inmost {
        @Override
        public void work() {
            sink += 3;
        }
    }

    private static final class Stays implements Inmost {
        @Override
        public void work() throws Exception {
            stays = true;
            Thread.sleep(LONG);
        }
    }

    /**
     * Monitors in one frame and in several: of objects, arrays and classes, and one locked twice.
     */
    private static final class Locks {
        private final Object first = new Object();
        private final int[] second = new int[1];

        static synchronized void ofClass(Locks locks, Inmost inmost) throws Exception {
            locks.outer(inmost);
        }

        void outer(Inmost inmost) throws Exception {
            synchronized (first) {
                synchronized (second) {
                    inner(inmost);
                }
            }
        }

        synchronized void inner(Inmost inmost) throws Exception {
            synchronized (this) {
                inmost.work();
            }
        }
    }

    private static void locks() throws Exception {
        start("locks-cold", new Body() {
            void stand() throws Exception {
                new Locks().outer(new Stays());
            }
        });
        // Before the methods that it calls are compiled.
        while (!stays) {
            Thread.sleep(1);
        }
        start("locks-hot", new Body() {
            void stand() throws Exception {
                Inmost[] inmost = {new Nothing(), new More(), new Most()};
                Locks locks = new Locks();
                for (int i = 0; i < HOT; i++) {
                    Locks.ofClass(locks, inmost[i % 3]);
                }
                Locks.ofClass(locks, new Stays());
            }
        });
    }

    private static void await(int count) throws InterruptedException {
        while (ready < count) {
            Thread.sleep(1);
        }
    }

    private static void descend(int frames) throws InterruptedException {
        if (frames == 0) {
            Thread.sleep(LONG);
        } else {
            descend(frames - 1);
        }
    }

    private static long runAround() {
        long sum = sink;
        for (int i = 0; i < 10_000; i++) {
            sum = sum * 31 + i;
        }
        return sum;
    }
}
