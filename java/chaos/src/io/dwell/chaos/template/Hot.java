package io.dwell.chaos.template;

import java.util.function.LongUnaryOperator;

/** A hot loop whose compiled code is wrong as soon as a second subclass is loaded. */
public final class Hot implements LongUnaryOperator {
    private volatile Shape shape = new Shape.First();

    /** Loads the second subclass, by name so that verifying this class does not, and uses it. */
    public static Runnable change(LongUnaryOperator hot) {
        return () -> {
            try {
                ((Hot) hot).shape = (Shape) Class
                        .forName("io.dwell.chaos.template.Shape$Second", true,
                                Hot.class.getClassLoader())
                        .getDeclaredConstructor().newInstance();
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        };
    }

    /** Each call is the same 50 applications of the shape of that moment. */
    @Override
    public long applyAsLong(long x) {
        Shape now = shape;
        for (int i = 0; i < 50; i++) {
            x = now.apply(x);
        }
        return x;
    }
}
