package io.dwell.demo.text;

import java.util.Random;

/** Text made of a small vocabulary: the same seed gives the same text. */
public final class SampleText {
    private static final String[] VOCABULARY = {
        "agent", "buffer", "cache", "delta", "engine", "frame", "garbage", "heap", "index",
        "journal", "kernel", "latency", "method", "native", "object", "packet", "queue",
        "register", "stack", "thread", "unwind", "vector", "worker", "yield", "zone",
    };
    private static final int WORDS_PER_LINE = 14;

    private final Random random;

    public SampleText(long seed) {
        this.random = new Random(seed);
    }

    public String lines(int count) {
        StringBuilder text = new StringBuilder();
        for (int line = 0; line < count; line++) {
            for (int word = 0; word < WORDS_PER_LINE; word++) {
                text.append(VOCABULARY[random.nextInt(VOCABULARY.length)]);
                text.append(random.nextInt(40)).append(' ');
            }
            text.append('\n');
        }
        return text.toString();
    }
}
