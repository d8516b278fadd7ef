package io.dwell.demo.server;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;

/** {@code POST /audit}: writes a line to a file, and waits until the disk has it. */
final class AuditEndpoint implements Endpoint {
    /** At this size the file is truncated. */
    private static final long FILE_BYTES_MAX = 1 << 20;

    private final FileChannel channel;
    private long lines;

    AuditEndpoint() throws IOException {
        File file = File.createTempFile("dwell-demo-audit-", ".log");
        channel = new RandomAccessFile(file, "rw").getChannel();
        // The file exists only while it is open, however the process ends.
        if (!file.delete()) {
            file.deleteOnExit();
        }
    }

    @Override
    public String path() {
        return "/audit";
    }

    @Override
    public byte[] respond(byte[] body) throws IOException {
        byte[] line = append();
        channel.force(false);
        return line;
    }

    private synchronized byte[] append() throws IOException {
        lines++;
        byte[] line = ("booked " + lines + "\n").getBytes(StandardCharsets.ISO_8859_1);
        if (channel.position() > FILE_BYTES_MAX) {
            channel.position(0);
        }
        channel.write(ByteBuffer.wrap(line));
        return line;
    }
}
