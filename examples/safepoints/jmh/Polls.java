package polls;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** The cost of a poll in a loop: four loops over an array, each by an int and by a long index. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Polls {
    @Param("1000")
    int size;

    byte[] left;
    byte[] right;

    @Setup
    public void fillIn() {
        left = new byte[size];
        right = new byte[size];
        for (int i = 0; i < size; i++) {
            left[i] = right[i] = (byte) (31 * i);
        }
    }

    @Benchmark
    public byte[] copyInt() {
        for (int i = 0; i < size; i++) {
            right[i] = left[i];
        }
        return right;
    }

    @Benchmark
    public byte[] copyLong() {
        for (long i = 0; i < size; i++) {
            right[(int) i] = left[(int) i];
        }
        return right;
    }

    @Benchmark
    public boolean equalsInt() {
        for (int i = 0; i < size; i++) {
            if (left[i] != right[i]) {
                return false;
            }
        }
        return true;
    }

    @Benchmark
    public boolean equalsLong() {
        for (long i = 0; i < size; i++) {
            if (left[(int) i] != right[(int) i]) {
                return false;
            }
        }
        return true;
    }

    @Benchmark
    public byte[] fillInt() {
        for (int i = 0; i < size; i++) {
            right[i] = 7;
        }
        return right;
    }

    @Benchmark
    public byte[] fillLong() {
        for (long i = 0; i < size; i++) {
            right[(int) i] = 7;
        }
        return right;
    }

    @Benchmark
    public int sumInt() {
        int sum = 0;
        for (int i = 0; i < size; i++) {
            sum += left[i];
        }
        return sum;
    }

    @Benchmark
    public int sumLong() {
        int sum = 0;
        for (long i = 0; i < size; i++) {
            sum += left[(int) i];
        }
        return sum;
    }
}
