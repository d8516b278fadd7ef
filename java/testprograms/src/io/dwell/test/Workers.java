package io.dwell.test;

import java.util.ArrayList;
import java.util.List;

/** Starts named threads and waits for them; a failure of one of them fails the program. */
final class Workers {
    private static final int EXIT_FAILURE = 1;

    private final List<Thread> threads = new ArrayList<>();

    /** The work of one thread, with its number from 1 on. */
    interface Task {
        void run(int number) throws Exception;
    }

    /** Starts threads {@code name-1} to {@code name-count}. */
    static Workers start(String name, int count, Task task) {
        Workers workers = new Workers();
        for (int i = 1; i <= count; i++) {
            workers.startOne(name + "-" + i, i, 0, task);
        }
        return workers;
    }

    /** Starts one more thread with exactly this name; stack size 0 leaves it to the JVM. */
    Workers startOne(String name, int number, long stackBytes, Task task) {
        Thread thread = new Thread(null, () -> run(number, task), name, stackBytes);
        threads.add(thread);
        thread.start();
        return this;
    }

    private static void run(int number, Task task) {
        try {
            task.run(number);
        } catch (Throwable e) {
            // The program's other threads might wait for this one forever.
            e.printStackTrace();
            Runtime.getRuntime().halt(EXIT_FAILURE);
        }
    }

    /** Returns when all threads have ended. */
    void join() throws InterruptedException {
        for (Thread thread : threads) {
            thread.join();
        }
    }
}
