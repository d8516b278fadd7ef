package io.dwell.jmh;

import java.io.File;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.openjdk.jmh.infra.BenchmarkParams;
import org.openjdk.jmh.infra.IterationParams;
import org.openjdk.jmh.profile.ExternalProfiler;
import org.openjdk.jmh.profile.InternalProfiler;
import org.openjdk.jmh.profile.ProfilerException;
import org.openjdk.jmh.results.BenchmarkResult;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.runner.IterationType;
import org.openjdk.jmh.util.Utils;

/**
 * Records the measurement iterations of each fork with dwell: {@code -prof
 * io.dwell.jmh.DwellProfiler[:OPTIONS]}.
 *
 * <p>JMH makes one instance in its own process, which prepares forks and reads their recordings, and
 * one in each fork, which starts and stops the recording between iterations. Nothing happens inside
 * of an iteration.
 */
@SuppressWarnings("rawtypes") // So are the interfaces.
public final class DwellProfiler implements ExternalProfiler, InternalProfiler {
    /** Names the recording to a fork, without ending. Empty: this fork is not recorded. */
    private static final String FORK = "dwell.jmh.fork";
    private final ProfilerOptions options;
    private final DwellCommand command;
    /** Forks of the present benchmark that were prepared, with those of warmup. */
    private int forks;
    private BenchmarkParams forked;
    /** The numbers of its forks. */
    private final List<List<PerOperation>> numbers = new ArrayList<>();
    private File recording;
    /** Of the instance that starts and stops: */
    private boolean isRecording;
    private BenchmarkParams measured;
    private int iterations;
    private long operations;

    public DwellProfiler() throws ProfilerException {
        this("");
    }

    /** With the options after the profiler's name. */
    public DwellProfiler(String options) throws ProfilerException {
        try {
            this.options = ProfilerOptions.parse(options);
        } catch (IllegalArgumentException e) {
            throw new ProfilerException("dwell: " + e.getMessage());
        }
        command = new DwellCommand(this.options);
    }

    @Override
    public String getDescription() {
        return "dwell: CPU time, waits and allocations of measurement iterations, with a recording"
                + " and a page for each fork";
    }

    private static String nameOf(BenchmarkParams params) {
        Map<String, String> parameters = new LinkedHashMap<>();
        for (Object key : params.getParamsKeys()) {
            parameters.put(String.valueOf(key), params.getParam(String.valueOf(key)));
        }
        String mode = params.getMode().shortLabel();
        return RecordingName.of(params.getBenchmark(), parameters, mode);
    }

    /** The files of a fork, without ending. */
    private File fileOf(BenchmarkParams params, int fork) {
        File dir = new File(options.dir).getAbsoluteFile();
        return new File(dir, RecordingName.ofFork(nameOf(params), fork));
    }

    /** Deletes what an earlier run left, so that no fork of it remains. */
    private void clear(BenchmarkParams params) {
        File dir = new File(options.dir).getAbsoluteFile();
        if (!dir.isDirectory() && !dir.mkdirs()) {
            DwellCommand.say("cannot make the directory " + dir + "; name another with dir=DIR");
        }
        String name = nameOf(params);
        File[] files = dir.listFiles((folder, file) -> RecordingName.forkOf(file, name) > 0
                && (file.endsWith(".jfr") || file.endsWith(".html")));
        for (File file : files == null ? new File[0] : files) {
            file.delete();
        }
    }

    // In JMH's own process.

    @Override
    public Collection<String> addJVMInvokeOptions(BenchmarkParams params) {
        return Collections.emptyList();
    }

    /** Called once for each fork, before it starts. */
    @Override
    public Collection<String> addJVMOptions(BenchmarkParams params) {
        if (!params.equals(forked)) {
            forked = params;
            forks = 0;
            numbers.clear();
            clear(params);
        }
        forks++;
        int fork = forks - params.getWarmupForks();
        recording = fork >= 1 ? fileOf(params, fork) : null;
        List<String> added = new ArrayList<>();
        added.add("-D" + FORK + "=" + (recording == null ? "" : recording));
        // Warmup compiles the benchmark before the agent is there. This makes the compilers keep
        // lines and inlined methods; the code is the same.
        added.add("-XX:+UnlockDiagnosticVMOptions");
        added.add("-XX:+DebugNonSafepoints");
        if (ProfilerOptions.major(params.getJdkVersion()) >= 21) {
            // Else the JVM prints a warning for each fork.
            added.add("-XX:+EnableDynamicAgentLoading");
        }
        return added;
    }

    @Override
    public void beforeTrial(BenchmarkParams params) {
        // All is done in addJVMOptions.
    }

    @Override
    public Collection<? extends Result> afterTrial(BenchmarkResult result, long pid, File stdOut,
            File stdErr) {
        if (recording == null) {
            return Collections.emptyList();
        }
        long sum = 0;
        for (IterationResult iteration : result.getIterationResults()) {
            sum += iteration.getMetadata() == null ? 0 : iteration.getMetadata().getAllOps();
        }
        return results(sum);
    }

    @Override
    public boolean allowPrintOut() {
        return true;
    }

    @Override
    public boolean allowPrintErr() {
        return true;
    }

    // In the process of the benchmark.

    @Override
    public void beforeIteration(BenchmarkParams params, IterationParams iteration) {
        if (iteration.getType() != IterationType.MEASUREMENT) {
            return;
        }
        boolean isFirst = !params.equals(measured) || iterations >= iteration.getCount();
        if (!isFirst) {
            iterations++;
            return;
        }
        if (isRecording) {
            // The benchmark before has failed.
            stop();
        }
        measured = params;
        iterations = 1;
        operations = 0;
        String fork = System.getProperty(FORK);
        if (fork == null) {
            DwellCommand.say("-f 0: compiled code and threads of earlier benchmarks are in the"
                    + " recording of " + params.getBenchmark() + "; use -f 1 or more");
            clear(params);
            recording = fileOf(params, 1);
        } else {
            recording = fork.isEmpty() ? null : new File(fork);
        }
        if (recording != null) {
            String file = recording + ".jfr";
            String pid = String.valueOf(Utils.getPid());
            String events = options.eventsOn(System.getProperty("java.specification.version"));
            isRecording = command.run("start", "-e", events, "-o", file, pid) != null;
        }
    }

    @Override
    public Collection<? extends Result> afterIteration(BenchmarkParams params,
            IterationParams iteration, IterationResult result) {
        if (iteration.getType() != IterationType.MEASUREMENT || !isRecording) {
            return Collections.emptyList();
        }
        operations += result.getMetadata() == null ? 0 : result.getMetadata().getAllOps();
        if (iterations < iteration.getCount()) {
            return Collections.emptyList();
        }
        stop();
        if (System.getProperty(FORK) != null) {
            return Collections.emptyList();
        }
        numbers.clear();
        return results(operations);
    }

    private void stop() {
        isRecording = false;
        command.run("stop", String.valueOf(Utils.getPid()));
    }

    // Of both.

    /** Makes the page, and reads the numbers of a recording. */
    private Collection<? extends Result> results(long operations) {
        String file = recording + ".jfr";
        if (!new File(file).exists()) {
            // The failure of its start was printed.
            return Collections.emptyList();
        }
        if (options.page) {
            command.run("report", file, "-o", recording + ".html");
        }
        String json = command.run("explain", "--json", file);
        if (json == null || operations <= 0) {
            return Collections.emptyList();
        }
        try {
            numbers.add(PerOperation.of(json, operations));
        } catch (IllegalArgumentException e) {
            DwellCommand.say("explain --json " + file + ": " + e.getMessage());
            return Collections.emptyList();
        }
        List<Result> results = new ArrayList<>();
        PerOperation.ofForks(numbers).forEach(it -> results.add(new SampledResult(it)));
        return results;
    }
}
