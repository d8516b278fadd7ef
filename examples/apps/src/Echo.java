import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.net.InetSocketAddress;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A server of Netty that echoes, with four clients that send the next message ten milliseconds after
 * an answer: nearly all time of its threads is idle. Argument: seconds.
 */
public final class Echo {
    private static final AtomicLong answers = new AtomicLong();

    private Echo() {}

    private static final class Mirror extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            context.writeAndFlush(message);
        }
    }

    private static final class Client extends ChannelInboundHandlerAdapter {
        @Override
        public void channelActive(ChannelHandlerContext context) {
            context.writeAndFlush(context.alloc().buffer(64).writeLong(1));
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            answers.incrementAndGet();
            context.executor().schedule(() -> context.writeAndFlush(message), 10,
                    java.util.concurrent.TimeUnit.MILLISECONDS);
        }
    }

    public static void main(String[] args) throws Exception {
        EventLoopGroup servers = new NioEventLoopGroup(4);
        EventLoopGroup clients = new NioEventLoopGroup(2);
        Channel server = new ServerBootstrap().group(servers).channel(NioServerSocketChannel.class)
                .childHandler(new ChannelInitializer<Channel>() {
                    @Override
                    protected void initChannel(Channel channel) {
                        channel.pipeline().addLast(new Mirror());
                    }
                }).bind(new InetSocketAddress("127.0.0.1", 0)).sync().channel();
        for (int i = 0; i < 4; i++) {
            new Bootstrap().group(clients).channel(NioSocketChannel.class)
                    .handler(new ChannelInitializer<Channel>() {
                        @Override
                        protected void initChannel(Channel channel) {
                            channel.pipeline().addLast(new Client());
                        }
                    }).connect(server.localAddress()).sync();
        }
        Thread.sleep(1000 * Long.parseLong(args[0]));
        System.out.println("answers " + answers.get());
        System.exit(0);
    }
}
