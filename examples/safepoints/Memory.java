import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;

/**
 * A thread that is late for safepoints because of its work with memory: it copies a large array,
 * makes one (which the JVM clears), or reads a file that is mapped and not in memory.
 *
 * <p>The thread {@code late} does that again and again, while {@code main} has the JVM look for
 * deadlocks, at a safepoint, every 50 ms. It prints the longest time of such a search.
 *
 * <p>Arguments: {@code copy}, {@code clear} or {@code pages}, {@code seconds}, {@code megabytes} of
 * the array, and for {@code pages} the file. Another process must remove the file from memory again
 * and again.
 */
public final class Memory {
    private static final int PAGE = 4096;
    private static volatile boolean over;
    private static volatile Object sink;

    private Memory() {}

    public static void main(String[] args) throws Exception {
        String what = args[0];
        int bytes = Integer.parseInt(args[2]) << 20;
        Thread late = new Thread(() -> {
            try {
                work(what, bytes, args.length > 3 ? args[3] : null);
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }, "late");
        late.setDaemon(true);
        late.start();
        ThreadMXBean management = ManagementFactory.getThreadMXBean();
        long end = System.nanoTime() + Integer.parseInt(args[1]) * 1_000_000_000L;
        long longest = 0;
        while (System.nanoTime() < end) {
            Thread.sleep(50);
            long began = System.nanoTime();
            management.findDeadlockedThreads();
            longest = Math.max(longest, System.nanoTime() - began);
        }
        over = true;
        System.out.println("longest ms " + longest / 1e6);
    }

    private static void work(String what, int bytes, String file) throws Exception {
        byte[] from = new byte[what.equals("copy") ? bytes : 1];
        byte[] to = new byte[from.length];
        // Interpreted code calls the JVM for this, so the method is compiled first.
        for (int i = 0; i < 20_000; i++) {
            copy(from, to, 1);
        }
        while (!over) {
            switch (what) {
                case "copy":
                    copy(from, to, bytes);
                    break;
                case "clear":
                    sink = null;
                    sink = new byte[bytes];
                    break;
                default:
                    pages(file);
            }
        }
    }

    private static void copy(byte[] from, byte[] to, int bytes) {
        System.arraycopy(from, 0, to, 0, bytes);
        sink = to;
    }

    /** Reads a byte of each page. */
    private static void pages(String file) throws Exception {
        try (RandomAccessFile opened = new RandomAccessFile(file, "r")) {
            FileChannel channel = opened.getChannel();
            MappedByteBuffer mapped = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
            sink = sum(mapped, mapped.capacity() / PAGE);
            unmap(mapped);
        }
    }

    private static long sum(MappedByteBuffer mapped, int pages) {
        long sum = 0;
        for (int page = 0; page < pages; page++) {
            sum += mapped.get(page * PAGE);
        }
        return sum;
    }

    /** Unmaps a file, because mapped pages stay in memory until the buffer is freed. */
    private static void unmap(MappedByteBuffer mapped) throws Exception {
        Class<?> unsafe = Class.forName("sun.misc.Unsafe");
        Field field = unsafe.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        Method clean = unsafe.getMethod("invokeCleaner", ByteBuffer.class);
        clean.invoke(field.get(null), mapped);
    }
}
