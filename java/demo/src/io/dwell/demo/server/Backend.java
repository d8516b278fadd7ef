package io.dwell.demo.server;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** Another service, on loopback, that needs some time for each answer. */
final class Backend implements Runnable {
    static final int ANSWER_BYTES = 16;
    private static final int BACKLOG = 64;
    private static final long ANSWER_NANOS = TimeUnit.MILLISECONDS.toNanos(40);

    private final ServerSocket socket;

    private Backend(ServerSocket socket) {
        this.socket = socket;
    }

    static Backend start(InetAddress loopback) throws IOException {
        Backend backend = new Backend(new ServerSocket(0, BACKLOG, loopback));
        Thread thread = new Thread(backend, "backend");
        thread.setDaemon(true);
        thread.start();
        return backend;
    }

    InetSocketAddress address() {
        return (InetSocketAddress) socket.getLocalSocketAddress();
    }

    @Override
    public void run() {
        while (!socket.isClosed()) {
            try (Socket client = socket.accept()) {
                LockSupport.parkNanos(ANSWER_NANOS);
                client.getOutputStream().write(new byte[ANSWER_BYTES]);
            } catch (IOException e) {
                // The client has disconnected, or we are being closed: the loop's condition
                // decides.
                continue;
            }
        }
    }

    void stop() {
        try {
            socket.close();
        } catch (IOException e) {
            // There is nothing left to do: the process is about to exit.
            return;
        }
    }
}
