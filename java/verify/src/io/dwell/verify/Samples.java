package io.dwell.verify;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.TreeMap;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordedStackTrace;
import jdk.jfr.consumer.RecordedThread;

/** Sums up samples by root, leaf and thread, and by a chosen frame. */
final class Samples {
    private static final String NOTHING = "(none)";

    private final CheckOptions options;
    private final Tally total = new Tally("total");
    private final Tally withoutStack = new Tally("without_stack");
    private final Tally truncated = new Tally("truncated");
    private final Table roots = new Table("root");
    private final Table leaves = new Table("leaf");
    private final Table threads = new Table("thread");
    private final Table under = new Table("under");
    /** Number of samples by number of frames. */
    private final TreeMap<Integer, Long> samplesByDepth = new TreeMap<>();
    private boolean weighted;
    /** The weight of a thread's next samples, by thread. */
    private final HashMap<Long, Long> weights = new HashMap<>();
    /**
     * For the variance of the sums: each sample of an event is an independent choice, and all have
     * the same weight.
     */
    private double squares;

    Samples(CheckOptions options) {
        this.options = options;
    }

    /** Stores the weight of a thread's next execution samples. */
    void setWeight(RecordedEvent detail) {
        weights.put(threadId(detail), detail.getLong("weight"));
    }

    private static long threadId(RecordedEvent event) {
        RecordedThread thread = event.getThread("sampledThread");
        return thread == null ? 0 : thread.getId();
    }

    void add(RecordedEvent event) {
        String thread = threadName(event);
        if (!options.wantsThread(thread)) {
            return;
        }
        long weight = weightOf(event);
        total.add(weight);
        squares += (double) weight * weight / Math.max(1, countOf(event));
        threads.add(thread, weight);
        RecordedStackTrace stack = event.getStackTrace();
        if (stack == null || stack.getFrames().isEmpty()) {
            withoutStack.add(weight);
            return;
        }
        if (stack.isTruncated()) {
            truncated.add(weight);
        }
        addFrames(stack.getFrames(), weight);
    }

    /**
     * The weight of a sample; async-profiler's samples of waiting threads have a count of their
     * own.
     */
    private long weightOf(RecordedEvent event) {
        for (String field : new String[] {"weight", "samples"}) {
            if (event.hasField(field)) {
                weighted = true;
                return event.getLong(field);
            }
        }
        if (event.getEventType().getName().equals("jdk.ExecutionSample")) {
            Long weight = weights.get(threadId(event));
            weighted |= weight != null;
            return weight == null ? 0 : weight;
        }
        return 0;
    }

    private static long countOf(RecordedEvent event) {
        for (String field : new String[] {"count", "samples"}) {
            if (event.hasField(field)) {
                return event.getLong(field);
            }
        }
        return 1;
    }

    private void addFrames(List<RecordedFrame> frames, long weight) {
        samplesByDepth.merge(frames.size(), 1L, Long::sum);
        leaves.add(frameName(frames.get(0)), weight);
        roots.add(frameName(frames.get(frames.size() - 1)), weight);
        if (options.under() == null) {
            return;
        }
        for (int i = frames.size() - 1; i >= 0; i--) {
            String name = frameName(frames.get(i));
            if (options.under().matcher(name).find()) {
                under.add(name, weight);
                return;
            }
        }
        under.add(NOTHING, weight);
    }

    private static String threadName(RecordedEvent event) {
        RecordedThread thread = event.hasField("sampledThread")
                ? event.getThread("sampledThread") : event.getThread();
        if (thread == null) {
            return NOTHING;
        }
        String name = thread.getJavaName() != null ? thread.getJavaName() : thread.getOSName();
        return name == null ? NOTHING : name;
    }

    private static String frameName(RecordedFrame frame) {
        if (frame.getMethod() == null) {
            return NOTHING;
        }
        String type = frame.getMethod().getType() == null
                ? "" : frame.getMethod().getType().getName();
        String method = frame.getMethod().getName();
        return type == null || type.isEmpty() ? method : type + "." + method;
    }

    void print(PrintStream out) {
        out.println("weighted " + weighted);
        out.println("squares " + squares);
        total.print(out);
        withoutStack.print(out);
        truncated.print(out);
        printDepths(out);
        threads.print(out, options.top());
        roots.print(out, options.top());
        leaves.print(out, options.top());
        under.print(out, options.top());
    }

    private void printDepths(PrintStream out) {
        if (samplesByDepth.isEmpty()) {
            return;
        }
        long left = (total.samples - withoutStack.samples + 1) / 2;
        int median = samplesByDepth.firstKey();
        for (int depth : samplesByDepth.keySet()) {
            median = depth;
            left -= samplesByDepth.get(depth);
            if (left <= 0) {
                break;
            }
        }
        out.println("depth_min_median_max " + samplesByDepth.firstKey() + " " + median + " "
                + samplesByDepth.lastKey());
    }

    /** Weight and number of samples. */
    private static final class Tally {
        final String name;
        long weight;
        long samples;

        Tally(String name) {
            this.name = name;
        }

        void add(long sampleWeight) {
            weight += sampleWeight;
            samples++;
        }

        void print(PrintStream out) {
            out.println(name + " " + weight + " " + samples);
        }
    }

    /** Tallies by name; prints the heaviest first, each as kind, name, weight, samples. */
    private static final class Table {
        private final String kind;
        private final TreeMap<String, Tally> tallies = new TreeMap<>();

        Table(String kind) {
            this.kind = kind;
        }

        void add(String name, long weight) {
            tallies.computeIfAbsent(name, Tally::new).add(weight);
        }

        void print(PrintStream out, int top) {
            List<Tally> sorted = new ArrayList<>(tallies.values());
            Collections.sort(sorted, (a, b) -> a.weight != b.weight
                    ? Long.compare(b.weight, a.weight) : Long.compare(b.samples, a.samples));
            int lines = top == 0 ? sorted.size() : Math.min(top, sorted.size());
            for (Tally tally : sorted.subList(0, lines)) {
                out.println(kind + " " + escaped(tally.name) + " " + tally.weight + " "
                        + tally.samples);
            }
        }
    }

    /** Without spaces, control characters and non-ASCII, so that the text stays on one line. */
    private static String escaped(String name) {
        if (name.isEmpty()) {
            return "(empty)";
        }
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            boolean plain = c < 128 && (Character.isLetterOrDigit(c) || "_.$-<>".indexOf(c) >= 0);
            text.append(plain || name.equals(NOTHING)
                    ? String.valueOf(c) : String.format("\\u%04x", (int) c));
        }
        return text.toString();
    }
}
