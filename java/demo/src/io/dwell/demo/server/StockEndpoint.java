package io.dwell.demo.server;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/** {@code GET /stock}: queries a slow store while it holds the lock that all others need. */
final class StockEndpoint implements Endpoint {
    private static final long STORE_NANOS = TimeUnit.MILLISECONDS.toNanos(2);

    private final ReentrantLock lock = new ReentrantLock();
    private int articles = 1000;

    @Override
    public String path() {
        return "/stock";
    }

    @Override
    public byte[] respond(byte[] body) {
        lock.lock();
        try {
            LockSupport.parkNanos(STORE_NANOS);
            articles = articles == 0 ? 1000 : articles - 1;
            return Integer.toString(articles).getBytes(StandardCharsets.ISO_8859_1);
        } finally {
            lock.unlock();
        }
    }
}
