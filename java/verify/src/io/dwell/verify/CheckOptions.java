package io.dwell.verify;

import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/** The command line of {@link Check}. */
final class CheckOptions {
    static final String USAGE =
            "usage: java -jar dwell-verify.jar FILE.jfr [--event NAME] [--top N]"
            + " [--thread REGEX] [--under REGEX]\n"
            + "  --event NAME    the samples (default jdk.ExecutionSample)\n"
            + "  --top N         lines of each table (default 20, 0 for all)\n"
            + "  --thread REGEX  only samples of threads whose name has a match\n"
            + "  --under REGEX   table of the outermost frame that has a match, as class.method";

    private String file;
    private String event = "jdk.ExecutionSample";
    private int top = 20;
    private Pattern thread = Pattern.compile("");
    private Pattern under;

    private CheckOptions() {}

    static CheckOptions parse(String[] args) {
        CheckOptions options = new CheckOptions();
        for (int i = 0; i < args.length; i++) {
            if (!args[i].startsWith("--")) {
                if (options.file != null) {
                    throw new IllegalArgumentException("more than one file: " + args[i]);
                }
                options.file = args[i];
            } else if (i + 1 == args.length) {
                throw new IllegalArgumentException(args[i] + " needs a value");
            } else {
                options.set(args[i], args[++i]);
            }
        }
        if (options.file == null) {
            throw new IllegalArgumentException("no file given");
        }
        return options;
    }

    private void set(String option, String value) {
        switch (option) {
            case "--event":
                event = value;
                break;
            case "--top":
                top = count(value);
                break;
            case "--thread":
                thread = pattern(option, value);
                break;
            case "--under":
                under = pattern(option, value);
                break;
            default:
                throw new IllegalArgumentException("unknown option " + option);
        }
    }

    private static int count(String value) {
        try {
            int count = Integer.parseInt(value);
            if (count >= 0) {
                return count;
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw new IllegalArgumentException("--top takes a whole number, not '" + value + "'");
    }

    private static Pattern pattern(String option, String value) {
        try {
            return Pattern.compile(value);
        } catch (PatternSyntaxException e) {
            throw new IllegalArgumentException(
                    option + " takes a regular expression: " + e.getDescription());
        }
    }

    String file() {
        return file;
    }

    String event() {
        return event;
    }

    /** Lines of each table; 0 for all. */
    int top() {
        return top;
    }

    boolean wantsThread(String name) {
        return thread.matcher(name).find();
    }

    /** An additional pattern to group by, besides root, leaf and thread, or null. */
    Pattern under() {
        return under;
    }
}
