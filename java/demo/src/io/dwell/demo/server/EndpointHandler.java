package io.dwell.demo.server;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import io.dwell.api.Scope;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;

/** Connects an {@link Endpoint} to the server: reads the body, writes the answer or the error. */
final class EndpointHandler implements HttpHandler {
    private static final int BODY_BYTES_MAX = 1 << 20;

    private final Endpoint endpoint;

    EndpointHandler(Endpoint endpoint) {
        this.endpoint = endpoint;
    }

    @Override
    public void handle(HttpExchange exchange) throws IOException {
        String name = exchange.getRequestMethod() + " " + endpoint.path();
        try (Scope scope = Tracing.request(name)) {
            byte[] body = readBody(exchange.getRequestBody());
            try {
                send(exchange, 200, endpoint.respond(body));
            } catch (IllegalArgumentException e) {
                send(exchange, 400, (e.getMessage() + "\n").getBytes(StandardCharsets.UTF_8));
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                send(exchange, 503, "the service is ending\n".getBytes(StandardCharsets.UTF_8));
            }
        } finally {
            exchange.close();
        }
    }

    private static byte[] readBody(InputStream in) throws IOException {
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        byte[] buffer = new byte[4096];
        for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
            body.write(buffer, 0, n);
            if (body.size() > BODY_BYTES_MAX) {
                throw new IOException("request body larger than " + BODY_BYTES_MAX + " bytes");
            }
        }
        return body.toByteArray();
    }

    private static void send(HttpExchange exchange, int status, byte[] answer)
            throws IOException {
        exchange.sendResponseHeaders(status, answer.length == 0 ? -1 : answer.length);
        try (OutputStream out = exchange.getResponseBody()) {
            out.write(answer);
        }
    }
}
