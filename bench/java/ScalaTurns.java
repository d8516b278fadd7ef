import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;

/**
 * The Scala compiler, again and again in one process: {@code ScalaTurns OUT.jar SOURCE...}. Each
 * line of its input is a number: so often the sources are compiled, then it prints {@code done}.
 */
public final class ScalaTurns {
    private ScalaTurns() {}

    public static void main(String[] args) throws Exception {
        Method process = Class.forName("dotty.tools.dotc.Main").getMethod("process",
                String[].class);
        String[] words = new String[args.length + 2];
        words[0] = "-usejavacp";
        words[1] = "-d";
        System.arraycopy(args, 0, words, 2, args.length);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            for (int i = Integer.parseInt(line); i > 0; i--) {
                Object reporter = process.invoke(null, (Object) words);
                if ((Boolean) reporter.getClass().getMethod("hasErrors").invoke(reporter)) {
                    throw new IllegalStateException("the sources do not compile");
                }
            }
            System.out.println("done");
        }
    }
}
