package io.dwell.demo.server;

import io.dwell.demo.store.Archive;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/**
 * {@code GET /archive}: reads a mapped file that is not in memory: each page waits for the disk.
 */
final class ArchiveEndpoint implements Endpoint {
    private final Archive archive = Archive.create();

    ArchiveEndpoint() throws IOException {}

    @Override
    public String path() {
        return "/archive";
    }

    @Override
    public byte[] respond(byte[] body) throws IOException {
        return Long.toString(archive.checkSum()).getBytes(StandardCharsets.ISO_8859_1);
    }
}
