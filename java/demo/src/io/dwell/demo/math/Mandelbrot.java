package io.dwell.demo.math;

/** Computes how fast points escape. All calls below {@link #renderTile} are inlined when hot. */
public final class Mandelbrot {
    private static final int ITERATIONS_MAX = 250;
    private static final double ESCAPE_NORM_SQUARED = 4;

    private Mandelbrot() {}

    /** One byte per pixel, row by row. */
    public static byte[] renderTile(Complex corner, double width, int pixels) {
        byte[] tile = new byte[pixels * pixels];
        double step = width / pixels;
        for (int y = 0; y < pixels; y++) {
            for (int x = 0; x < pixels; x++) {
                Complex point = corner.plus(new Complex(x * step, y * step));
                tile[y * pixels + x] = (byte) escapeTime(point);
            }
        }
        return tile;
    }

    private static int escapeTime(Complex point) {
        Complex z = point;
        int iterations = 0;
        while (iterations < ITERATIONS_MAX && z.normSquared() < ESCAPE_NORM_SQUARED) {
            z = z.squared().plus(point);
            iterations++;
        }
        return iterations;
    }
}
