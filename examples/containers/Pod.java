import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;

/** A thread that computes, also in the kernel, and threads that wait, to record in a container. */
public final class Pod {
    private static final int BYTES = 1 << 18;
    private static volatile long sink;

    private Pod() {}

    /** Runs until the container ends. */
    public static void main(String[] args) throws Exception {
        Thread burner = new Thread(Pod::burn, "burner");
        burner.setDaemon(true);
        burner.start();
        System.out.println("ready");
        System.out.flush();
        rest();
    }

    private static void burn() {
        byte[] zeros = new byte[BYTES];
        try (InputStream kernel = new FileInputStream("/dev/zero")) {
            while (true) {
                sink = mix(sink) + kernel.read(zeros);
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private static long mix(long from) {
        long value = from;
        for (int i = 0; i < 1_000_000; i++) {
            value = (value ^ i) * 0x9E3779B97F4A7C15L;
        }
        return value;
    }

    private static void rest() throws InterruptedException {
        Thread.sleep(Long.MAX_VALUE);
    }
}
