import com.twitter.finagle.Http;
import com.twitter.finagle.ListeningServer;
import com.twitter.finagle.Service;
import com.twitter.finagle.http.Request;
import com.twitter.finagle.http.Response;
import com.twitter.util.Await;
import com.twitter.util.Duration;
import com.twitter.util.Future;
import com.twitter.util.FutureEventListener;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * An HTTP server and its client in one process, over loopback, with Finagle: {@code HttpLoad
 * REQUESTS OUTSTANDING} keeps OUTSTANDING requests
 * under way until REQUESTS have been answered. All
 * cores are busy, and the work is the same each time. With {@code turns} for the first word each
 * line of its input is a number of requests; when these are answered it prints {@code done}.
 */
public final class HttpLoad {
    private static final int ITEMS = 32;
    private static final int LEAST_REPLY_CHARS = 400;

    private final Service<Request, Response> client;
    private final AtomicInteger left;
    private final AtomicInteger bad = new AtomicInteger();
    private final CountDownLatch open;

    private HttpLoad(Service<Request, Response> client, int requests, int outstanding) {
        this.client = client;
        this.left = new AtomicInteger(requests);
        this.open = new CountDownLatch(outstanding);
    }

    public static void main(String[] args) throws Exception {
        int outstanding = Integer.parseInt(args[1]);
        InetSocketAddress any = new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0);
        ListeningServer server = Http.serve(any, new Answers());
        int port = ((InetSocketAddress) server.boundAddress()).getPort();
        Service<Request, Response> client = Http.newService("127.0.0.1:" + port);
        int bad = 0;
        if (args[0].equals("turns")) {
            BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                bad += load(client, Integer.parseInt(line), outstanding);
                System.out.println("done");
            }
        } else {
            long began = System.nanoTime();
            bad = load(client, Integer.parseInt(args[0]), outstanding);
            System.out.println("info load_ns " + (System.nanoTime() - began));
            System.out.println("info bad " + bad);
        }
        Await.result(client.close(), Duration.fromSeconds(10));
        Await.result(server.close(), Duration.fromSeconds(10));
        // Finagle's own threads need not end.
        System.exit(bad == 0 ? 0 : 1);
    }

    /** Returns how many requests were not answered as they should. */
    private static int load(Service<Request, Response> client, int requests, int outstanding)
            throws InterruptedException {
        HttpLoad load = new HttpLoad(client, requests, outstanding);
        for (int i = 0; i < outstanding; i++) {
            load.next();
        }
        load.open.await();
        return load.bad.get();
    }

    private void next() {
        int number = left.getAndDecrement();
        if (number <= 0) {
            open.countDown();
            return;
        }
        Request request = Request.apply("/orders?customer=" + number + "&items=" + ITEMS);
        client.apply(request).addEventListener(new FutureEventListener<Response>() {
            @Override
            public void onSuccess(Response reply) {
                if (reply.statusCode() != 200 || reply.contentString().length()
                        < LEAST_REPLY_CHARS) {
                    bad.incrementAndGet();
                }
                next();
            }

            @Override
            public void onFailure(Throwable cause) {
                if (bad.getAndIncrement() == 0) {
                    cause.printStackTrace();
                }
                next();
            }
        });
    }

    /** Answers with a list as text, as services do. */
    private static final class Answers extends Service<Request, Response> {
        @Override
        public Future<Response> apply(Request request) {
            long customer = request.getLongParam("customer");
            int items = request.getIntParam("items");
            StringBuilder text = new StringBuilder("{\"customer\":").append(customer);
            text.append(",\"items\":[");
            long price = customer;
            for (int i = 0; i < items; i++) {
                price = price * 6364136223846793005L + i;
                text.append("{\"id\":").append(i).append(",\"price\":").append(price >>> 40)
                        .append("},");
            }
            Response reply = Response.apply();
            reply.setContentTypeJson();
            reply.setContentString(text.append("]}").toString());
            return Future.value(reply);
        }
    }
}
