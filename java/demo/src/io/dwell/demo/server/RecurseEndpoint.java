package io.dwell.demo.server;

import io.dwell.demo.math.ExpressionParser;
import java.nio.charset.StandardCharsets;

/** {@code POST /recurse}: evaluates an arithmetic expression, however deeply it is nested. */
final class RecurseEndpoint implements Endpoint {
    @Override
    public String path() {
        return "/recurse";
    }

    @Override
    public byte[] respond(byte[] body) {
        double value =
                ExpressionParser.evaluate(new String(body, StandardCharsets.ISO_8859_1));
        return Double.toString(value).getBytes(StandardCharsets.ISO_8859_1);
    }
}
