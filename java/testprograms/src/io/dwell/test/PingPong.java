package io.dwell.test;

import java.io.EOFException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Map;
import java.util.TreeMap;

/**
 * Pairs of threads that send each other a byte, with more work than processors. So they wait for a
 * processor amid {@code write}, which wakes the other thread, after {@code read}, and amid work.
 *
 * <p>The threads {@code pair-N} measure how long they are in each of their three methods. Prints
 * {@code info THREAD.METHOD NANOSECONDS}, and the longest turn of all as {@code info longest}.
 */
public final class PingPong {
    private static final int ANSWER_ROUNDS = 20_000;
    private static final int[] WORK_ROUNDS = {300, 30_000, 300_000};

    private final Harness harness;
    private final Map<String, Long> truths = new TreeMap<>();
    private long longestNanos;

    private PingPong(String[] args) {
        harness = new Harness("PingPong", 5, args);
    }

    public static void main(String[] args) throws Exception {
        PingPong program = new PingPong(args);
        int pairs = 3 * Runtime.getRuntime().availableProcessors();
        try (ServerSocket server = new ServerSocket(0, pairs, InetAddress.getLoopbackAddress())) {
            Thread acceptor = new Thread(() -> accept(server, pairs), "acceptor");
            acceptor.setDaemon(true);
            acceptor.start();
            program.harness.ready();
            Workers.start("pair", pairs, number -> program.ask(number, server.getLocalPort()))
                    .join();
        }
        program.truths.forEach(program.harness::info);
        program.harness.info("longest", program.longestNanos);
        program.harness.finish();
    }

    private static void accept(ServerSocket server, int count) {
        try {
            for (int i = 1; i <= count; i++) {
                Socket socket = server.accept();
                Thread thread = new Thread(() -> answer(socket), "answer-" + i);
                thread.setDaemon(true);
                thread.start();
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static void answer(Socket socket) {
        try (Socket own = socket) {
            own.setTcpNoDelay(true);
            while (own.getInputStream().read() >= 0) {
                work(ANSWER_ROUNDS);
                own.getOutputStream().write(1);
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private void ask(int number, int port) throws Exception {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.setTcpNoDelay(true);
            InputStream input = socket.getInputStream();
            OutputStream output = socket.getOutputStream();
            int rounds = WORK_ROUNDS[number % WORK_ROUNDS.length];
            long worked = 0;
            long wrote = 0;
            long read = 0;
            long longest = 0;
            long before = System.nanoTime();
            while (harness.timeLeft()) {
                work(rounds);
                long afterWork = System.nanoTime();
                write(output);
                long afterWrite = System.nanoTime();
                read(input);
                long now = System.nanoTime();
                worked += afterWork - before;
                wrote += afterWrite - afterWork;
                read += now - afterWrite;
                longest = Math.max(longest, now - before);
                before = now;
            }
            tell("pair-" + number, worked, wrote, read, longest);
        }
    }

    private synchronized void tell(String name, long worked, long wrote, long read, long longest) {
        truths.put(name + ".work", worked);
        truths.put(name + ".write", wrote);
        truths.put(name + ".read", read);
        longestNanos = Math.max(longestNanos, longest);
    }

    private static void work(int rounds) {
        long sum = 1;
        for (int i = 0; i < rounds; i++) {
            sum = sum * 31 + i;
        }
        Burn.sink += sum;
    }

    private static void write(OutputStream output) throws Exception {
        output.write(1);
    }

    private static void read(InputStream input) throws Exception {
        if (input.read() < 0) {
            throw new EOFException();
        }
    }
}
