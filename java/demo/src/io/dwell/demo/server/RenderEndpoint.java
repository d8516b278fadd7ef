package io.dwell.demo.server;

import io.dwell.api.Scope;
import io.dwell.demo.math.Complex;
import io.dwell.demo.math.Mandelbrot;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;

/** {@code GET /render}: submits the work to a pool of one thread, and waits for it. */
final class RenderEndpoint implements Endpoint {
    private static final int PIXELS = 40;
    private static final Complex CORNER = new Complex(-1.25, 0.02);
    private static final double WIDTH = 0.05;

    private final ExecutorService renderer;

    /** The executor propagates the request's context. */
    RenderEndpoint(ExecutorService renderer) {
        this.renderer = renderer;
    }

    @Override
    public String path() {
        return "/render";
    }

    @Override
    public byte[] respond(byte[] body) throws InterruptedException {
        long request = Tracing.current();
        try {
            return renderer.submit(() -> render(request)).get();
        } catch (ExecutionException e) {
            throw new IllegalStateException(e.getCause());
        }
    }

    /** A span of its own, on the renderer's thread. */
    private static byte[] render(long request) {
        try (Scope span = Tracing.inner(request)) {
            return Mandelbrot.renderTile(CORNER, WIDTH, PIXELS);
        }
    }
}
