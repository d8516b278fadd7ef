import org.graalvm.polyglot.Context;

/** GraalJS on a JDK without the Graal compiler. Argument: the script. */
public final class Script {
    private Script() {}

    public static void main(String[] args) {
        try (Context context = Context.create("js")) {
            System.out.println(context.eval("js", args[0]));
        }
    }
}
