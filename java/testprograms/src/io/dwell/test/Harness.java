package io.dwell.test;

import java.io.IOException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * What all test programs share: {@code key=value} arguments, the line {@code ready}, the truth
 * lines at the end, and the gate.
 *
 * <p>With {@code gate=1} the program waits for a line on standard input after {@code ready} and
 * again after its truth lines, so that whoever started it can attach before the work begins and
 * finish a recording before the process ends. It never waits without end: a watchdog halts it.
 */
public final class Harness {
    private static final int EXIT_USAGE = 2;
    private static final int EXIT_STUCK = 3;
    private static final int SECONDS_MAX = 86_400;
    private static final int CPU_MS_MAX = 60_000;
    private static final long WATCHDOG_EXTRA_SECONDS = 600;

    private final String program;
    private final Map<String, String> values = new LinkedHashMap<>();
    private final int seconds;
    private final boolean gate;
    private final long cpuNanos;
    private long endNanos;
    private long cpuEndNanos;

    /** Parses the arguments; an unknown key or a malformed value ends the program with 2. */
    public Harness(String program, int secondsDefault, String[] args, String... keys) {
        this.program = program;
        for (String arg : args) {
            int equals = arg.indexOf('=');
            String key = equals < 0 ? arg : arg.substring(0, equals);
            boolean common = key.equals("seconds") || key.equals("gate") || key.equals("cpu_ms");
            if (equals < 0 || !(common || Arrays.asList(keys).contains(key))) {
                fail("unknown argument '" + arg + "'; takes seconds= gate= cpu_ms= "
                        + String.join("= ", keys) + (keys.length == 0 ? "" : "="));
            }
            values.put(key, arg.substring(equals + 1));
        }
        this.seconds = number("seconds", secondsDefault, 1, SECONDS_MAX);
        this.gate = number("gate", 0, 0, 1) == 1;
        this.cpuNanos = TimeUnit.MILLISECONDS.toNanos(number("cpu_ms", 0, 0, CPU_MS_MAX));
        startWatchdog();
    }

    private void startWatchdog() {
        Thread watchdog = new Thread(() -> {
            try {
                TimeUnit.SECONDS.sleep(4L * seconds + WATCHDOG_EXTRA_SECONDS);
            } catch (InterruptedException e) {
                return;
            }
            System.err.println(program + ": stuck; halting");
            Runtime.getRuntime().halt(EXIT_STUCK);
        }, "watchdog");
        watchdog.setDaemon(true);
        watchdog.start();
    }

    /** The whole number given for the key, or its default. */
    public int number(String key, int defaultValue, int min, int max) {
        String text = values.get(key);
        if (text == null) {
            return defaultValue;
        }
        try {
            int value = Integer.parseInt(text);
            if (value >= min && value <= max) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Reported below, with the range.
        }
        throw fail(key + "= takes a whole number from " + min + " to " + max + ", not '" + text
                + "'");
    }

    /** The word given for the key: one of the choices, the first of which is the default. */
    public String choice(String key, String... choices) {
        String text = values.get(key);
        if (text == null) {
            return choices[0];
        }
        if (!Arrays.asList(choices).contains(text)) {
            throw fail(key + "= takes one of " + String.join(" ", choices) + ", not '" + text
                    + "'");
        }
        return text;
    }

    /** The text given for the key, or its default. */
    public String text(String key, String defaultValue) {
        return values.getOrDefault(key, defaultValue);
    }

    /** Ends the program with status 2; declared to return so that callers can throw it. */
    public IllegalStateException fail(String message) {
        System.err.println(program + ": " + message);
        System.exit(EXIT_USAGE);
        return new IllegalStateException(message);
    }

    /** Says that the program is warm, passes the gate and starts the clock of the run. */
    public void ready() {
        line("ready");
        if (gate) {
            awaitLine();
        }
        endNanos = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
        cpuEndNanos = cpuNanos > 0 ? CpuClock.processNanos() + cpuNanos : 0;
    }

    /**
     * True until the seconds asked for have passed since {@link #ready}, and the process has used
     * the CPU time asked for, however slow the machine is.
     */
    public boolean timeLeft() {
        return System.nanoTime() - endNanos < 0
                || (cpuNanos > 0 && CpuClock.processNanos() < cpuEndNanos);
    }

    /** Waits for the end of the run: a line if there is a gate, else the seconds asked for. */
    void awaitEnd() throws InterruptedException {
        if (gate) {
            awaitLine();
        } else {
            TimeUnit.SECONDS.sleep(seconds);
        }
    }

    /** The seconds asked for. */
    public int seconds() {
        return seconds;
    }

    /** Prints the CPU time that a correct profile has to show for the name. */
    public void truth(String name, long cpuNanos) {
        line("truth " + name + " " + cpuNanos);
    }

    /** Prints a fact about the run that is not CPU time. */
    public void info(String name, Object value) {
        line("info " + name + " " + value);
    }

    /** Prints one line at once. */
    public static synchronized void line(String text) {
        System.out.println(text);
        System.out.flush();
    }

    /** Ends the truth lines with {@code done} and passes the gate. */
    public void finish() {
        line("done");
        if (gate) {
            awaitLine();
        }
    }

    private void awaitLine() {
        try {
            int character = System.in.read();
            while (character >= 0 && character != '\n') {
                character = System.in.read();
            }
        } catch (IOException e) {
            // As at the end of the input: nobody is there to wait for.
            System.err.println(program + ": standard input failed: " + e.getMessage());
        }
    }
}
