/** A thread that computes and threads that wait, for a recording in a container. */
public final class Pod {
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
        while (true) {
            sink = mix(sink);
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
