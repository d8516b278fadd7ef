package io.dwell.agent;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermissions;

/**
 * Records this JVM with the agent library that is in the same jar:
 * {@code -javaagent:dwell-agent.jar=cpu=10ms,file=app.jfr}, or {@link #start} from the program.
 *
 * <p>No method throws. An error is one line on standard error, and the program continues.
 */
public final class DwellAgent {
    /** The library's name, by which the command {@code dwell} recognises a loaded agent. */
    private static final String NAME = "libdwell.so";

    private static boolean isLoaded;

    private DwellAgent() {}

    /** Called by the JVM before {@code main}, for {@code -javaagent}. */
    public static void premain(String options) {
        start(options);
    }

    /** Called by the JVM for a jar that is attached. */
    public static void agentmain(String options) {
        start(options);
    }

    /**
     * Starts a recording, with the options of {@code -agentpath}. A running recording is changed.
     *
     * @param options options divided by commas; null or empty for the defaults
     * @return whether this JVM is recorded now
     */
    public static boolean start(String options) {
        return run(options == null ? "" : options);
    }

    /** Ends the recording, and completes its file; returns whether there was one. */
    public static boolean stop() {
        return run("stop");
    }

    /** Brings the recording's file up to date; returns whether there is a recording. */
    public static boolean dump() {
        return run("dump");
    }

    private static synchronized boolean run(String command) {
        try {
            if (!isLoaded) {
                load();
                isLoaded = true;
            }
            return execute(command) == 0;
        } catch (Throwable e) {
            System.err.println("dwell: " + oneLine(e) + "; not recording");
            return false;
        }
    }

    private static String oneLine(Throwable e) {
        String message = e.getMessage() == null ? e.toString() : e.getMessage();
        return message.replace('\n', ' ');
    }

    private static void load() throws IOException {
        String system = System.getProperty("os.name") + " on " + System.getProperty("os.arch");
        if (!system.equals("Linux on amd64")) {
            throw new IOException("the agent runs on Linux on amd64, and this is " + system);
        }
        // A second copy of the library would not know the state of the first one.
        String loaded = loadedLibrary();
        if (loaded != null) {
            System.load(loaded);
            return;
        }
        Path library = unpack();
        try {
            System.load(library.toString());
        } catch (UnsatisfiedLinkError e) {
            throw new IOException("cannot load " + library + ": " + oneLine(e) + "; if its file"
                    + " system forbids programs (noexec), set -Djava.io.tmpdir to another one", e);
        }
    }

    /** The path of an agent that this process has loaded already, or null. */
    private static String loadedLibrary() throws IOException {
        byte[] maps = Files.readAllBytes(Paths.get("/proc/self/maps"));
        for (String line : new String(maps, StandardCharsets.ISO_8859_1).split("\n")) {
            int path = line.indexOf('/');
            if (path < 0) {
                continue;
            }
            if (line.endsWith("/" + NAME)) {
                byte[] bytes = line.substring(path).getBytes(StandardCharsets.ISO_8859_1);
                return new String(bytes, StandardCharsets.UTF_8);
            }
            if (line.endsWith("/" + NAME + " (deleted)")) {
                throw new IOException("this JVM has loaded " + line.substring(path)
                        + "; restart it to load the agent again");
            }
        }
        return null;
    }

    /**
     * Writes the library into a new folder with an unpredictable name that only this user may use.
     * It stays until the JVM exits, so that the command {@code dwell} can use it as well.
     */
    private static Path unpack() throws IOException {
        try (InputStream in = DwellAgent.class.getResourceAsStream(NAME)) {
            if (in == null) {
                throw new FileNotFoundException(NAME + " is missing in the jar of DwellAgent");
            }
            Path folder = Files.createTempDirectory("dwell-agent-",
                    PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
            Path library = folder.resolve(NAME);
            // The last one is deleted first.
            folder.toFile().deleteOnExit();
            library.toFile().deleteOnExit();
            Files.copy(in, library);
            return library.toAbsolutePath();
        }
    }

    /** Carries out a command; 0 if it succeeded, else after one line on standard error. */
    private static native int execute(String options);
}
