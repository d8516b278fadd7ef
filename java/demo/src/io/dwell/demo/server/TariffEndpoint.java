package io.dwell.demo.server;

import io.dwell.demo.plugin.Plugins;
import io.dwell.demo.plugin.Tariff;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;

/**
 * {@code GET /tariff}: loads its rates again. While one thread initialises the class, others wait.
 */
final class TariffEndpoint implements Endpoint {
    private final ExecutorService helper;

    /** The executor propagates the request's context. */
    TariffEndpoint(ExecutorService helper) {
        this.helper = helper;
    }

    @Override
    public String path() {
        return "/tariff";
    }

    @Override
    public byte[] respond(byte[] body) throws IOException, InterruptedException {
        Class<?> tariff = Plugins.load(Tariff.class);
        Future<Integer> early = helper.submit(() -> Plugins.call(tariff, "rate", 0));
        int late = Plugins.call(tariff, "rate", 1);
        try {
            int sum = early.get() + late;
            return Integer.toString(sum).getBytes(StandardCharsets.ISO_8859_1);
        } catch (ExecutionException e) {
            throw new IOException(e.getCause());
        }
    }
}
