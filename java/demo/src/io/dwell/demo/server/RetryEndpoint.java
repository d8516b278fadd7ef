package io.dwell.demo.server;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;

/** {@code GET /retry}: repeats a failed operation after a pause of fixed length. */
final class RetryEndpoint implements Endpoint {
    private static final int PAUSE_MS = 4;
    private static final int TRIES_NEEDED = 2;

    private final AtomicInteger tries = new AtomicInteger();

    @Override
    public String path() {
        return "/retry";
    }

    @Override
    public byte[] respond(byte[] body) throws InterruptedException {
        int tried = 1;
        while (tries.incrementAndGet() % TRIES_NEEDED != 0) {
            Thread.sleep(PAUSE_MS);
            tried++;
        }
        return Integer.toString(tried).getBytes(StandardCharsets.ISO_8859_1);
    }
}
