package io.dwell.demo.server;

import io.dwell.demo.math.Complex;
import io.dwell.demo.math.Mandelbrot;

/** {@code GET /hot}: a tile of the Mandelbrot set, a tight loop that compiles to one method. */
final class HotEndpoint implements Endpoint {
    private static final int TILE_PIXELS = 56;
    private static final Complex TILE_CORNER = new Complex(-0.75, 0.10);
    private static final double TILE_WIDTH = 0.02;

    @Override
    public String path() {
        return "/hot";
    }

    @Override
    public byte[] respond(byte[] body) {
        return Mandelbrot.renderTile(TILE_CORNER, TILE_WIDTH, TILE_PIXELS);
    }
}
