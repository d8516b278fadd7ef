package io.dwell.chaos;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Heap, direct and mapped memory, and method handles. */
final class Memory {
    private Memory() {}

    /** Chains of objects whose links must survive all collections. */
    static final class Allocation extends Antagonist {
        private final ThreadLocal<Link[]> kept = ThreadLocal.withInitial(() -> new Link[64]);

        private static final class Link {
            final Link next;
            final long number;
            final byte[] ballast;

            Link(Link next, long number, int size) {
                this.next = next;
                this.number = number;
                ballast = new byte[size];
            }
        }

        Allocation() {
            super("alloc");
        }

        @Override
        int threads() {
            return 2;
        }

        @Override
        void round(Random random) {
            Link[] chains = kept.get();
            int at = random.nextInt(chains.length);
            int length = 0;
            for (Link link = chains[at]; link != null; link = link.next) {
                same(length++, link.number);
            }
            sure(length == 0 || length == 100, "a chain of " + length);
            chains[at] = null;
            Link chain = null;
            for (int i = 99; i >= 0; i--) {
                chain = new Link(chain, i, random.nextInt(i % 20 == 0 ? 4000 : 100));
            }
            chains[at] = chain;
            for (int i = 0; i < 20; i++) {
                byte[] fresh = new byte[10_000 + i];
                same(0, fresh[0] | fresh[fresh.length - 1]);
                fresh[0] = 1;
            }
        }

        @Override
        int pauseMs() {
            return 2;
        }
    }

    /** Arrays that fit into no heap of this size. */
    static final class TooLarge extends Antagonist {
        TooLarge() {
            super("oom");
        }

        @Override
        int pauseMs() {
            return 300;
        }

        @Override
        void round(Random random) {
            long max = Math.min(Runtime.getRuntime().maxMemory(), 8L << 30);
            int[] lengths = {Integer.MAX_VALUE, (int) (max / 8 + 1000)};
            int caught = 0;
            for (int length : lengths) {
                try {
                    sure(new long[length].length < 0, "there was room for " + length);
                } catch (OutOfMemoryError e) {
                    caught++;
                }
            }
            same(2, caught);
        }
    }

    /** Fills the heap until allocations fail on all threads; not among the default ones. */
    static final class Full extends Antagonist {
        Full() {
            super("full");
        }

        @Override
        int pauseMs() {
            return 500;
        }

        @Override
        void round(Random random) {
            List<long[]> all = new ArrayList<>(1 << 16);
            try {
                while (true) {
                    long[] block = new long[2048];
                    block[7] = all.size();
                    all.add(block);
                }
            } catch (OutOfMemoryError e) {
                long[] last = all.isEmpty() ? null : all.get(all.size() - 1);
                int size = all.size();
                all.clear();
                sure(last == null || last[7] == size - 1, "a block has changed");
            }
        }
    }

    /** Direct buffers that the collector has to free. */
    static final class Direct extends Antagonist {
        Direct() {
            super("direct");
        }

        @Override
        void round(Random random) {
            LongBuffer buffer = ByteBuffer.allocateDirect(8 << random.nextInt(15)).asLongBuffer();
            long x = random.nextLong();
            for (int i = 0; i < buffer.capacity(); i++) {
                buffer.put(i, x + i);
            }
            long wrong = 0;
            for (int i = 0; i < buffer.capacity(); i++) {
                wrong |= buffer.get(i) ^ (x + i);
            }
            same(0, wrong);
        }
    }

    /**
     * Files that are mapped, and truncated during that: reading then causes SIGBUS, and
     * InternalError.
     */
    static final class Mapped extends Antagonist {
        private static final int SIZE = 64 << 10;
        private File file;
        /** Keeps the compiler from dropping loads as unused. */
        private volatile byte read;

        Mapped() {
            super("mapped");
        }

        @Override
        void begin() throws Exception {
            file = File.createTempFile("chaos", ".map", new File("."));
            file.deleteOnExit();
        }

        /**
         * On a thread of its own: older JVMs throw the error at one of the thread's next
         * safepoints, also or instead, wherever it is by then.
         */
        @Override
        void round(Random random) throws Exception {
            Throwable[] thrown = new Throwable[1];
            Thread thread = new Thread(helper(() -> cutAndRead(random)), "mapped");
            thread.setUncaughtExceptionHandler((which, error) -> thrown[0] = error);
            thread.start();
            thread.join();
            helpersEnded();
            // Compiled code of JDK 8 survives such a read, but may continue without the error.
            boolean kept = thrown[0] == null
                    && System.getProperty("java.version").startsWith("1.8");
            sure(kept || thrown[0] instanceof InternalError, "no error but " + thrown[0]);
        }

        private void cutAndRead(Random random) {
            try (RandomAccessFile access = new RandomAccessFile(file, "rw")) {
                access.setLength(SIZE);
                MappedByteBuffer map =
                        access.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, SIZE);
                for (int i = 0; i < SIZE; i += 512) {
                    map.put(i, (byte) (i >> 9));
                }
                for (int i = 0; i < SIZE; i += 512) {
                    same((byte) (i >> 9), map.get(i));
                }
                access.setLength(SIZE / 2);
                same((byte) 1, map.get(512));
                for (int i = 0; i < 5; i++) {
                    readBeyond(map, SIZE / 2 + 4096 + random.nextInt(SIZE / 2 - 4096));
                }
                read = map.get(SIZE - 1);
                Threads.sleep(1);
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
        }

        private void readBeyond(MappedByteBuffer map, int at) {
            try {
                read = map.get(at);
            } catch (InternalError e) {
                // The last error is not caught here.
            }
        }
    }

    /** Method handles, and variable handles from 9 on, made and called. */
    static final class Handles extends Antagonist {
        long field;

        Handles() {
            super("handles");
        }

        private static long plus(long a, long b) {
            return a + b;
        }

        @Override
        void round(Random random) throws Throwable {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            MethodHandle plus = lookup.findStatic(Handles.class, "plus",
                    MethodType.methodType(long.class, long.class, long.class));
            long by = random.nextLong();
            MethodHandle bound = MethodHandles.insertArguments(plus, 1, by);
            MethodHandle twice = MethodHandles.filterReturnValue(bound, bound);
            long x = random.nextLong();
            for (int i = 0; i < 500; i++) {
                same(x + i + 2 * by, (long) twice.invokeExact(x + i));
            }
            MethodHandle add = getAndAdd(lookup);
            field = 0;
            for (int i = 0; i < 500; i++) {
                same(i, (long) add.invoke(this, 1L));
            }
        }

        private MethodHandle getAndAdd(MethodHandles.Lookup lookup) throws Throwable {
            Class<?> mode;
            try {
                mode = Class.forName("java.lang.invoke.VarHandle$AccessMode");
            } catch (ClassNotFoundException e) {
                return lookup.findVirtual(Handles.class, "addByHand",
                        MethodType.methodType(long.class, long.class));
            }
            Object handle = MethodHandles.Lookup.class
                    .getMethod("findVarHandle", Class.class, String.class, Class.class)
                    .invoke(lookup, Handles.class, "field", long.class);
            Method toMethodHandle = Class.forName("java.lang.invoke.VarHandle")
                    .getMethod("toMethodHandle", mode);
            Object getAndAdd = mode.getField("GET_AND_ADD").get(null);
            return (MethodHandle) toMethodHandle.invoke(handle, getAndAdd);
        }

        /** JDK 8's substitute for a variable handle. */
        long addByHand(long by) {
            long before = field;
            field += by;
            return before;
        }
    }
}
