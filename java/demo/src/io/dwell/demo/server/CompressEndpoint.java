package io.dwell.demo.server;

import io.dwell.demo.text.SampleText;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.zip.Deflater;
import java.util.zip.GZIPOutputStream;

/** {@code GET /compress}: a report, packed by the native zlib behind {@link Deflater}. */
final class CompressEndpoint implements Endpoint {
    private static final int REPORT_LINES = 400;

    private final byte[] report =
            new SampleText(7).lines(REPORT_LINES).getBytes(StandardCharsets.UTF_8);

    @Override
    public String path() {
        return "/compress";
    }

    @Override
    public byte[] respond(byte[] body) {
        ByteArrayOutputStream packed = new ByteArrayOutputStream(report.length / 2);
        try (GZIPOutputStream gzip = new BestCompression(packed)) {
            gzip.write(report);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return packed.toByteArray();
    }

    /** The stream's deflater is protected, so only a subclass can set its level. */
    private static final class BestCompression extends GZIPOutputStream {
        BestCompression(ByteArrayOutputStream out) throws IOException {
            super(out);
            def.setLevel(Deflater.BEST_COMPRESSION);
        }
    }
}
