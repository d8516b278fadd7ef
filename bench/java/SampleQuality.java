import java.io.IOException;
import java.nio.file.Paths;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordedMethod;
import jdk.jfr.consumer.RecordingFile;

/**
 * A recording's data about its own samples, for any profiler, one fact a line:
 * {@code SampleQuality FILE BROKEN NO_WALK}. {@code BROKEN} matches the frames with which a
 * profiler says that it could not walk, {@code NO_WALK} the failures that are not walks.
 */
public final class SampleQuality {
    /** Median and largest depth need no more than the number of stacks of each depth. */
    private final TreeMap<Integer, Long> depths = new TreeMap<>();
    private final Map<String, Long> causes = new TreeMap<>();
    private final Map<String, Long> settings = new TreeMap<>();
    private final Map<Long, String> sampleTypes = new HashMap<>();
    /** Of our samples, why those of a thread are not whole that follow; empty: they are. */
    private final Map<Long, String> failures = new HashMap<>();
    private final Pattern broken;
    private final Pattern noWalk;
    private long samples;
    private long failed;
    private long unsampled;
    private long truncated;
    private long lost;
    private RecordedEvent self;

    private SampleQuality(String broken, String noWalk) {
        this.broken = Pattern.compile(broken);
        this.noWalk = Pattern.compile(noWalk);
    }

    public static void main(String[] args) throws IOException {
        SampleQuality quality = new SampleQuality(args[1], args[2]);
        try (RecordingFile file = new RecordingFile(Paths.get(args[0]))) {
            file.readEventTypes().forEach(type -> {
                if (isSample(type.getName())) {
                    quality.sampleTypes.put(type.getId(), type.getName());
                }
            });
            while (file.hasMoreEvents()) {
                quality.add(file.readEvent());
            }
        }
        quality.print();
    }

    /** The key of the thread of an event of dwell, and of samples. */
    private static long threadId(RecordedEvent event) {
        return event.getThread("sampledThread") == null ? 0
                : event.getThread("sampledThread").getId();
    }

    private static boolean isSample(String name) {
        return name.equals("jdk.ExecutionSample") || name.equals("jdk.CPUTimeSample")
                || name.equals("profiler.WallClockSample");
    }

    private void add(RecordedEvent event) {
        String name = event.getEventType().getName();
        if (name.equals("dwell.SampleDetail")) {
            String failure = event.getString("failure");
            failures.put(threadId(event), failure == null ? "" : failure);
        } else if (isSample(name)) {
            addSample(event);
        } else if (name.equals("dwell.Lost")) {
            lost += event.getLong("samples");
        } else if (name.equals("jdk.CPUTimeSamplesLost")) {
            lost += event.getInt("lostSamples");
        } else if (name.equals("dwell.Self")) {
            self = event;
        } else if (name.equals("jdk.ActiveSetting")) {
            String type = sampleTypes.get(event.getLong("id"));
            if (type != null) {
                String what = type + "#" + event.getString("name") + "="
                        + event.getString("value");
                settings.merge(what.replace(' ', '_'), 1L, Long::sum);
            }
        }
    }

    private void addSample(RecordedEvent event) {
        String failure = failure(event);
        if (failure != null && noWalk.matcher(failure).matches()) {
            unsampled++;
            return;
        }
        samples++;
        if (failure != null) {
            failed++;
            causes.merge(failure.replace(' ', '_'), 1L, Long::sum);
        }
        if (event.getStackTrace() != null) {
            truncated += event.getStackTrace().isTruncated() ? 1 : 0;
            depths.merge(event.getStackTrace().getFrames().size(), 1L, Long::sum);
        }
    }

    /** Why a stack is not whole, as far as the profiler says so; else null. */
    private String failure(RecordedEvent event) {
        if (event.hasField("failure")) {
            return event.getString("failure");
        }
        if (event.getEventType().getName().equals("jdk.ExecutionSample")) {
            String told = failures.get(threadId(event));
            if (told != null) {
                return told.isEmpty() ? null : told;
            }
        }
        if (event.hasField("failed") && event.getBoolean("failed")) {
            return "failed";
        }
        if (event.getStackTrace() == null) {
            return "no_stack";
        }
        for (RecordedFrame frame : event.getStackTrace().getFrames()) {
            RecordedMethod method = frame.getMethod();
            boolean named = method != null && !method.getType().getName().isEmpty();
            if (!named && method != null && broken.matcher(method.getName()).matches()) {
                return method.getName();
            }
        }
        return null;
    }

    private void print() {
        System.out.println("samples " + samples);
        System.out.println("failed " + failed);
        System.out.println("unsampled " + unsampled);
        System.out.println("truncated " + truncated);
        System.out.println("lost " + lost);
        System.out.println("depth_median " + quantile(0.5));
        System.out.println("depth_max " + (depths.isEmpty() ? 0 : depths.lastKey()));
        causes.forEach((cause, number) -> System.out.println("cause " + cause + " " + number));
        settings.forEach((setting, number) -> System.out.println("setting " + setting));
        if (self != null) {
            self.getFields().stream().filter(f -> f.getTypeName().equals("long"))
                    .filter(f -> !f.getName().equals("startTime"))
                    .forEach(f -> System.out.println("self " + f.getName() + " "
                            + self.getLong(f.getName())));
        }
    }

    private int quantile(double share) {
        long left = (long) Math.ceil(share * depths.values().stream().mapToLong(n -> n).sum());
        for (Map.Entry<Integer, Long> entry : depths.entrySet()) {
            left -= entry.getValue();
            if (left <= 0) {
                return entry.getKey();
            }
        }
        return 0;
    }
}
