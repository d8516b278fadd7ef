import io.dwell.agent.DwellAgent;
import io.dwell.api.Dwell;
import io.dwell.api.Scope;
import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;

/**
 * Uses the jar of the agent in all ways, for {@code xtask/packages}. Its requests run in a class
 * loader of their own, as in a server, so that the API there is another copy.
 *
 * <p>With an argument, it starts and stops the recording itself. It prints the results, and
 * {@code done} in any case.
 */
public final class Packaged {
    private static final long BURN_NANOS = 700_000_000;

    static volatile long sink;

    private Packaged() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments.length > 0) {
            System.out.println("started " + DwellAgent.start(arguments[0]));
        }
        String[] path = System.getProperty("java.class.path").split(File.pathSeparator);
        URL[] urls = new URL[path.length];
        for (int i = 0; i < path.length; i++) {
            urls[i] = new File(path[i]).toURI().toURL();
        }
        try (URLClassLoader loader = new URLClassLoader(urls, null)) {
            Class<?> work = Class.forName("Packaged", true, loader);
            System.out.println("active " + work.getMethod("request").invoke(null));
        }
        if (arguments.length > 0) {
            System.out.println("dumped " + DwellAgent.dump());
            System.out.println("stopped " + DwellAgent.stop());
            System.out.println("again " + DwellAgent.stop());
        }
        System.out.println("done");
    }

    /** One request; returns whether the API is connected with the agent. */
    public static boolean request() {
        try (Scope scope = Dwell.scope(0, 1, 2, 2, "GET /packaged")) {
            burnPackaged(System.nanoTime() + BURN_NANOS);
        }
        return Dwell.isActive();
    }

    private static void burnPackaged(long end) {
        while (System.nanoTime() < end) {
            for (int i = 0; i < 1000; i++) {
                sink += i;
            }
        }
    }
}
