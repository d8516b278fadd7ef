package io.dwell.demo.math;

/** A point of the complex plane. Immutable; the compiler is expected to keep it in registers. */
public final class Complex {
    final double re;
    final double im;

    public Complex(double re, double im) {
        this.re = re;
        this.im = im;
    }

    Complex squared() {
        return new Complex(re * re - im * im, 2 * re * im);
    }

    Complex plus(Complex other) {
        return new Complex(re + other.re, im + other.im);
    }

    double normSquared() {
        return re * re + im * im;
    }
}
