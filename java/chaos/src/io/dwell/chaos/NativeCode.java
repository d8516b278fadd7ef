package io.dwell.chaos;

import java.util.Random;
import java.util.function.IntUnaryOperator;

/** Native code: calls in both directions, libraries, threads, signals. */
final class NativeCode {
    private NativeCode() {}

    /**
     * Short and long calls, callbacks, exceptions through both, arrays that block the collector.
     */
    static final class Jni extends Antagonist {
        Jni() {
            super("jni");
        }

        @Override
        int threads() {
            return 2;
        }

        @Override
        void round(Random random) {
            long x = random.nextLong();
            for (int i = 0; i < 300; i++) {
                same(x, Work.back(Natives.there(x, 3), 3));
            }
            same(x, Work.back(Natives.there(x, 200_000), 200_000));
            int depth = 1 + random.nextInt(30);
            same(x, Work.back(Natives.up(depth, x), 20 * (depth + 1)));
            long[] array = new long[random.nextInt(20_000)];
            long sum = 0;
            for (int i = 0; i < array.length; i++) {
                array[i] = x + i;
                sum += array[i];
            }
            same(sum, Natives.critical(array));
            for (int i = 0; i < array.length; i += 100) {
                same(x + i, Work.back(array[i], 4));
            }
            try {
                Natives.fail("of course");
                sure(false, "no exception");
            } catch (IllegalStateException e) {
                sure(e.getMessage().equals("of course"), e.getMessage());
            }
        }
    }

    /** Two libraries, opened, run and closed: often at an address that another one had before. */
    static final class Libraries extends Antagonist {
        private final String[] paths;

        Libraries(String... paths) {
            super("libraries");
            this.paths = paths;
        }

        @Override
        void round(Random random) {
            for (String path : paths) {
                long x = random.nextLong();
                int steps = 1 + random.nextInt(100_000);
                long made = Natives.plugin(path, x, steps) ^ 0x5a;
                same(x, Work.back(made, steps));
            }
        }
    }

    /** A native function that counts its wrong results. */
    static final class Counting extends Antagonist {
        private final IntUnaryOperator function;

        Counting(String name, IntUnaryOperator function) {
            super(name);
            this.function = function;
        }

        @Override
        int pauseMs() {
            return 40;
        }

        @Override
        void begin() {
            if (name.equals("faults")) {
                Natives.faultsOn();
            }
        }

        @Override
        void round(Random random) {
            same(0, function.applyAsInt(4));
        }
    }

    /** The application's own timers of all kinds. */
    static final class Timers extends Antagonist {
        private final boolean prof;

        Timers(boolean prof) {
            super("timers");
            this.prof = prof;
        }

        @Override
        void begin() {
            Natives.timersOn(prof);
        }

        @Override
        int pauseMs() {
            return 200;
        }

        @Override
        void round(Random random) {
            long[] before = ticks();
            long begin = System.nanoTime();
            // Until each timer has ticked twice more. This wait is unbounded, but the runner's is
            // not.
            while (true) {
                long x = random.nextLong();
                same(x, Work.back(Work.there(x, 1000), 1000));
                long[] now = ticks();
                boolean all = true;
                for (int i = 0; i < now.length; i++) {
                    all &= now[i] >= before[i] + 2 || i == 1 && !prof;
                }
                if (all) {
                    return;
                }
                sure(System.nanoTime() - begin < 60_000_000_000L, "a timer stands still");
                Threads.sleep(1);
            }
        }

        private static long[] ticks() {
            return new long[] {Natives.ticks(0), Natives.ticks(1), Natives.ticks(2)};
        }

        @Override
        void end() {
            Natives.timersOff(prof);
        }
    }

    /** Child processes of Java and of native code. */
    static final class Children extends Antagonist {
        Children() {
            super("children");
        }

        @Override
        int pauseMs() {
            return 100;
        }

        @Override
        void round(Random random) throws Exception {
            Process said = new ProcessBuilder("/bin/sh", "-c", "echo chaos; exit 5").start();
            said.getOutputStream().close();
            byte[] bytes = new byte[64];
            int length = 0;
            for (int n = 0; n >= 0; n = said.getInputStream().read(bytes, length, 64 - length)) {
                length += n;
            }
            same(5, said.waitFor());
            sure(new String(bytes, 0, length, "US-ASCII").equals("chaos\n"), "a child's words");
            same(0, Runtime.getRuntime().exec(new String[] {"/bin/true"}).waitFor());
            int code = Natives.child(random.nextInt(3));
            sure(code == 7 || code == -1, "a child ended with " + code);
        }
    }
}
