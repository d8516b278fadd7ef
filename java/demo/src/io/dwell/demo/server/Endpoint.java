package io.dwell.demo.server;

import java.io.IOException;

/** One operation of the service: a request body in, a response body out. */
interface Endpoint {
    String path();

    byte[] respond(byte[] body) throws IOException, InterruptedException;
}
