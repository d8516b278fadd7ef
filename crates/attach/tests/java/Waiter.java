import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Prints that it waits, answers each line with "pong", and exits when its standard input ends. */
public final class Waiter {
    private Waiter() {}

    public static void main(String[] args) throws Exception {
        System.out.println("waiting");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        while (in.readLine() != null) {
            System.out.println("pong");
        }
    }
}
