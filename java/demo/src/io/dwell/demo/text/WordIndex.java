package io.dwell.demo.text;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/** The positions of each word of a text. */
public final class WordIndex {
    private final Map<String, List<Integer>> positionsByWord = new HashMap<>();

    private WordIndex() {}

    public static WordIndex of(String text) {
        WordIndex index = new WordIndex();
        int position = 0;
        for (String word : text.split("\\s+")) {
            index.add(word.toUpperCase(Locale.ROOT), position++);
        }
        return index;
    }

    private void add(String word, int position) {
        positionsByWord.computeIfAbsent(word, w -> new ArrayList<>()).add(position);
    }

    /** The words that occur most often, most frequent first, each as {@code word count}. */
    public List<String> mostFrequent(int count) {
        return positionsByWord.entrySet().stream()
                .sorted(Comparator
                        .<Map.Entry<String, List<Integer>>>comparingInt(e -> -e.getValue().size())
                        .thenComparing(Map.Entry::getKey))
                .limit(count)
                .map(e -> e.getKey() + " " + e.getValue().size())
                .collect(Collectors.toList());
    }
}
