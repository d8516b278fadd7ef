package io.dwell.demo.server;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;

/** {@code GET /quote}: asks another service for a price, and waits for its answer. */
final class QuoteEndpoint implements Endpoint {
    private static final int TIMEOUT_MS = 2_000;

    private final Backend backend;

    QuoteEndpoint(Backend backend) {
        this.backend = backend;
    }

    @Override
    public String path() {
        return "/quote";
    }

    @Override
    public byte[] respond(byte[] body) throws IOException {
        InetSocketAddress address = backend.address();
        try (Socket socket = new Socket()) {
            socket.connect(address, TIMEOUT_MS);
            socket.setSoTimeout(TIMEOUT_MS);
            byte[] answer = new byte[Backend.ANSWER_BYTES];
            int read = socket.getInputStream().read(answer);
            if (read < answer.length) {
                throw new IOException("the backend's answer has " + read + " bytes");
            }
            return answer;
        }
    }
}
