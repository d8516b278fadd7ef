package io.dwell.test;

import java.io.EOFException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Paths;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.zip.Deflater;

/**
 * Threads that compute in compiled code, then in native code, and sleep. They keep most processors
 * busy, so all wait for one at times.
 *
 * <p>The threads {@code shift-N} measure how long they waited for a processor in each of their
 * three methods, from the kernel. Prints {@code info METHOD NANOSECONDS}.
 */
public final class Shifts {
    private static final int WORK_ROUNDS = 3_000_000;
    private static final int PIECES = 8;
    private static final int PIECE_BYTES = 16 << 10;
    private static final int SLEEP_MILLIS = 10;

    private final Harness harness;
    private final byte[] text = new byte[PIECE_BYTES];
    private final AtomicLong inWork = new AtomicLong();
    private final AtomicLong inDeflate = new AtomicLong();
    private final AtomicLong inSleep = new AtomicLong();

    private Shifts(String[] args) {
        harness = new Harness("Shifts", 5, args);
        Random random = new Random(1);
        for (int i = 0; i < text.length; i++) {
            text[i] = (byte) random.nextInt(20);
        }
    }

    public static void main(String[] args) throws Exception {
        Shifts program = new Shifts(args);
        program.harness.ready();
        int count = 2 * Runtime.getRuntime().availableProcessors();
        Workers.start("shift", count, program::run).join();
        program.harness.info("work", program.inWork.get());
        program.harness.info("deflate", program.inDeflate.get());
        program.harness.info("sleep", program.inSleep.get());
        program.harness.finish();
    }

    private void run(int number) throws Exception {
        Random random = new Random(number);
        Deflater deflater = new Deflater();
        byte[] output = new byte[2 * PIECE_BYTES];
        try (FileChannel schedule = FileChannel.open(Paths.get("/proc/thread-self/schedstat"))) {
            long before = waited(schedule);
            while (harness.timeLeft()) {
                work();
                long afterWork = waited(schedule);
                deflate(deflater, output);
                long afterDeflate = waited(schedule);
                sleep(random);
                long now = waited(schedule);
                inWork.addAndGet(afterWork - before);
                inDeflate.addAndGet(afterDeflate - afterWork);
                inSleep.addAndGet(now - afterDeflate);
                before = now;
            }
        } finally {
            deflater.end();
        }
    }

    /** How long the calling thread has waited for a processor, in ns: the file's second number. */
    private static long waited(FileChannel schedule) throws Exception {
        ByteBuffer buffer = ByteBuffer.allocate(128);
        int length = schedule.read(buffer, 0);
        if (length <= 0) {
            throw new EOFException();
        }
        return Long.parseLong(new String(buffer.array(), 0, length, "ISO-8859-1").split(" ")[1]);
    }

    private static void work() {
        long sum = 1;
        for (int i = 0; i < WORK_ROUNDS; i++) {
            sum = sum * 31 + i;
        }
        Burn.sink += sum;
    }

    private void deflate(Deflater deflater, byte[] output) {
        for (int i = 0; i < PIECES; i++) {
            deflater.reset();
            deflater.setInput(text);
            deflater.finish();
            Burn.sink += deflater.deflate(output);
        }
    }

    private static void sleep(Random random) throws InterruptedException {
        Thread.sleep(random.nextInt(SLEEP_MILLIS));
    }
}
