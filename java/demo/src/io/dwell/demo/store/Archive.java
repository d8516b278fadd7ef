package io.dwell.demo.store;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.OpenOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A mapped file whose pages are not in memory when they are read. They are written past the page
 * cache, if the JDK (10 or newer) and the file system support that.
 */
public final class Archive {
    private static final int PAGE_BYTES = 4096;
    private static final int BYTES = 1 << 20;

    private final FileChannel channel;
    private final MappedByteBuffer mapped;
    /** The data to write. It starts at a page boundary, as required for writing past the cache. */
    private final ByteBuffer content;

    private Archive(FileChannel channel, MappedByteBuffer mapped, ByteBuffer content) {
        this.channel = channel;
        this.mapped = mapped;
        this.content = content;
    }

    /** An archive in a file that disappears with the process. */
    public static Archive create() throws IOException {
        File file = File.createTempFile("dwell-demo-archive-", ".bin");
        try (FileChannel plain = FileChannel.open(file.toPath(), StandardOpenOption.READ,
                StandardOpenOption.WRITE)) {
            MappedByteBuffer mapped = plain.map(MapMode.READ_WRITE, 0, BYTES);
            return new Archive(direct(file), mapped, page());
        } finally {
            // The file exists as long as it is open or mapped.
            if (!file.delete()) {
                file.deleteOnExit();
            }
        }
    }

    /** Writes all pages, and reads them again. */
    public synchronized long checkSum() throws IOException {
        channel.position(0);
        while (channel.position() < BYTES) {
            content.clear();
            channel.write(content);
        }
        long sum = 0;
        // From the end, because the kernel reads ahead in the other direction.
        for (int page = BYTES / PAGE_BYTES - 1; page >= 0; page--) {
            sum = sum * 31 + mapped.get(page * PAGE_BYTES);
        }
        return sum;
    }

    private static ByteBuffer page() throws IOException {
        File file = File.createTempFile("dwell-demo-page-", ".bin");
        try (FileChannel channel = FileChannel.open(file.toPath(), StandardOpenOption.READ,
                StandardOpenOption.WRITE)) {
            ByteBuffer content = channel.map(MapMode.READ_WRITE, 0, BYTES);
            for (int at = 0; at < BYTES; at += PAGE_BYTES) {
                content.put(at, (byte) (at / PAGE_BYTES));
            }
            return content;
        } finally {
            if (!file.delete()) {
                file.deleteOnExit();
            }
        }
    }

    private static FileChannel direct(File file) throws IOException {
        List<OpenOption> options = new ArrayList<>(Arrays.asList(StandardOpenOption.WRITE));
        for (OpenOption option : pastTheCache()) {
            options.add(option);
            try {
                return FileChannel.open(file.toPath(), options.toArray(new OpenOption[0]));
            } catch (IOException | UnsupportedOperationException e) {
                options.remove(option); // not on this file system
            }
        }
        return FileChannel.open(file.toPath(), options.toArray(new OpenOption[0]));
    }

    /** The option, by name because older JDKs lack it. */
    private static List<OpenOption> pastTheCache() {
        List<OpenOption> found = new ArrayList<>();
        try {
            Class<?> options = Class.forName("com.sun.nio.file.ExtendedOpenOption");
            for (Object option : options.getEnumConstants()) {
                if (option.toString().equals("DIRECT")) {
                    found.add((OpenOption) option);
                }
            }
        } catch (ClassNotFoundException e) {
            // Then pages are in memory, and no thread waits.
        }
        return found;
    }
}
