import java.io.InputStream;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;

/** Waits, transfers and throws so that each event of the JDK's recorder is known beforehand. */
public final class Traced {
    private static final int ROUNDS = 10;
    /** Each wait lasts so long at least, well beyond the recorder's threshold. */
    private static final int WAIT_MS = 100;

    private static final Object MONITOR = new Object();
    private static final Object SIGNAL = new Object();
    private static final ReentrantLock LOCK = new ReentrantLock();
    private static final List<byte[]> KEPT = new ArrayList<>();

    private static void enterMonitor() {
        synchronized (MONITOR) {
            KEPT.add(new byte[1]);
        }
    }

    private static void takeLock() {
        LOCK.lock();
        LOCK.unlock();
    }

    private static void awaitSignal() {
        synchronized (SIGNAL) {
            try {
                SIGNAL.wait(WAIT_MS);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        }
    }

    private static void fail() {
        try {
            throw new IllegalStateException("as asked");
        } catch (IllegalStateException e) {
            KEPT.add(new byte[100_000]);
        }
    }

    private static Thread started(String name, Runnable run) {
        Thread thread = new Thread(run, name);
        thread.start();
        return thread;
    }

    private static void answer(ServerSocket server) {
        try (Socket peer = server.accept()) {
            InputStream in = peer.getInputStream();
            OutputStream out = peer.getOutputStream();
            while (in.read() >= 0) {
                Thread.sleep(WAIT_MS);
                out.write(new byte[1000]);
            }
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    private static void ask(ServerSocket server) {
        try (Socket socket = new Socket(server.getInetAddress(), server.getLocalPort())) {
            for (int round = 0; round < ROUNDS; round++) {
                socket.getOutputStream().write(1);
                socket.getInputStream().readNBytes(1000);
            }
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    public static void main(String[] args) throws Exception {
        ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Thread answers = started("answers", () -> answer(server));
        Thread asks = started("asks", () -> ask(server));
        Thread enters;
        synchronized (MONITOR) {
            enters = started("enters", Traced::enterMonitor);
            while (enters.getState() != Thread.State.BLOCKED) {
                Thread.onSpinWait();
            }
            Thread.sleep(10 * WAIT_MS);
        }
        LOCK.lock();
        Thread locks = started("locks", Traced::takeLock);
        while (!LOCK.hasQueuedThread(locks)) {
            Thread.onSpinWait();
        }
        Thread.sleep(5 * WAIT_MS);
        LOCK.unlock();
        Thread signals = started("signals", Traced::awaitSignal);
        Path path = Path.of(args[0]);
        for (int round = 0; round < ROUNDS; round++) {
            try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
                file.write(new byte[1 << 20]);
                file.seek(0);
                file.readFully(new byte[1 << 20]);
            }
        }
        Files.delete(path);
        for (int thrown = 0; thrown < 50; thrown++) {
            fail();
        }
        for (Thread thread : List.of(answers, asks, enters, locks, signals)) {
            thread.join();
        }
    }
}
