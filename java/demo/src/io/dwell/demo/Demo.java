package io.dwell.demo;

import io.dwell.demo.load.LoadGenerator;
import io.dwell.demo.server.DemoServer;
import java.io.IOException;

/**
 * The bundled service: an HTTP server on the loopback interface and a bounded load against it, both
 * in this process. So a profile of one JVM shows a service at work.
 *
 * <p>Prints {@code ready PORT VERSION} on standard output once it is warm, with the version of Java
 * (1.8, 17). It serves for the requested time and then exits with status 0. It must listen on
 * loopback only.
 */
public final class Demo {
    private static final int EXIT_FAILURE = 1;
    private static final int EXIT_USAGE = 2;

    private Demo() {}

    public static void main(String[] args) throws InterruptedException {
        Options options;
        try {
            options = Options.parse(args);
        } catch (IllegalArgumentException e) {
            System.err.println("dwell-demo: " + e.getMessage());
            System.exit(EXIT_USAGE);
            return;
        }
        if (options.help()) {
            System.out.println(Options.USAGE);
            return;
        }
        try {
            run(options);
        } catch (IOException e) {
            System.err.println("dwell-demo: cannot listen on 127.0.0.1:" + options.port() + ": "
                    + e.getMessage() + "; choose another --port (0 takes any free one)");
            System.exit(EXIT_FAILURE);
        }
    }

    private static void run(Options options) throws IOException, InterruptedException {
        // Without this, the server's small replies wait for delayed acknowledgements (40 ms each).
        System.setProperty("sun.net.httpserver.nodelay", "true");

        DemoServer server = DemoServer.start(options.port());
        LoadGenerator load = LoadGenerator.start(server.port(), options.busyCores());
        try {
            load.awaitWarm();
            System.out.println("ready " + server.port() + " "
                    + System.getProperty("java.specification.version"));
            System.out.flush();
            new StatusReporter(load, options.quiet()).reportFor(options.seconds());
        } finally {
            load.stop();
            server.stop();
        }
    }
}
