package io.dwell.demo.server;

import io.dwell.demo.json.JsonParser;
import io.dwell.demo.json.JsonRenderer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/** {@code POST /json}: parses an order, prices it and renders it again. */
final class JsonEndpoint implements Endpoint {
    @Override
    public String path() {
        return "/json";
    }

    @Override
    public byte[] respond(byte[] body) {
        Object order = JsonParser.parse(new String(body, StandardCharsets.UTF_8));
        priceOrder(order);
        return JsonRenderer.render(order).getBytes(StandardCharsets.UTF_8);
    }

    @SuppressWarnings("unchecked")
    private static void priceOrder(Object order) {
        if (!(order instanceof Map) || !(((Map<?, ?>) order).get("lines") instanceof List)) {
            throw new IllegalArgumentException("an order is an object with an array 'lines'");
        }
        double total = 0;
        for (Object line : (List<?>) ((Map<?, ?>) order).get("lines")) {
            total += linePrice(line);
        }
        ((Map<String, Object>) order).put("total", total);
    }

    private static double linePrice(Object line) {
        if (line instanceof Map) {
            Object quantity = ((Map<?, ?>) line).get("quantity");
            Object price = ((Map<?, ?>) line).get("price");
            if (quantity instanceof Double && price instanceof Double) {
                return (Double) quantity * (Double) price;
            }
        }
        throw new IllegalArgumentException("an order line needs the numbers quantity and price");
    }
}
