package io.dwell.jmh;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Runs the `dwell` command. A failure is one line on standard error and never an exception. */
final class DwellCommand {
    private static final long TIME_OUT_S = 120;
    private final String command;
    private final boolean isVerbose;

    DwellCommand(ProfilerOptions options) {
        command = options.commandOr(System.getenv("DWELL"));
        isVerbose = options.verbose;
    }

    /** Prints a line for the user. */
    static void say(String text) {
        System.err.println("dwell: " + text);
    }

    /** The standard output, or null after a failure. */
    String run(String... words) {
        List<String> line = new ArrayList<>();
        line.add(command);
        line.addAll(Arrays.asList(words));
        if (isVerbose) {
            say(String.join(" ", line));
        }
        File out = null;
        File err = null;
        try {
            out = File.createTempFile("dwell-jmh", ".out");
            err = File.createTempFile("dwell-jmh", ".err");
            return output(line, out, err);
        } catch (IOException e) {
            say("cannot run " + command + ": " + e.getMessage() + "; name the command with the"
                    + " option command=PATH or in DWELL; this benchmark is not recorded");
            return null;
        } catch (InterruptedException e) {
            // JMH ends the benchmark; it must see that.
            Thread.currentThread().interrupt();
            return null;
        } finally {
            delete(out);
            delete(err);
        }
    }

    private String output(List<String> line, File out, File err)
            throws IOException, InterruptedException {
        ProcessBuilder builder = new ProcessBuilder(line);
        // Else the command's file of standard input would be the benchmark's.
        builder.redirectInput(new File("/dev/null")).redirectOutput(out).redirectError(err);
        // The variable would give options to a JVM that this command may start.
        builder.environment().remove("JAVA_TOOL_OPTIONS");
        Process process = builder.start();
        try {
            if (!process.waitFor(TIME_OUT_S, TimeUnit.SECONDS)) {
                say(String.join(" ", line) + ": no end after " + TIME_OUT_S + " s");
                return null;
            }
        } finally {
            process.destroyForcibly();
        }
        String errors = text(err).trim();
        if (process.exitValue() != 0) {
            String why = errors.isEmpty() ? "exit code " + process.exitValue() : lastLine(errors);
            say(String.join(" ", line) + " failed: " + why.replaceFirst("^dwell: ", ""));
            return null;
        }
        if (isVerbose && !errors.isEmpty()) {
            System.err.println(errors);
        }
        return text(out);
    }

    private static String text(File file) throws IOException {
        return new String(Files.readAllBytes(file.toPath()), StandardCharsets.UTF_8);
    }

    private static String lastLine(String text) {
        return text.substring(text.lastIndexOf('\n') + 1);
    }

    private static void delete(File file) {
        if (file != null) {
            file.delete();
        }
    }
}
