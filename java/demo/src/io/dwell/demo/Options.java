package io.dwell.demo;

/** The command line of the demo, parsed strictly: an unknown or malformed option is an error. */
final class Options {
    static final String USAGE =
            "usage: java -jar dwell-demo.jar [--seconds N] [--port N] [--cores X] [--quiet]\n"
            + "  --seconds N  serve for N seconds once warm, then exit (default 60)\n"
            + "  --port N     port on 127.0.0.1 (default 0: any free one)\n"
            + "  --cores X    cores to keep busy (default 35 % of the machine, 1 at most)\n"
            + "  --quiet      no status lines on standard error";

    private static final double BUSY_SHARE_OF_MACHINE = 0.35;
    private static final double BUSY_CORES_DEFAULT_MAX = 1.0;
    private static final int SECONDS_MAX = 24 * 3600;

    private int seconds = 60;
    private int port = 0;
    private double busyCores = Math.min(BUSY_CORES_DEFAULT_MAX,
            BUSY_SHARE_OF_MACHINE * Runtime.getRuntime().availableProcessors());
    private boolean quiet;
    private boolean help;

    private Options() {}

    static Options parse(String[] args) {
        Options options = new Options();
        for (int i = 0; i < args.length; i++) {
            switch (args[i]) {
                case "--seconds":
                    options.seconds = (int) number(args, ++i, 1, SECONDS_MAX);
                    break;
                case "--port":
                    options.port = (int) number(args, ++i, 0, 65535);
                    break;
                case "--cores":
                    options.busyCores = number(args, ++i, 0.05, 64);
                    break;
                case "--quiet":
                    options.quiet = true;
                    break;
                case "--help":
                    options.help = true;
                    break;
                default:
                    throw new IllegalArgumentException(
                            "unknown option '" + args[i] + "'; --help lists the options");
            }
        }
        return options;
    }

    private static double number(String[] args, int index, double min, double max) {
        String option = args[index - 1];
        if (index >= args.length) {
            throw new IllegalArgumentException(option + " needs a value");
        }
        try {
            double value = Double.parseDouble(args[index]);
            if (value >= min && value <= max) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Reported below, with the range.
        }
        throw new IllegalArgumentException(option + " takes a number from " + plain(min) + " to "
                + plain(max) + ", not '" + args[index] + "'");
    }

    private static String plain(double value) {
        return value == Math.rint(value) ? Long.toString((long) value) : Double.toString(value);
    }

    int seconds() {
        return seconds;
    }

    int port() {
        return port;
    }

    double busyCores() {
        return busyCores;
    }

    boolean quiet() {
        return quiet;
    }

    boolean help() {
        return help;
    }
}
