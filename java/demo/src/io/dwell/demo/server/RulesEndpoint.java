package io.dwell.demo.server;

import io.dwell.demo.plugin.Plugins;
import io.dwell.demo.plugin.Rules;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** {@code GET /rules}: loads its rules again, and waits until they are compiled. */
final class RulesEndpoint implements Endpoint {
    @Override
    public String path() {
        return "/rules";
    }

    @Override
    public byte[] respond(byte[] body) throws IOException {
        int sum = Plugins.call(Plugins.load(Rules.class), "sum", 1);
        return Integer.toString(sum).getBytes(StandardCharsets.ISO_8859_1);
    }
}
