package work;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Threads;

/** Benchmarks whose cost is known: bytes, a wait, and other code in the only warmup iteration. */
@State(Scope.Benchmark)
public class Work {
    @Param({"1000"})
    public int bytes;
    private final Object lock = new Object();
    private int iterations;

    @Setup(Level.Iteration)
    public void count() {
        iterations++;
    }

    /** 16 bytes of header, and the bytes. */
    @Benchmark
    @BenchmarkMode(Mode.Throughput)
    @OutputTimeUnit(TimeUnit.MILLISECONDS)
    public byte[] allocate() {
        return new byte[bytes];
    }

    /** Two threads take turns: one sleeps, the other waits for the monitor. */
    @Benchmark
    @BenchmarkMode(Mode.AverageTime)
    @OutputTimeUnit(TimeUnit.NANOSECONDS)
    @Threads(2)
    public void locked() throws InterruptedException {
        synchronized (lock) {
            Thread.sleep(2);
        }
    }

    @Benchmark
    @BenchmarkMode(Mode.AverageTime)
    @OutputTimeUnit(TimeUnit.NANOSECONDS)
    public double phases() {
        return iterations == 1 ? inWarmup() : inMeasurement();
    }

    private double inWarmup() {
        double sum = 0;
        for (int i = 1; i < 20_000; i++) {
            sum += Math.sqrt(sum + i);
        }
        return sum;
    }

    private double inMeasurement() {
        double sum = 0;
        for (int i = 1; i < 20_000; i++) {
            sum += Math.cbrt(sum + i);
        }
        return sum;
    }
}
