package io.dwell.jmh;

import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Exact tests of the parts of the profiler that need no JMH. Prints `passed N`, or ends with 1. */
public final class PartsTest {
    private static int checks;

    private PartsTest() {
    }

    public static void main(String[] arguments) {
        defaultsHoldWithoutOptions();
        optionsAreParsed();
        wrongOptionsAreRefused();
        commandComesFromOptionThenEnvironment();
        eventsAreThoseOfTheJvm();
        namesAreOneToOne();
        forksAreFoundByName();
        jsonIsRead();
        sumsAreDividedByOperations();
        workersCountAloneIfThereAreAny();
        forkWithoutNumberCountsAsZero();
        System.out.println("passed " + checks);
    }

    private static void same(Object expected, Object found) {
        checks++;
        if (!String.valueOf(expected).equals(String.valueOf(found))) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }

    private static String shown(String text) {
        ProfilerOptions it = ProfilerOptions.parse(text);
        return it.dir + " " + it.command + " " + it.eventsOn("17") + " " + it.page + " " + it.verbose;
    }

    private static void refused(String text, String part) {
        try {
            ProfilerOptions.parse(text);
        } catch (IllegalArgumentException e) {
            same(true, e.getMessage().contains(part));
            return;
        }
        throw new AssertionError(text + " is not refused");
    }

    private static void defaultsHoldWithoutOptions() {
        for (String text : new String[] {null, "", ";", " ; "}) {
            same("dwell-jmh null cpu,wall,alloc true false", shown(text));
        }
    }

    private static void optionsAreParsed() {
        same("a=b /x/dwell cpu,lock false true",
                shown("dir=a=b; command=/x/dwell;events=lock;page=false;verbose"));
        same("d null cpu,wall true true", shown("dir=d;events=cpu, wall,cpu;page;verbose=true"));
        same("d null cpu true false", shown("dir=d;events=cpu;page=true;verbose=false"));
    }

    private static void wrongOptionsAreRefused() {
        refused("output=x", "unknown option 'output'; options are dir=DIR");
        refused("dir", "option dir needs a value");
        refused("dir= ", "option dir needs a value");
        refused("command=", "option command needs a value");
        refused("page=yes", "option page is true or false, not 'yes'");
        refused("verbose=1", "option verbose is true or false");
        refused("events=cpu,walls", "option events has 'walls'");
        refused("events=cpu,", "option events has ''");
        refused("dir=a;dir=b", "option dir is given twice");
        refused("=x", "unknown option ''");
    }

    private static void commandComesFromOptionThenEnvironment() {
        ProfilerOptions none = ProfilerOptions.parse("");
        same("dwell", none.commandOr(null));
        same("dwell", none.commandOr(""));
        same("/e/dwell", none.commandOr("/e/dwell"));
        same("/o/dwell", ProfilerOptions.parse("command=/o/dwell").commandOr("/e/dwell"));
    }

    private static void eventsAreThoseOfTheJvm() {
        for (String version : new String[] {"11", "17.0.15", "25-ea"}) {
            same("cpu,wall,alloc", ProfilerOptions.parse("").eventsOn(version));
        }
        for (String version : new String[] {"1.8", "1.8.0_402", "9", null, "", "x"}) {
            same("cpu,wall", ProfilerOptions.parse("").eventsOn(version));
        }
        same("cpu,alloc", ProfilerOptions.parse("events=alloc").eventsOn("1.8"));
    }

    private static String name(String benchmark, String... parameters) {
        Map<String, String> map = new LinkedHashMap<>();
        for (int i = 0; i < parameters.length; i += 2) {
            map.put(parameters[i], parameters[i + 1]);
        }
        return RecordingName.of(benchmark, map, "avgt");
    }

    private static void namesAreOneToOne() {
        same("a.B.c-avgt", name("a.B.c"));
        same("a.B.c-n=10-url=~2fa~20b-avgt", name("a.B.c", "n", "10", "url", "/a b"));
        same("a.B.c-n=~c3~a4~25p-avgt", name("a.B.c", "n", "\u00e4%p"));
        // A value that looks like the escape of another one.
        same("a.B.c-n=~7e2f-avgt", name("a.B.c", "n", "~2f"));
        String many = String.join("", Collections.nCopies(300, "x"));
        String one = name("a.B.c", "n", many + "1");
        String other = name("a.B.c", "n", many + "2");
        same(200, one.length());
        same(true, one.endsWith("-avgt"));
        same(false, one.equals(other));
    }

    private static void forksAreFoundByName() {
        same("n-avgt", RecordingName.ofFork("n-avgt", 1));
        same("n-avgt-fork2", RecordingName.ofFork("n-avgt", 2));
        same(1, RecordingName.forkOf("n-avgt.jfr", "n-avgt"));
        same(12, RecordingName.forkOf("n-avgt-fork12.html", "n-avgt"));
        for (String other : new String[] {"n-avgt-forkx.jfr", "n-avgt-fork02.jfr", "n-avgt2.jfr",
            "n-avgt", "m-avgt.jfr", "n-avgt-fork.jfr"}) {
            same(0, RecordingName.forkOf(other, "n-avgt"));
        }
    }

    private static void jsonIsRead() {
        same("{a=[1.0, -2.5E10, true, false, null], b={}, c=[]}",
                Json.parse(" {\"a\": [1, -2.5e10, true,false , null],\n\"b\":{}, \"c\" : [ ] } "));
        same("q\"\\/\n\u00e4", Json.parse("\"q\\\"\\\\\\/\\n\\u00e4\""));
        String deep = String.join("", Collections.nCopies(500, "["));
        for (String wrong : new String[] {"", "{", "[1,]", "{\"a\" 1}", "nul", "1 2", "\"a", "-",
            "{a:1}", deep}) {
            try {
                Json.parse(wrong);
            } catch (IllegalArgumentException e) {
                checks++;
                continue;
            }
            throw new AssertionError(wrong + " is read");
        }
    }

    private static String numbers(String totals, long operations) {
        return shown(PerOperation.of("{\"totals\":" + totals + "}", operations));
    }

    private static String shown(List<PerOperation> numbers) {
        StringBuilder text = new StringBuilder();
        for (PerOperation it : numbers) {
            text.append(String.format(java.util.Locale.ROOT, "%s %.2f %.2f %s;", it.label,
                    Arrays.stream(it.values).average().orElse(0), it.error, it.unit));
        }
        return text.toString();
    }

    private static void sumsAreDividedByOperations() {
        same("dwell.cpu.program 30.00 3.29 ns/op;dwell.cpu.GC 0.00 0.00 ns/op;"
                + "dwell.alloc 100.00 6.58 B/op;",
                numbers("{\"cpu\":[{\"kind\":\"program\",\"ns\":300,\"standardErrorNs\":10},"
                        + "{\"kind\":\"GC\",\"ns\":0,\"standardErrorNs\":0}],"
                        + "\"allocated\":{\"bytes\":1000,\"standardErrorBytes\":20},"
                        + "\"wall\":null}", 10));
        same("", numbers("{\"cpu\":null,\"allocated\":null,\"wall\":null}", 10));
        try {
            PerOperation.of("{\"version\":1}", 1);
        } catch (IllegalArgumentException e) {
            same(true, e.getMessage().contains("too old"));
            return;
        }
        throw new AssertionError("a recording without totals is read");
    }

    private static String row(String threads, String cause, long ns, long error) {
        return "{\"threads\":\"" + threads + "\",\"cause\":\"" + cause + "\",\"ns\":" + ns
                + ",\"standardErrorNs\":" + error + "}";
    }

    private static void workersCountAloneIfThereAreAny() {
        String main = row("main", "park", 900, 1) + "," + row("pool-*", "sleep", 40, 4) + ","
                + row("pool-*", "idle-pool", 500, 9);
        String workers = row("a.B.c-jmh-worker-*", "sleep", 20, 3) + ","
                + row("a.B.c-jmh-worker-*", "running", 70, 3);
        same("dwell.wait.sleep 10.00 4.94 ns/op;",
                numbers("{\"wall\":[" + main + "," + workers + "]}", 2));
        same("dwell.wait.park 450.00 1.65 ns/op;dwell.wait.sleep 20.00 6.58 ns/op;",
                numbers("{\"wall\":[" + main + "]}", 2));
    }

    private static void forkWithoutNumberCountsAsZero() {
        String allocated = "\"allocated\":{\"bytes\":90,\"standardErrorBytes\":10}";
        List<PerOperation> one = PerOperation.of("{\"totals\":{" + allocated + "}}", 1);
        String wall = "\"wall\":[" + row("main", "park", 60, 0) + "]";
        List<PerOperation> other = PerOperation.of("{\"totals\":{" + allocated + "," + wall + "}}", 1);
        List<PerOperation> all = PerOperation.ofForks(Arrays.asList(one, other, one));
        // The errors of three forks are independent: 32.9 / sqrt(3).
        same("dwell.alloc 90.00 19.00 B/op;dwell.wait.park 20.00 0.00 ns/op;", shown(all));
        same("[0.0, 60.0, 0.0]", Arrays.toString(all.get(1).values));
    }
}
