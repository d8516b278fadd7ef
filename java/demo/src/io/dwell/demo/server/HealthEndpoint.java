package io.dwell.demo.server;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.nio.charset.StandardCharsets;

/** {@code GET /health}: reads the stacks of all threads, for which all of them have to stop. */
final class HealthEndpoint implements Endpoint {
    @Override
    public String path() {
        return "/health";
    }

    @Override
    public byte[] respond(byte[] body) {
        int frames = 0;
        for (ThreadInfo thread : ManagementFactory.getThreadMXBean().dumpAllThreads(true, false)) {
            frames += thread == null ? 0 : thread.getStackTrace().length;
        }
        return Integer.toString(frames).getBytes(StandardCharsets.ISO_8859_1);
    }
}
