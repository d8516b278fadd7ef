package io.dwell.demo.load;

import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Random;

/** The requests, their frequencies and their bodies. */
enum RequestMix {
    JSON("/json", 30, order(200)),
    COMPRESS("/compress", 8, null),
    HOT("/hot", 12, null),
    RECURSE("/recurse", 30, nestedExpression(265, 12_000)),
    LOCK("/lock", 40, new byte[0]),
    ALLOC("/alloc", 20, null),
    RETRY("/retry", 6, null),
    STOCK("/stock", 6, null),
    RENDER("/render", 8, null),
    QUOTE("/quote", 6, null),
    AUDIT("/audit", 6, new byte[0]),
    SHIP("/ship", 6, new byte[0]),
    HEALTH("/health", 5, null),
    TARIFF("/tariff", 5, null),
    RULES("/rules", 3, null),
    ARCHIVE("/archive", 4, null),
    LOGIN("/login", 12, new byte[0]);

    private static final int WEIGHTS_TOTAL = weightsTotal();

    final String path;
    /** The body to post, or null for a GET request. */
    final byte[] body;
    private final int weight;

    RequestMix(String path, int weight, byte[] body) {
        this.path = path;
        this.weight = weight;
        this.body = body;
    }

    static RequestMix pick(Random random) {
        int ticket = random.nextInt(WEIGHTS_TOTAL);
        for (RequestMix request : values()) {
            ticket -= request.weight;
            if (ticket < 0) {
                return request;
            }
        }
        throw new AssertionError("the ticket is smaller than the sum of all weights");
    }

    private static int weightsTotal() {
        int total = 0;
        for (RequestMix request : values()) {
            total += request.weight;
        }
        return total;
    }

    private static byte[] order(int lines) {
        StringBuilder json = new StringBuilder("{\"customer\": \"J\\u00fcrgen\", \"lines\": [");
        for (int i = 0; i < lines; i++) {
            json.append(String.format(Locale.ROOT,
                    "%s{\"article\": \"part-%d\", \"quantity\": %d, \"price\": %.2f, \"gift\": %b}",
                    i == 0 ? "" : ", ", 1000 + i, 1 + i % 7, 0.99 + i * 1.5, i % 3 == 0));
        }
        return json.append("]}").toString().getBytes(StandardCharsets.UTF_8);
    }

    /** Many terms inside many parentheses: nearly all work is at the deepest level. */
    private static byte[] nestedExpression(int levels, int terms) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < levels; i++) {
            text.append("1+(");
        }
        for (int i = 0; i < terms; i++) {
            text.append(i + 1).append("*3-");
        }
        text.append('7');
        for (int i = 0; i < levels; i++) {
            text.append(")/2");
        }
        return text.toString().getBytes(StandardCharsets.ISO_8859_1);
    }
}
