import jdk.jfr.Event;
import jdk.jfr.Name;
import jdk.jfr.Unsigned;

/** Writes events that are called as those of other profilers, with the fields that they have. */
public class Ticks {
    @Name("profiler.WallClockSample")
    static class WallClock extends Event {
        Thread sampledThread = Thread.currentThread();
        @Unsigned int samples = 3;
    }

    @Name("datadog.ExecutionSample")
    static class Execution extends Event {
        long weight = 2;
        long spanId = 77;
        long localRootSpanId = 78;
    }

    @Name("datadog.MethodSample")
    static class Method extends Event {
        long weight = 5;
    }

    public static void main(String[] args) {
        for (int i = 0; i < 10; i++) {
            new WallClock().commit();
            new Execution().commit();
            new Method().commit();
        }
    }
}
