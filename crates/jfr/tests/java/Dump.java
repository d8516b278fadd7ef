import java.nio.file.Path;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordedStackTrace;
import jdk.jfr.consumer.RecordedThread;
import jdk.jfr.consumer.RecordingFile;

/** Reads a recording with the JDK's own API: a line per sample, a line per other event, and counts. */
public class Dump {
    public static void main(String[] args) throws Exception {
        TreeMap<String, Integer> counts = new TreeMap<>();
        Map<Long, RecordedEvent> details = new HashMap<>();
        try (RecordingFile file = new RecordingFile(Path.of(args[0]))) {
            while (file.hasMoreEvents()) {
                RecordedEvent event = file.readEvent();
                String name = event.getEventType().getName();
                counts.merge(name, 1, Integer::sum);
                if (name.equals("dwell.SampleDetail")) {
                    details.put(thread(event), event);
                }
                if (name.equals("jdk.ExecutionSample") && args.length == 1) {
                    System.out.println("sample " + sample(event, details.get(thread(event))));
                }
            }
        }
        counts.forEach((name, count) -> System.out.println("count " + name + " " + count));
    }

    private static long thread(RecordedEvent event) {
        RecordedThread thread = event.getThread("sampledThread");
        return thread == null ? 0 : thread.getId();
    }

    private static String sample(RecordedEvent event, RecordedEvent detail) {
        RecordedThread thread = event.getThread("sampledThread");
        StringBuilder line = new StringBuilder();
        Instant time = event.getStartTime();
        line.append(time.getEpochSecond() * 1_000_000_000 + time.getNano()).append('|');
        // The JDK leaves out what it knows of some threads that end.
        if (thread == null) {
            line.append("-|-|-");
        } else {
            line.append(thread.getOSThreadId()).append('|').append(thread.getJavaThreadId());
            line.append('|').append(thread.getJavaName());
        }
        line.append('|').append(event.getString("state")).append('|');
        line.append(detail == null ? "-" : weight(detail)).append('|');
        line.append(detail == null ? "-" : detail.getString("failure"));
        RecordedStackTrace stack = event.getStackTrace();
        if (stack == null) {
            return line.append("|no stack").toString();
        }
        line.append('|').append(stack.isTruncated());
        List<RecordedFrame> frames = stack.getFrames();
        for (RecordedFrame frame : frames) {
            line.append('|').append(frame.getMethod().getType().getName());
            line.append('.').append(frame.getMethod().getName());
            line.append(frame.getMethod().getDescriptor());
            line.append(':').append(frame.getLineNumber()).append(':').append(frame.getBytecodeIndex());
            line.append(':').append(frame.getType());
        }
        return line.toString();
    }

    private static String weight(RecordedEvent event) {
        return Long.toString(event.getDuration("weight").toNanos());
    }
}
