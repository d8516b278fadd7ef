package io.dwell.chaos;

import java.lang.invoke.MethodHandles;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Random;
import java.util.function.LongUnaryOperator;

/** Classes that are loaded, invalidate the code of others, and are unloaded. */
final class Classes {
    private Classes() {}

    private static LongUnaryOperator template(ChurnLoader loader, String name) throws Exception {
        return (LongUnaryOperator) loader.loadClass(ChurnLoader.TEMPLATES + name)
                .getDeclaredConstructor().newInstance();
    }

    /** Class loaders with lambdas in their classes, unloaded by collections now and then. */
    static final class Loaders extends Antagonist {
        Loaders() {
            super("loaders");
        }

        @Override
        void round(Random random) throws Exception {
            for (int i = 0; i < 3; i++) {
                long x = random.nextLong();
                same(x + 1000, template(new ChurnLoader(), "Task").applyAsLong(x));
            }
            if (random.nextInt(20) == 0) {
                System.gc();
            }
        }
    }

    /** Hidden classes, or the anonymous ones that JDKs before 15 had. */
    static final class HiddenClasses extends Antagonist {
        private Method define;
        private Object options;
        private Object unsafe;

        HiddenClasses() {
            super("hidden");
        }

        @Override
        void begin() throws Exception {
            try {
                Class<?> option =
                        Class.forName("java.lang.invoke.MethodHandles$Lookup$ClassOption");
                options = Array.newInstance(option, 0);
                define = MethodHandles.Lookup.class.getMethod("defineHiddenClass", byte[].class,
                        boolean.class, options.getClass());
            } catch (ClassNotFoundException e) {
                Class<?> type = Class.forName("sun.misc.Unsafe");
                Field field = type.getDeclaredField("theUnsafe");
                field.setAccessible(true);
                unsafe = field.get(null);
                define = type.getMethod("defineAnonymousClass", Class.class, byte[].class,
                        Object[].class);
            }
        }

        @Override
        void round(Random random) throws Exception {
            byte[] bytes = ChurnLoader.bytes(Hidden.class.getName());
            for (int i = 0; i < 5; i++) {
                Class<?> type = unsafe == null
                        ? ((MethodHandles.Lookup) define.invoke(MethodHandles.lookup(), bytes, true,
                                options)).lookupClass()
                        : (Class<?>) define.invoke(unsafe, Hidden.class, bytes, null);
                LongUnaryOperator made =
                        (LongUnaryOperator) type.getDeclaredConstructor().newInstance();
                long x = random.nextLong();
                for (int k = 0; k < 20; k++) {
                    same(x + 3000, made.applyAsLong(x));
                }
            }
        }
    }

    /** A second subclass is loaded while compiled code that knows only one is running. */
    static final class Deopt extends Antagonist {
        Deopt() {
            super("deopt");
        }

        @Override
        void round(Random random) throws Exception {
            ChurnLoader loader = new ChurnLoader();
            LongUnaryOperator hot = template(loader, "Hot");
            Runnable change = (Runnable) hot.getClass().getMethod("change", LongUnaryOperator.class)
                    .invoke(null, hot);
            long first = hot.applyAsLong(1);
            long second = 1;
            int turns = 3000 + random.nextInt(12000);
            Thread changer = new Thread(helper(change), "changer");
            int seconds = 0;
            for (int i = 0; i < turns; i++) {
                if (i == turns / 2) {
                    changer.start();
                }
                long x = hot.applyAsLong(1);
                seconds += x == first ? 0 : 1;
                // Fifty times the same xor has no effect.
                sure(x == first || x == second, "applied to " + x);
            }
            changer.join();
            helpersEnded();
            same(second, hot.applyAsLong(1));
            sure(seconds <= turns / 2 + 1, "changed before it was");
        }
    }
}
