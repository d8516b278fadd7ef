import io.dwell.api.Dwell;
import io.vertx.core.AbstractVerticle;
import io.vertx.core.Promise;
import io.vertx.core.Vertx;
import io.vertx.core.http.HttpServer;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.RoutingContext;
import io.vertx.ext.web.handler.FileSystemAccess;
import io.vertx.ext.web.handler.StaticHandler;
import java.io.IOException;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A server for one large file, {@code files/sample} of the folder that it runs in, in three ways.
 * {@code read} reads the file into memory for each request and writes it to the connection.
 * {@code static} uses the framework's StaticHandler, which lets the kernel send the file. {@code
 * loop} reads the file on the event loop, which serves no other request during the read.
 *
 * <p>It prints its port, answers on loopback, and ends when its standard input does.
 */
public final class FileServer extends AbstractVerticle {
    private static final String FILE = "files/sample";
    private static final String ENDPOINT = "GET /" + FILE;

    private final AtomicLong requests = new AtomicLong();
    private final String way;

    private FileServer(String way) {
        this.way = way;
    }

    public static void main(String[] args) throws IOException {
        String way = args.length > 0 ? args[0] : "read";
        Vertx vertx = Vertx.vertx();
        vertx.deployVerticle(new FileServer(way)).onFailure(error -> {
            error.printStackTrace();
            System.exit(1);
        });
        while (System.in.read() >= 0) {
            // The input has no content; its end ends the server.
        }
        System.exit(0);
    }

    @Override
    public void start(Promise<Void> started) {
        Router router = Router.router(vertx);
        router.route().handler(this::count);
        if (way.equals("static")) {
            router.route("/files/*")
                    .handler(StaticHandler.create(FileSystemAccess.RELATIVE, "files"));
        } else if (way.equals("loop")) {
            router.route("/" + FILE).handler(FileServer::readOnLoop);
        } else {
            router.route("/" + FILE).handler(FileServer::read);
        }
        HttpServer server = vertx.createHttpServer().requestHandler(router);
        server.listen(0, "127.0.0.1").onSuccess(listening -> {
            System.out.println("port " + listening.actualPort());
            started.complete();
        }).onFailure(started::fail);
    }

    private static void read(RoutingContext request) {
        request.vertx().fileSystem().readFile(FILE)
                .onSuccess(content -> request.response().end(content))
                .onFailure(request::fail);
    }

    private static void readOnLoop(RoutingContext request) {
        request.response().end(request.vertx().fileSystem().readFileBlocking(FILE));
    }

    /** Reports each answered request and its duration to the recording. */
    private void count(RoutingContext request) {
        long began = System.nanoTime();
        long id = requests.incrementAndGet();
        request.addEndHandler(end -> {
            if (end.succeeded()) {
                Dwell.request(0, id, id, ENDPOINT, System.nanoTime() - began);
            }
        });
        request.next();
    }
}
