package io.dwell.chaos.template;

import java.util.function.LongUnaryOperator;

/** A hot loop whose compiled code becomes invalid when a second subclass is loaded. */
public final class Hot implements LongUnaryOperator {
    private volatile Shape shape = new Shape.First();

    /**
     * Loads the second subclass, by name so that verifying this class does not load it, and uses
     * it.
     */
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

    /** Each call applies the present shape 50 times. */
    @Override
    public long applyAsLong(long x) {
        Shape now = shape;
        for (int i = 0; i < 50; i++) {
            x = now.apply(x);
        }
        return x;
    }
}
