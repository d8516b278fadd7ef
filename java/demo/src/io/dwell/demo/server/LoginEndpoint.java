package io.dwell.demo.server;

import io.dwell.demo.account.Sessions;
import java.nio.charset.StandardCharsets;

/** {@code POST /login}: opens a session that is never closed. */
final class LoginEndpoint implements Endpoint {
    private final Sessions sessions = new Sessions();

    @Override
    public String path() {
        return "/login";
    }

    @Override
    public byte[] respond(byte[] body) {
        return Long.toString(sessions.open()).getBytes(StandardCharsets.ISO_8859_1);
    }
}
