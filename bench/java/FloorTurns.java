import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.concurrent.SynchronousQueue;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/**
 * Work that is always the same on one thread that stays: {@code deep FRAMES} works below so many
 * frames of compiled methods, {@code wide FRAMES} below interpreted ones, which take more bytes,
 * {@code alloc} makes garbage below 60. Lines of its input: {@code work ROUNDS}, answered by
 * {@code done} and the CPU time of the working thread in ns; {@code load LIBRARY OPTIONS} loads an
 * agent from inside, so that no other process runs for it.
 */
public final class FloorTurns {
    private static final int STEPS_PER_ROUND = 500_000;
    private static final int OBJECTS_PER_ROUND = 40_000;
    private static final int ALLOC_FRAMES = 60;
    private static final int WARM_ROUNDS = 20_000;

    static volatile long sink;
    static volatile Object made;

    private final SynchronousQueue<Integer> asked = new SynchronousQueue<>();
    private final SynchronousQueue<Long> done = new SynchronousQueue<>();
    private final boolean allocates;
    private final boolean working;

    private FloorTurns(boolean allocates, boolean working) {
        this.allocates = allocates;
        this.working = working;
    }

    public static void main(String[] args) throws Exception {
        boolean allocates = args[0].equals("alloc");
        int frames = allocates ? ALLOC_FRAMES : Integer.parseInt(args[1]);
        FloorTurns program = new FloorTurns(allocates, true);
        FloorTurns idle = new FloorTurns(allocates, false);
        Runnable work = () -> {
            // Until the frames are those of compiled methods.
            for (int i = 0; i < (args[0].equals("wide") ? 0 : WARM_ROUNDS); i++) {
                sink = idle.descend(frames);
            }
            sink = program.descend(frames);
        };
        Thread thread = new Thread(null, work, "floor-1", 64L << 20);
        thread.setDaemon(true);
        thread.start();
        MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
        ObjectName commands = new ObjectName("com.sun.management:type=DiagnosticCommand");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("work")) {
                program.asked.put(Integer.parseInt(words[1]));
                System.out.println("done " + program.done.take());
            } else {
                Object[] given = {new String[] {words[1], words[2]}};
                String[] types = {String[].class.getName()};
                Object said = beans.invoke(commands, "jvmtiAgentLoad", given, types);
                System.out.println("loaded " + said.toString().trim());
            }
        }
    }

    private long descend(int left) {
        if (left > 1) {
            return descend(left - 1) + 1;
        }
        try {
            return working ? serve() : 0;
        } catch (InterruptedException end) {
            return 0;
        }
    }

    private long serve() throws InterruptedException {
        java.lang.management.ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        long value = 1;
        while (true) {
            int rounds = asked.take();
            long before = clock.getCurrentThreadCpuTime();
            for (int i = 0; i < rounds; i++) {
                value = allocates ? garbage(value) : steps(value);
            }
            sink = value;
            done.put(clock.getCurrentThreadCpuTime() - before);
        }
    }

    private static long steps(long start) {
        long value = start;
        for (int i = 0; i < STEPS_PER_ROUND; i++) {
            value = value * 6364136223846793005L + i;
            value ^= value >>> 29;
        }
        return value;
    }

    private static long garbage(long start) {
        long value = start;
        for (int i = 0; i < OBJECTS_PER_ROUND; i++) {
            made = (i & 1) == 0 ? new long[8 + (i & 31)] : (Object) new byte[100 + (i & 255)];
            for (int step = 0; step < 8; step++) {
                value = value * 6364136223846793005L + i;
                value ^= value >>> 29;
            }
        }
        return value;
    }
}
