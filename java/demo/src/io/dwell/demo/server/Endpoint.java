package io.dwell.demo.server;

import java.io.IOException;

/** One thing the service can do: a request body in, a response body out. */
interface Endpoint {
    String path();

    byte[] respond(byte[] body) throws IOException, InterruptedException;
}
