package io.dwell.chaos;

import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Runs antagonists in parallel. Prints one line per second, and at the end {@code chaos ok} with
 * the number of checks.
 *
 * <p>Arguments: {@code seconds=} and {@code seed=}; {@code only=} or {@code without=} with names
 * joined by commas. {@code natives=} is the folder of the native libraries. {@code prof=0} leaves
 * SIGPROF to others. {@code leave=exit|halt} ends the JVM with code 42 at a random moment. The exit
 * status is 0, or 1 after a wrong result, or 3 if an antagonist hangs.
 */
public final class Chaos {
    private static final int WRONG = 1;
    private static final int STUCK = 3;
    private static final int LEFT = 42;
    private static final long PATIENCE_NS = 60_000_000_000L;

    private final List<Antagonist> antagonists = new ArrayList<>();
    private final List<Thread> threads = new ArrayList<>();
    private final Map<String, String> arguments;
    private volatile boolean over;
    private volatile Throwable failure;

    private Chaos(Map<String, String> arguments) {
        this.arguments = arguments;
    }

    public static void main(String[] words) throws Exception {
        Map<String, String> arguments = new HashMap<>();
        for (String word : words) {
            String[] parts = word.split("=", 2);
            arguments.put(parts[0], parts.length == 2 ? parts[1] : "");
        }
        new Chaos(arguments).run();
    }

    private Map<String, Antagonist> all(File natives) {
        Map<String, Antagonist> all = new LinkedHashMap<>();
        Antagonist[] list = {
            new Classes.Loaders(), new Classes.HiddenClasses(), new Classes.Deopt(),
            new Threads.Platform(), new Threads.Virtual(), new Threads.Contention(),
            new Threads.Dumps(), new Stacks.Overflow(), new Stacks.Deep(), new Stacks.Exceptions(),
            new Memory.Allocation(), new Memory.TooLarge(), new Memory.Full(), new Memory.Direct(),
            new Memory.Mapped(), new Memory.Handles(), new NativeCode.Jni(),
            new NativeCode.Libraries(library(natives, "plugin"), library(natives, "plugin2")),
            new NativeCode.Counting("mallocs", Natives::mallocs),
            new NativeCode.Counting("attaches", Natives::attaches),
            new NativeCode.Counting("ends", Natives::ends),
            new NativeCode.Counting("locals", Natives::locals),
            new NativeCode.Counting("stacks", Natives::stacks),
            new NativeCode.Counting("faults", Natives::faults),
            new NativeCode.Timers(!"0".equals(arguments.get("prof"))), new NativeCode.Children(),
        };
        for (Antagonist each : list) {
            all.put(each.name, each);
        }
        return all;
    }

    private static String library(File folder, String name) {
        return new File(folder, "libdwellchaos_" + name + ".so").getAbsolutePath();
    }

    private void choose(Map<String, Antagonist> all) {
        String only = arguments.getOrDefault("only", "");
        List<String> names = new ArrayList<>(all.keySet());
        if (only.isEmpty()) {
            names.remove("full");
        } else {
            names = Arrays.asList(only.split(","));
        }
        List<String> without = Arrays.asList(arguments.getOrDefault("without", "").split(","));
        for (String name : names) {
            Antagonist chosen = all.get(name);
            if (chosen == null) {
                System.err.println("no antagonist '" + name + "'; there are " + all.keySet());
                System.exit(2);
            }
            if (!without.contains(name) && chosen.possible()) {
                antagonists.add(chosen);
            }
        }
    }

    private void run() throws Exception {
        File natives = new File(arguments.getOrDefault("natives", "."));
        System.load(library(natives, "jni"));
        Natives.prepare();
        choose(all(natives));
        Random random = new Random(Long.parseLong(arguments.getOrDefault("seed", "1")));
        for (Antagonist antagonist : antagonists) {
            antagonist.begin();
            for (int i = 0; i < antagonist.threads(); i++) {
                long seed = random.nextLong();
                Thread thread = new Thread(() -> repeat(antagonist, new Random(seed)),
                        antagonist.name + "-" + i);
                thread.setDaemon(true);
                threads.add(thread);
            }
        }
        int seconds = Integer.parseInt(arguments.getOrDefault("seconds", "5"));
        // Created, and their classes loaded, while there is memory.
        Step join = this::joinAll;
        Step conclude = this::conclude;
        Threads.sleep(0);
        startAll();
        System.out.println("ready " + antagonists.size());
        leaveSometime(random, seconds);
        long begin = System.nanoTime();
        for (int second = 1; second <= seconds && failure == null; second++) {
            try {
                long left = begin + second * 1_000_000_000L - System.nanoTime();
                if (left > 0) {
                    Thread.sleep(left / 1_000_000 + 1);
                }
                System.out.println("second " + second + " rounds " + rounds());
            } catch (OutOfMemoryError e) {
                // An antagonist has filled the heap. The next second prints its line again.
            }
        }
        over = true;
        standLackOfMemory(join);
        // The data of the antagonists are garbage now.
        standLackOfMemory(conclude);
    }

    private interface Step {
        void run() throws Exception;
    }

    /** Repeats a step that failed for lack of memory; bounded. */
    private static void standLackOfMemory(Step step) throws Exception {
        for (int tries = 0; tries < 100; tries++) {
            try {
                step.run();
                return;
            } catch (OutOfMemoryError e) {
                Threads.sleep(100);
            }
        }
        step.run();
    }

    /** Starts the antagonists; if memory is short, as many as fit. */
    private void startAll() {
        List<Thread> all = new ArrayList<>(threads);
        for (Thread thread : all) {
            try {
                thread.start();
            } catch (OutOfMemoryError e) {
                if (thread == all.get(0)) {
                    throw e;
                }
                threads.remove(thread);
            }
        }
    }

    /** Runs rounds until the end, and at least one, however slow this JVM is. */
    private void repeat(Antagonist antagonist, Random random) {
        while (!over || antagonist.rounds.get() == 0 && antagonist.disturbed.get() < 1000) {
            try {
                antagonist.round(random);
                antagonist.rounds.incrementAndGet();
                int pause = antagonist.pauseMs();
                Thread.sleep(pause == 0 ? 0 : random.nextInt(pause));
            } catch (OutOfMemoryError e) {
                antagonist.disturbed.incrementAndGet();
            } catch (Throwable e) {
                // Lack of memory may be wrapped, or appear as a class that could not be created.
                if (!isLackOfMemory(e)) {
                    // Printed at once, because the run may not reach its end.
                    System.out.println("chaos wrong " + e);
                    failure = e;
                    return;
                }
                antagonist.disturbed.incrementAndGet();
            }
        }
    }

    private static boolean isLackOfMemory(Throwable e) {
        for (Throwable cause = e; cause != null; cause = cause.getCause()) {
            String message = String.valueOf(cause.getMessage());
            if (cause instanceof OutOfMemoryError || message.contains("Cannot allocate memory")) {
                return true;
            }
        }
        return false;
    }

    private void leaveSometime(Random random, int seconds) {
        String how = arguments.getOrDefault("leave", "");
        if (how.isEmpty()) {
            return;
        }
        int after = 300 + random.nextInt(Math.max(1, seconds * 1000 - 300));
        Thread leaver = new Thread(() -> {
            Threads.sleep(after);
            if (failure == null && how.equals("halt")) {
                Runtime.getRuntime().halt(LEFT);
            } else if (failure == null) {
                System.exit(LEFT);
            }
        }, "leaver");
        leaver.setDaemon(true);
        leaver.start();
    }

    private long rounds() {
        // Not a stream: there may be no memory for one.
        long sum = 0;
        for (Antagonist each : antagonists) {
            sum += each.rounds.get();
        }
        return sum;
    }

    private void joinAll() throws Exception {
        long end = System.nanoTime() + PATIENCE_NS;
        for (Thread thread : threads) {
            thread.join(Math.max(1, (end - System.nanoTime()) / 1_000_000));
            if (thread.isAlive() && failure == null) {
                System.out.println("chaos stuck " + thread.getName());
                for (StackTraceElement element : thread.getStackTrace()) {
                    System.out.println("    " + element);
                }
                System.out.flush();
                Runtime.getRuntime().halt(STUCK);
            }
        }
    }

    private void conclude() throws Exception {
        long checks = 0;
        long disturbed = 0;
        for (Antagonist antagonist : antagonists) {
            try {
                antagonist.end();
            } catch (Antagonist.Wrong e) {
                failure = e;
            }
            checks += antagonist.checks.get();
            disturbed += antagonist.disturbed.get();
            System.out.println("count " + antagonist.name + " " + antagonist.rounds + " "
                    + antagonist.disturbed + " " + antagonist.checks);
        }
        if (failure != null) {
            System.out.println("chaos wrong " + failure);
            failure.printStackTrace(System.out);
            System.out.flush();
            Runtime.getRuntime().halt(WRONG);
        }
        System.out.println("cpu " + ((com.sun.management.OperatingSystemMXBean)
                ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime());
        System.out.println("chaos ok rounds " + rounds() + " checks " + checks + " disturbed "
                + disturbed);
    }
}
