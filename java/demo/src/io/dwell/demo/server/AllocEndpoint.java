package io.dwell.demo.server;

import io.dwell.demo.text.SampleText;
import io.dwell.demo.text.WordIndex;
import java.nio.charset.StandardCharsets;

/** {@code GET /alloc}: counts the words of a document with many strings and maps. */
final class AllocEndpoint implements Endpoint {
    private static final int DOCUMENT_LINES = 250;
    private static final int TOP_WORDS = 10;

    private final String document = new SampleText(11).lines(DOCUMENT_LINES);

    @Override
    public String path() {
        return "/alloc";
    }

    @Override
    public byte[] respond(byte[] body) {
        WordIndex index = WordIndex.of(document);
        return String.join("\n", index.mostFrequent(TOP_WORDS)).getBytes(StandardCharsets.UTF_8);
    }
}
