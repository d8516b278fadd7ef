package io.dwell.verify.jmc;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import jdk.jfr.ValueDescriptor;
import jdk.jfr.consumer.RecordedClass;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordedMethod;
import jdk.jfr.consumer.RecordedStackTrace;
import jdk.jfr.consumer.RecordedThread;
import jdk.jfr.consumer.RecordingFile;

/** The events of a recording as the JDK's own reader sees them. */
final class JdkEvents {
    private static final long NS_PER_S = 1_000_000_000;
    /** Offset of the size in the header of a chunk. */
    private static final int CHUNK_SIZE_AT = 8;

    private JdkEvents() {}

    /**
     * Each chunk is read as a file of its own. If the metadata stays the same, this reader keeps
     * the clock of the first chunk, and its times are wrong by the difference of the clocks.
     */
    static List<String> lines(Path file) throws IOException {
        List<String> lines = new ArrayList<>();
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file));
        Path chunk = Files.createTempFile("dwell-chunk", ".jfr");
        try {
            for (int start = 0; start < bytes.limit(); ) {
                int size = (int) bytes.getLong(start + CHUNK_SIZE_AT);
                Files.write(chunk, Arrays.copyOfRange(bytes.array(), start, start + size));
                addLines(chunk, lines);
                start += size;
            }
        } finally {
            Files.delete(chunk);
        }
        return lines;
    }

    private static void addLines(Path file, List<String> lines) throws IOException {
        try (RecordingFile recording = new RecordingFile(file)) {
            while (recording.hasMoreEvents()) {
                RecordedEvent event = recording.readEvent();
                Line line = new Line(event.getEventType().getName());
                for (ValueDescriptor field : event.getFields()) {
                    line.add(field.getName(), value(event, field));
                }
                lines.add(line.toString());
            }
        }
    }

    private static String value(RecordedEvent event, ValueDescriptor field) {
        String name = field.getName();
        String content = field.getContentType() == null ? "" : field.getContentType();
        switch (content) {
            case "jdk.jfr.Timestamp":
                Instant time = event.getInstant(name);
                return Long.toString(time.getEpochSecond() * NS_PER_S + time.getNano());
            case "jdk.jfr.Timespan":
                return Long.toString(event.getDuration(name).toNanos());
            default:
                return text(event.getValue(name));
        }
    }

    private static String text(Object value) {
        if (value instanceof String) {
            return Line.quoted((String) value);
        } else if (value instanceof RecordedThread) {
            return thread((RecordedThread) value);
        } else if (value instanceof RecordedStackTrace) {
            return stack((RecordedStackTrace) value);
        } else if (value instanceof RecordedClass) {
            return Line.type(((RecordedClass) value).getName());
        }
        return String.valueOf(value);
    }

    private static String thread(RecordedThread thread) {
        String name = thread.getJavaName() == null ? thread.getOSName() : thread.getJavaName();
        String group = thread.getThreadGroup() == null ? null : thread.getThreadGroup().getName();
        // Newer JDKs use -1 for "none".
        return Line.thread(name, Math.max(0, thread.getJavaThreadId()), group);
    }

    private static String stack(RecordedStackTrace stack) {
        StringBuilder frames = new StringBuilder();
        for (RecordedFrame frame : stack.getFrames()) {
            RecordedMethod method = frame.getMethod();
            frames.append(Line.frame(method.getType().getName(), method.getName(),
                    method.getDescriptor(), method.getModifiers(), method.isHidden(),
                    frame.getLineNumber(), frame.getBytecodeIndex(), frame.getType()));
        }
        return Line.stack(stack.isTruncated(), frames);
    }
}
