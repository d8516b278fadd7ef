package io.dwell.demo.load;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.util.EnumMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;

/** One client: sends a request, waits for the answer, pauses as the governor requires, repeats. */
final class LoadClient implements Runnable {
    private static final int TIMEOUT_MS = 10_000;

    private final Random random;
    private final LoadGovernor governor;
    private final Map<RequestMix, EndpointStats> stats;
    private final Map<RequestMix, URL> urls = new EnumMap<>(RequestMix.class);
    private final byte[] answerBuffer = new byte[16 * 1024];

    LoadClient(int port, long seed, LoadGovernor governor, Map<RequestMix, EndpointStats> stats)
            throws IOException {
        this.random = new Random(seed);
        this.governor = governor;
        this.stats = stats;
        for (RequestMix request : RequestMix.values()) {
            urls.put(request, new URL("http", "127.0.0.1", port, request.path));
        }
    }

    @Override
    public void run() {
        while (!governor.stopped()) {
            RequestMix request = RequestMix.pick(random);
            long start = System.nanoTime();
            boolean success = send(request);
            stats.get(request).add(success, System.nanoTime() - start);
            LockSupport.parkNanos(governor.pauseNanos());
        }
    }

    private boolean send(RequestMix request) {
        try {
            HttpURLConnection connection =
                    (HttpURLConnection) urls.get(request).openConnection();
            connection.setConnectTimeout(TIMEOUT_MS);
            connection.setReadTimeout(TIMEOUT_MS);
            if (request.body != null) {
                post(connection, request.body);
            }
            drain(connection.getInputStream());
            return connection.getResponseCode() == HttpURLConnection.HTTP_OK;
        } catch (IOException e) {
            return false;
        }
    }

    private static void post(HttpURLConnection connection, byte[] body) throws IOException {
        connection.setDoOutput(true);
        connection.setFixedLengthStreamingMode(body.length);
        try (OutputStream out = connection.getOutputStream()) {
            out.write(body);
        }
    }

    /** A connection is kept alive only when its answer has been read to the end. */
    private void drain(InputStream answer) throws IOException {
        try (InputStream in = answer) {
            while (in.read(answerBuffer) >= 0) {
                continue;
            }
        }
    }
}
