import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * Constant work, repeated in one process. {@code garbage} makes garbage on two threads, and {@code
 * steady} does so with other work. {@code contended} has four threads that wait for one monitor,
 * and {@code free} has one thread that takes a free monitor. In {@code handover} two threads hand
 * over to each other. Each line of its input is a number of rounds. After these it prints {@code
 * done}, with the CPU time of the threads if it is known.
 */
public final class WorkTurns {
    private WorkTurns() {}

    public static void main(String[] args) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        int processors = Runtime.getRuntime().availableProcessors();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String done = "done";
            switch (args[0]) {
                case "steady":
                    done += " " + SteadyGarbage.run(Math.min(2, processors), Integer.parseInt(line));
                    break;
                case "garbage":
                    FixedWork.main(new String[] {"alloc", "2", line});
                    break;
                case "contended":
                    ContendedWork.main(new String[] {"4", line, "2000", "2000"});
                    break;
                case "handover":
                    HandOverWork.run(Integer.parseInt(line));
                    break;
                case "free":
                    ContendedWork.main(new String[] {"1", line, "1", "1"});
                    break;
                default:
                    throw new IllegalArgumentException(args[0]);
            }
            System.out.println(done);
        }
    }
}
