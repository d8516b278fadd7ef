import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordedStackTrace;
import jdk.jfr.consumer.RecordedThread;
import jdk.jfr.consumer.RecordingFile;

/**
 * Sums of a recording's wall-clock samples, in one pass: {@code WallSeen FILE THREADS FRAME OTHERS
 * HOLE_MS EVENT...}. Prints, for threads whose names match THREADS, {@code seen THREAD NAME WEIGHT}
 * for group 1 of the outermost frame that matches FRAME; {@code hole THREAD NANOS LIFE} with the
 * time in gaps between events that are longer than HOLE_MS; and {@code others N}: how many threads
 * whose names match OTHERS have an event.
 */
public final class WallSeen {
    private WallSeen() {}

    public static void main(String[] args) throws Exception {
        Pattern threads = Pattern.compile(args[1]);
        Pattern frame = Pattern.compile(args[2]);
        Pattern others = Pattern.compile(args[3]);
        long holeNanos = 1_000_000L * Long.parseLong(args[4]);
        List<String> wanted = List.of(args).subList(5, args.length);
        Map<Long, Long> weights = new HashMap<>();
        TreeMap<String, TreeMap<String, Long>> seen = new TreeMap<>();
        TreeMap<String, List<long[]>> spans = new TreeMap<>();
        TreeSet<String> found = new TreeSet<>();
        try (RecordingFile recording = new RecordingFile(Path.of(args[0]))) {
            while (recording.hasMoreEvents()) {
                RecordedEvent event = recording.readEvent();
                String type = event.getEventType().getName();
                if (type.equals("dwell.SampleDetail")) {
                    weights.put(event.getThread("sampledThread").getId(), event.getLong("weight"));
                }
                if (!wanted.contains(type)) {
                    continue;
                }
                RecordedThread thread = event.hasField("sampledThread")
                    ? event.getThread("sampledThread") : event.getThread();
                String name = thread == null ? null : thread.getJavaName();
                if (name == null) {
                    continue;
                }
                if (others.matcher(name).matches()) {
                    found.add(name);
                }
                if (!threads.matcher(name).matches()) {
                    continue;
                }
                seen.computeIfAbsent(name, key -> new TreeMap<>())
                    .merge(kind(event.getStackTrace(), frame), weight(event, thread, weights),
                        Long::sum);
                long start = nanos(event.getStartTime());
                long[] span = {start, start + Math.max(0, event.getDuration().toNanos())};
                spans.computeIfAbsent(name, key -> new ArrayList<>()).add(span);
            }
        }
        seen.forEach((name, kinds) -> kinds.forEach((kind, weight) ->
            System.out.println("seen " + name + " " + kind + " " + weight)));
        spans.forEach((name, list) -> printHoles(name, list, holeNanos));
        System.out.println("others " + found.size());
    }

    private static long nanos(java.time.Instant time) {
        return time.getEpochSecond() * 1_000_000_000L + time.getNano();
    }

    private static long weight(RecordedEvent event, RecordedThread thread,
            Map<Long, Long> weights) {
        for (String field : new String[] {"weight", "samples"}) {
            if (event.hasField(field)) {
                return event.getLong(field);
            }
        }
        return weights.getOrDefault(thread.getId(), 1L);
    }

    private static String kind(RecordedStackTrace stack, Pattern frame) {
        if (stack == null) {
            return "other";
        }
        List<RecordedFrame> frames = stack.getFrames();
        for (int i = frames.size() - 1; i >= 0; i--) {
            if (frames.get(i).getMethod() == null) {
                continue;
            }
            Matcher matcher = frame.matcher(frames.get(i).getMethod().getType().getName() + "."
                + frames.get(i).getMethod().getName());
            if (matcher.find()) {
                return matcher.group(1);
            }
        }
        return "other";
    }

    private static void printHoles(String name, List<long[]> spans, long holeNanos) {
        spans.sort((a, b) -> Long.compare(a[0], b[0]));
        long first = spans.get(0)[0];
        long until = first;
        long holes = 0;
        for (long[] span : spans) {
            if (span[0] - until > holeNanos) {
                holes += span[0] - until;
            }
            until = Math.max(until, span[1]);
        }
        System.out.println("hole " + name + " " + holes + " " + (until - first));
    }
}
