package io.dwell.test;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;

/**
 * A thread that waits for pages of a mapped file, in Java code. It writes the file past the page
 * cache, and then reads it through the mapping, over and over.
 *
 * <p>Prints {@code info pages.file NANOSECONDS} and {@code info pages.pages NANOSECONDS}: how long
 * the thread neither ran nor waited for a processor while it wrote and read. {@code info
 * pages.elapsed NANOSECONDS} is its life. Without a file system that can write past the cache, it
 * hardly waits.
 */
public final class Pages {
    private static final int PAGE_BYTES = 4096;
    private static final int BYTES = 1 << 20;
    private static final Path ACCOUNT = Paths.get("/proc/thread-self/schedstat");

    private final Harness harness;
    private long fileNanos;
    private long pagesNanos;

    private Pages(Harness harness) {
        this.harness = harness;
    }

    public static void main(String[] args) throws Exception {
        Pages program = new Pages(new Harness("Pages", 4, args));
        Burn.warmUp();
        program.harness.ready();
        Workers.start("pages", 1, number -> program.run()).join();
        program.harness.finish();
    }

    private void run() throws Exception {
        File file = File.createTempFile("dwell-pages-", ".bin");
        try (FileChannel plain = FileChannel.open(file.toPath(), StandardOpenOption.READ,
                StandardOpenOption.WRITE);
                FileChannel direct = direct(file.toPath())) {
            MappedByteBuffer mapped = plain.map(MapMode.READ_WRITE, 0, BYTES);
            // It begins at a page boundary, as required for writing past the cache.
            ByteBuffer content = plain.map(MapMode.PRIVATE, 0, BYTES);
            long began = System.nanoTime();
            while (harness.timeLeft()) {
                long from = offNanos();
                direct.position(0);
                content.clear();
                while (content.hasRemaining()) {
                    direct.write(content);
                }
                long written = offNanos();
                Burn.sink += sum(mapped);
                fileNanos += written - from;
                pagesNanos += offNanos() - written;
            }
            harness.info("pages.elapsed", System.nanoTime() - began);
        } finally {
            Files.delete(file.toPath());
        }
        harness.info("pages.file", fileNanos);
        harness.info("pages.pages", pagesNanos);
    }

    /** Reads from the end, because the kernel reads ahead in the other direction. */
    private static long sum(MappedByteBuffer mapped) {
        long sum = 0;
        for (int page = BYTES / PAGE_BYTES - 1; page >= 0; page--) {
            sum = sum * 31 + mapped.get(page * PAGE_BYTES);
        }
        return sum;
    }

    /** How long this thread has neither run nor waited for a processor, from some moment on. */
    private static long offNanos() throws IOException {
        String text = new String(Files.readAllBytes(ACCOUNT), StandardCharsets.US_ASCII);
        long ready = Long.parseLong(text.split(" ")[1]);
        return System.nanoTime() - CpuClock.threadNanos() - ready;
    }

    /** Writes past the cache, where the JDK (10 or newer) and the file system can do that. */
    private static FileChannel direct(Path file) throws IOException {
        try {
            Class<?> options = Class.forName("com.sun.nio.file.ExtendedOpenOption");
            for (Object option : options.getEnumConstants()) {
                if (option.toString().equals("DIRECT")) {
                    return FileChannel.open(file, StandardOpenOption.WRITE, (OpenOption) option);
                }
            }
        } catch (ClassNotFoundException | IOException | UnsupportedOperationException e) {
            System.err.println("Pages: all pages stay in memory: " + e);
        }
        return FileChannel.open(file, StandardOpenOption.WRITE);
    }
}
