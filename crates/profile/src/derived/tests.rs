//! Tests of endpoints found in stacks: one stack of each framework, and stacks that look like one.

use super::frameworks::ENTRIES;
use crate::allocations::Allocation;
use crate::builder::Builder;
use crate::frame::FrameKind;
use crate::live::LiveObject;
use crate::locks::MonitorWait;
use crate::profile::{Profile, Unit};
use crate::requests::Request;
use crate::sample::{Context, ContextId, Look};
use crate::text_art;
use crate::tree::NodeId;
use crate::wall::WallFilter;

const SERVLET: &str = "jakarta.servlet.http.HttpServlet.service";
const SPRING: &str = "org.springframework.web.method.support.InvocableHandlerMethod.doInvoke";
const REFLECTION: &str = "jdk.internal.reflect.DirectMethodHandleAccessor.invoke \
                          java.lang.reflect.Method.invoke";
const NETTY: &str = "io.netty.channel.AbstractChannelHandlerContext.invokeChannelRead";
const HTTP: &str = "com.sun.net.httpserver.Filter$Chain.doFilter";

/// A profile of a sample of one stack, given from the outermost frame on.
fn profile(stack: &str) -> Profile {
    let rows: Vec<&str> = stack.split_whitespace().collect();
    let mut profile = text_art::profile(&rows.join("\n"));
    profile.derive_endpoints();
    profile
}

fn endpoint_of(profile: &Profile, context: Option<ContextId>) -> Option<String> {
    let endpoint = profile.endpoint(context?)?;
    Some(
        endpoint
            .strip_suffix(super::DERIVED_MARK)
            .unwrap()
            .to_owned(),
    )
}

/// The endpoint of the stack.
fn endpoint(stack: &str) -> Option<String> {
    let profile = profile(stack);
    let found = endpoint_of(&profile, profile.samples()[0].context);
    assert_eq!(profile.has_derived_endpoints(), found.is_some());
    found
}

fn is(stack: &str, expected: &str) {
    assert_eq!(endpoint(stack).as_deref(), Some(expected), "{stack}");
}

fn is_none(stack: &str) {
    assert_eq!(endpoint(stack), None, "{stack}");
}

#[test]
fn jdk_server_names_the_handler_behind_filters() {
    let server = "java.lang.Thread.run sun.net.httpserver.ServerImpl$Exchange.run";
    let inner = "sun.net.httpserver.ServerImpl$Exchange$LinkHandler.handle";
    is(
        &format!(
            "{server} {HTTP} sun.net.httpserver.AuthFilter.doFilter {HTTP} {inner} {HTTP} \
             app.OrdersHandler.handle app.Store.save java.io.FileOutputStream.write"
        ),
        "OrdersHandler.handle",
    );
    // A filter of the application passes the request on.
    is(
        &format!("{server} {HTTP} app.LogFilter.doFilter {HTTP} app.OrdersHandler.handle"),
        "OrdersHandler.handle",
    );
    is(
        &format!("{server} {HTTP} app.LogFilter.doFilter app.Log.write"),
        "LogFilter.doFilter",
    );
    // Lambdas: the class that the JVM makes, in three forms, is no handler.
    for lambda in ["$$Lambda/0x00ab.handle", "$$Lambda.0x00ab.handle"] {
        is(
            &format!("{server} {HTTP} app.Main{lambda} app.Main.lambda$main$0 app.Db.find"),
            "Main.lambda$main$0",
        );
    }
    is(
        &format!("{server} {HTTP} app.Main$$Lambda$14.1800031768.handle app.Main.orders"),
        "Main.orders",
    );
}

#[test]
fn servlet_names_the_class_that_the_container_calls() {
    let tomcat = "org.apache.catalina.core.ApplicationFilterChain.internalDoFilter";
    is(
        &format!("{tomcat} app.AuthFilter.doFilter {tomcat} {SERVLET} app.OrderServlet.doGet"),
        "OrderServlet.doGet",
    );
    is(
        "javax.servlet.http.HttpServlet.service javax.servlet.http.HttpServlet.service \
         app.OrderServlet.doPost app.Db.find",
        "OrderServlet.doPost",
    );
    // The application's base class only passes it on.
    is(
        &format!("{SERVLET} app.BaseServlet.service {SERVLET} app.OrderServlet.doGet"),
        "OrderServlet.doGet",
    );
    // A forward to a page is still the request of the servlet.
    is(
        &format!(
            "{SERVLET} app.OrderServlet.doGet \
             org.apache.catalina.core.ApplicationDispatcher.forward {SERVLET} \
             org.apache.jasper.servlet.JspServlet.service {SERVLET} \
             org.apache.jasper.runtime.HttpJspBase.service org.apache.jsp.order_jsp._jspService"
        ),
        "OrderServlet.doGet",
    );
    is(
        &format!(
            "{SERVLET} org.apache.jasper.servlet.JspServlet.service {SERVLET} \
             org.apache.jasper.runtime.HttpJspBase.service org.apache.jsp.order_jsp._jspService"
        ),
        "order_jsp._jspService",
    );
}

#[test]
fn spring_names_the_controller_below_its_servlet() {
    let servlet = format!(
        "{SERVLET} org.springframework.web.servlet.FrameworkServlet.service {SERVLET} \
         org.springframework.web.servlet.DispatcherServlet.doDispatch"
    );
    is(
        &format!("{servlet} {SPRING} {REFLECTION} app.OrderController.create app.Orders.add"),
        "OrderController.create",
    );
    // Subclasses that Spring makes, and aspects behind them.
    let proxy = "app.OrderController$$SpringCGLIB$$0.create \
                 org.springframework.aop.framework.CglibAopProxy.intercept app.Timing.around";
    is(
        &format!("{servlet} {SPRING} {REFLECTION} {proxy} app.OrderController.create"),
        "OrderController.create",
    );
    // A front controller of the application, and the examples of Spring itself.
    is(
        &format!(
            "{SERVLET} app.Front.doService \
             org.springframework.web.servlet.DispatcherServlet.doDispatch {SPRING} {REFLECTION} \
             org.springframework.samples.shop.OwnerController.show"
        ),
        "OwnerController.show",
    );
    // The framework's own work has no handler, also if code of the application helps.
    is_none(&format!(
        "{servlet} com.fasterxml.jackson.databind.ObjectMapper.writeValue app.Money.serialize"
    ));
    let web = "org.springframework.web";
    for entry in [
        "reactive.result.method.InvocableHandlerMethod.lambda$invoke$0",
        "servlet.function.support.HandlerFunctionAdapter.handle",
        "reactive.function.server.support.HandlerFunctionAdapter.handle",
        "servlet.mvc.SimpleControllerHandlerAdapter.handle",
        "servlet.mvc.HttpRequestHandlerAdapter.handle",
    ] {
        is(
            &format!("{web}.{entry} {web}.Any.call app.C.get app.Db.find"),
            "C.get",
        );
    }
}

#[test]
fn jax_rs_names_the_resource_method() {
    let jersey = "org.glassfish.jersey.server.model.internal";
    is(
        &format!(
            "{SERVLET} org.glassfish.jersey.servlet.ServletContainer.service \
             {jersey}.JavaResourceMethodDispatcherProvider$TypeOutInvoker.doDispatch \
             {jersey}.AbstractJavaResourceMethodDispatcher.invoke \
             {jersey}.AbstractJavaResourceMethodDispatcher$1.run \
             {jersey}.ResourceMethodInvocationHandlerFactory.lambda$static$0 \
             {REFLECTION} app.OrderResource.list app.Db.find"
        ),
        "OrderResource.list",
    );
    is(
        &format!(
            "org.jboss.resteasy.core.MethodInjectorImpl.invoke {REFLECTION} \
             app.OrderResource$Proxy$_$$_WeldClientProxy.list app.OrderResource.list"
        ),
        "OrderResource.list",
    );
    is(
        "org.jboss.resteasy.reactive.server.handlers.InvocationHandler.handle \
         app.OrderResource$quarkusrestinvoker$list_0f3a.invoke \
         app.OrderResource_Subclass.list app.OrderResource_Subclass.list$$superforward \
         app.OrderResource.list",
        "OrderResource.list",
    );
    is(
        &format!(
            "org.apache.cxf.service.invoker.AbstractInvoker.performInvocation {REFLECTION} \
             app.OrderResource.list"
        ),
        "OrderResource.list",
    );
}

#[test]
fn vertx_names_the_handler_of_the_route() {
    let (http, web) = ("io.vertx.core.http.impl", "io.vertx.ext.web.impl");
    let server = format!(
        "io.netty.channel.nio.NioEventLoop.run {http}.Http1xServerConnection.handleMessage \
         io.vertx.core.impl.ContextBase.dispatch {http}.Http1xServerRequestHandler.handle"
    );
    is(
        &format!(
            "{server} {web}.RouterImpl.handle {web}.RoutingContextImpl.next \
             {web}.RouteState.handleContext app.Auth.handle app.Auth.handle app.Auth.pass \
             {web}.RoutingContextImpl.next \
             {web}.RouteState.handleContext app.Orders.list"
        ),
        "Orders.list",
    );
    is(
        &format!("{server} app.Main.lambda$start$0"),
        "Main.lambda$start$0",
    );
    is(
        &format!(
            "java.lang.Thread.run {web}.BlockingHandlerDecorator.lambda$handle$0 app.Files.send"
        ),
        "Files.send",
    );
    is(
        &format!("{web}.RouteImpl.handleContext app.Orders.list"),
        "Orders.list",
    );
    is(
        "io.vertx.core.http.impl.HttpServerRequestHandler.handle app.Hello.handle",
        "Hello.handle",
    );
    // Code that a handler hands to a worker.
    is(
        "io.vertx.core.impl.WorkerTask.run io.vertx.core.impl.ExecuteBlocking$1.execute \
         app.Files.lambda$send$0",
        "Files.lambda$send$0",
    );
    for context in ["RoutingContextWrapper", "RoutingContextDecorator"] {
        is(
            &format!("{web}.{context}.next app.Sub.handle"),
            "Sub.handle",
        );
    }
}

#[test]
fn netty_names_the_handler_that_it_calls_directly() {
    let fire = "io.netty.channel.AbstractChannelHandlerContext.fireChannelRead";
    let codec = "io.netty.handler.codec.ByteToMessageDecoder.channelRead";
    is(
        &format!("{NETTY} {codec} {fire} {NETTY} app.Chat.channelRead app.Rooms.send"),
        "Chat.channelRead",
    );
    is(
        &format!(
            "{NETTY} io.netty.channel.SimpleChannelInboundHandler.channelRead app.Http.channelRead0"
        ),
        "Http.channelRead0",
    );
    is(
        &format!("{NETTY} app.Limit.channelRead {fire} {NETTY} app.Chat.channelRead"),
        "Chat.channelRead",
    );
    // Publishers of a route of Reactor Netty.
    let route = "reactor.netty.http.server.HttpServer$HttpServerHandle.onStateChange \
                 reactor.core.publisher.Mono.subscribe reactor.core.publisher.MonoSupplier.call";
    is(
        &format!("{NETTY} {fire} reactor.netty.channel.Operations.read {route} app.Quote.get"),
        "Quote.get",
    );
    // A decoder is no handler, and the answer to a client is no request.
    is_none(&format!("{NETTY} {codec} app.Decoder.decode"));
    is_none(&format!(
        "{NETTY} io.lettuce.core.protocol.CommandHandler.channelRead \
         java.util.concurrent.CompletableFuture.complete app.Cache.lambda$get$0"
    ));
}

#[test]
fn grpc_names_the_service_behind_generated_methods() {
    let calls = "io.grpc.stub.ServerCalls$UnaryServerCallHandler$UnaryServerCallListener";
    is(
        &format!(
            "io.grpc.internal.ServerImpl$JumpToApplicationThreadServerStreamListener.halfClosed \
             app.LogInterceptor$1.onHalfClose {calls}.onHalfClose \
             app.GreeterGrpc$MethodHandlers.invoke app.GreeterImpl.sayHello app.Db.find"
        ),
        "GreeterImpl.sayHello",
    );
    is(
        &format!("{calls}.onHalfClose io.grpc.examples.hello.HelloServer$GreeterImpl.sayHello"),
        "HelloServer$GreeterImpl.sayHello",
    );
    is(
        "io.grpc.kotlin.ServerCalls$serverCallListener$1.invokeSuspend \
         kotlin.coroutines.jvm.internal.BaseContinuationImpl.resumeWith app.Greeter.sayHello",
        "Greeter.sayHello",
    );
    is_none(&format!("{calls}.onCancel app.GreeterImpl.cancelled"));
}

#[test]
fn listeners_of_messages_are_handlers() {
    let messaging = "org.springframework.messaging.handler.invocation.InvocableHandlerMethod";
    let consumer =
        "org.springframework.kafka.listener.KafkaMessageListenerContainer$ListenerConsumer";
    let adapter =
        "org.springframework.kafka.listener.adapter.RecordMessagingMessageListenerAdapter";
    is(
        &format!(
            "{consumer}.run {consumer}.doInvokeOnMessage {adapter}.onMessage {messaging}.doInvoke \
             {REFLECTION} app.OrderListener.onOrder"
        ),
        "OrderListener.onOrder",
    );
    is(
        &format!("{consumer}.doInvokeOnMessage app.Plain.onMessage"),
        "Plain.onMessage",
    );
    let (spring, active) = ("org.springframework", "org.apache.activemq");
    for entry in [
        format!("{spring}.jms.listener.AbstractMessageListenerContainer.doInvokeListener"),
        format!("{spring}.amqp.rabbit.listener.AbstractMessageListenerContainer.doInvokeListener"),
        format!("{active}.ActiveMQMessageConsumer.dispatch"),
        format!("{active}.artemis.jms.client.JMSMessageListenerWrapper.onMessage"),
    ] {
        is(
            &format!("{entry} app.L.onMessage app.Db.add"),
            "L.onMessage",
        );
    }
    is(
        "com.rabbitmq.client.impl.ConsumerDispatcher$5.run app.L.handleDelivery",
        "L.handleDelivery",
    );
    is(
        "org.apache.kafka.streams.processor.internals.ProcessorNode.process \
         org.apache.kafka.streams.kstream.internals.KStreamMapValues$1.process \
         app.Topology.lambda$build$0",
        "Topology.lambda$build$0",
    );
    // A thread that asks for messages waits for them.
    is_none(&format!(
        "{consumer}.run {consumer}.pollAndInvoke \
         org.apache.kafka.clients.consumer.KafkaConsumer.poll app.Deserializer.deserialize"
    ));
}

#[test]
fn smaller_frameworks_name_their_handlers() {
    for (entry, handler) in [
        (
            "jakarta.servlet.http.HttpServlet.service \
             io.javalin.http.servlet.JavalinServlet.service io.javalin.router.Endpoint.handle",
            "app.Users.get",
        ),
        ("io.javalin.routing.HandlerEntry.handle", "app.Users.get"),
        (
            "org.eclipse.jetty.server.Server.handle spark.http.matching.Routes.execute \
             spark.RouteImpl$1.handle",
            "app.Users.get",
        ),
        (
            "io.micronaut.web.router.AbstractRouteMatch.execute \
             io.micronaut.context.AbstractExecutableMethodsDefinition$Method.invoke \
             app.$Users$Definition$Exec.dispatch",
            "app.Users.get",
        ),
        (
            "io.helidon.webserver.http.HttpRoutingImpl$RoutingExecutor.call",
            "app.Users.get",
        ),
        (
            "org.eclipse.jetty.server.Server.handle \
             org.eclipse.jetty.server.handler.HandlerWrapper.handle",
            "app.Users.get",
        ),
        (
            "io.undertow.server.Connectors.executeRootHandler \
             io.undertow.server.handlers.PathHandler.handleRequest",
            "app.Users.get",
        ),
        (
            "akka.http.scaladsl.server.Route$.$anonfun$createAsyncHandler$1 \
             akka.http.scaladsl.server.directives.BasicDirectives.$anonfun$mapRouteResult$1 \
             scala.Function1.apply",
            "app.Users.get",
        ),
        (
            "org.apache.pekko.http.scaladsl.server.Route$.$anonfun$createAsyncHandler$1",
            "app.Users.get",
        ),
    ] {
        is(&format!("{entry} {handler} app.Db.find"), "Users.get");
    }
    // Filters of servlets on these servers are not the handler.
    is_none(
        "io.undertow.server.Connectors.executeRootHandler \
         io.undertow.servlet.core.ManagedFilter.doFilter app.AuthFilter.doFilter",
    );
    is_none(
        "org.eclipse.jetty.server.Server.handle org.eclipse.jetty.servlet.FilterHolder.doFilter \
         app.AuthFilter.doFilter",
    );
    is_none(
        "org.eclipse.jetty.server.Server.handle \
         org.eclipse.jetty.ee10.servlet.FilterHolder.doFilter app.AuthFilter.doFilter",
    );
}

/// Each entry finds a handler, in its own package and in a copy of the library elsewhere.
#[test]
fn every_entry_matches_its_library_and_shaded_copies() {
    for entry in ENTRIES {
        let (pattern, methods) = entry.names();
        let class = pattern.replace('*', "X");
        let method = methods.first().map_or("m", |it| *it);
        let method = method.replace('*', "1");
        is(&format!("{class}.{method} app.H.handle"), "H.handle");
        is(
            &format!("my.shaded.{class}.{method} app.H.handle"),
            "H.handle",
        );
        // Names that only look alike.
        is_none(&format!("my{class}.{method} app.H.handle"));
        if !pattern.ends_with('*') {
            is_none(&format!("{class}X.{method} app.H.handle"));
        }
        if !methods.is_empty() {
            is_none(&format!("{class}.toString app.H.handle"));
        }
    }
    // Between the entry and the handler, too.
    let spring = "my.shaded.org.springframework.aop.Proxy.invoke";
    is(&format!("my.shaded.{SPRING} {spring} app.C.get"), "C.get");
    is_none(&format!(
        "{NETTY} my.shaded.io.netty.handler.Codec.channelRead app.Decoder.decode"
    ));
    // One word is too common.
    is(&format!("{SERVLET} app.spark.Jobs.doGet"), "Jobs.doGet");
}

#[test]
fn entries_need_java_frames_and_a_method_of_the_application() {
    is_none(&format!("{SERVLET}[native] app.OrderServlet.doGet"));
    is_none(SERVLET);
    is_none(&format!(
        "{SERVLET} org.apache.catalina.servlets.DefaultServlet.doGet app.Io.read"
    ));
    is_none(&format!(
        "{HTTP} sun.net.httpserver.simpleserver.FileServerHandler.handle"
    ));
    // The application calls the framework, so the framework is not below it.
    is_none("app.Main.main app.OrderServlet.doGet javax.servlet.http.HttpServlet.doGet");
}

#[test]
fn idle_worker_has_no_endpoint() {
    // The same worker, in turn: waits for a request, reads its head, works for it.
    let worker = "java.lang.Thread.run app.Pool.run";
    let server = "org.apache.coyote.http11.Http11Processor.service";
    is_none(&format!(
        "{worker} java.util.concurrent.ThreadPoolExecutor.getTask \
         java.util.concurrent.LinkedBlockingQueue.take"
    ));
    is_none(&format!(
        "{worker} {server} app.Socket.read sun.nio.ch.SocketChannelImpl.read"
    ));
    is(
        &format!("{worker} {server} {SERVLET} app.OrderServlet.doGet app.Socket.read"),
        "OrderServlet.doGet",
    );
}

#[test]
fn recursion_keeps_the_outermost_handler() {
    let again = format!("{SERVLET} app.OrderServlet.doGet");
    let stack = format!("{again} {} app.B.x", "app.A.x app.B.x ".repeat(500));
    is(&stack, "OrderServlet.doGet");
    // Another servlet that the handler includes is part of its request.
    is(
        &format!("{again} app.Include.run {SERVLET} app.OtherServlet.doGet"),
        "OrderServlet.doGet",
    );
    is(
        &format!("{HTTP} {}", "app.H.handle ".repeat(100)),
        "H.handle",
    );
}

#[test]
fn classes_of_one_simple_name_keep_their_packages() {
    let mut profile = text_art::profile(&format!(
        "thread: a b c
         {SPRING} {SPRING} {SPRING}
         app.a.Orders.get app.b.Orders.get app.c.Users.get"
    ));
    profile.derive_endpoints();
    let endpoints = profile.samples().iter();
    let endpoints: Vec<_> = endpoints
        .map(|sample| endpoint_of(&profile, sample.context).unwrap())
        .collect();
    assert_eq!(
        endpoints,
        ["app.a.Orders.get", "app.b.Orders.get", "Users.get"]
    );
    let marked = profile.endpoint(profile.samples()[2].context.unwrap());
    assert_eq!(marked, Some("Users.get (from stacks)"));
}

/// A builder with a thread, and the stack of a handler that was met there.
fn one_handler() -> (Builder, NodeId) {
    let mut builder = text_art::builder(&format!("{SPRING}\napp.Orders.get\napp.Db.find"));
    builder.unit = Unit::Nanoseconds;
    let frames = [SPRING, "app.Orders.get", "app.Db.find"].map(|name| {
        let (class, method) = name.rsplit_once('.').unwrap();
        let method = builder.method(class, method, "");
        builder.frame(method, 0, FrameKind::C2)
    });
    let node = builder.stack(frames);
    (builder, node)
}

#[test]
fn looks_allocations_and_lock_waits_have_the_endpoint_too() {
    let (mut builder, node) = one_handler();
    let monitor = builder.cause("monitor");
    let class = builder.name("byte[]");
    let frame = builder.marker("byte[]", FrameKind::Other);
    let of_class = builder.child(node, frame);
    let allocated = Allocation {
        time_ns: 0,
        thread: 0,
        node: of_class,
        class,
        bytes: 1,
        size: 1,
        context: None,
    };
    builder.look(Look {
        node,
        cause: monitor,
        weight_ns: 5,
        count: 1,
        ..Look::PLAIN
    });
    builder.allocations.push(allocated);
    builder.live.push(LiveObject {
        allocated,
        age_ns: 0,
        collections: 0,
    });
    builder.monitor_waits.push(MonitorWait {
        time_ns: 0,
        duration_ns: 1,
        weight_ns: 1,
        thread: 0,
        node: of_class,
        class,
        context: None,
        owner: None,
    });
    let mut profile = builder.finish();
    profile.derive_endpoints();
    let contexts = [
        profile.samples()[0].context,
        profile.looks()[0].context,
        profile.allocations[0].context,
        profile.live[0].allocated.context,
        profile.monitor_waits[0].context,
    ];
    for context in contexts {
        assert_eq!(
            endpoint_of(&profile, context).as_deref(),
            Some("Orders.get")
        );
    }
    assert_eq!(profile.contexts().len(), 1, "one for all");
    let filter = WallFilter {
        endpoint: Some("Orders.*".to_owned()),
        ..WallFilter::default()
    };
    assert_eq!(profile.wall(&filter).count(), 2);
    // There are no requests to compare it with.
    assert!(profile.latencies().is_empty() && profile.self_check(None).is_none());
}

#[test]
fn ids_without_endpoint_are_kept() {
    let (mut builder, node) = one_handler();
    let context = Some(builder.context(Context {
        trace_id: 7,
        span_id: 8,
        ..Context::default()
    }));
    let of_none = builder.stack([]);
    for node in [node, of_none] {
        builder.look(Look {
            node,
            context,
            ..Look::PLAIN
        });
    }
    let mut profile = builder.finish();
    profile.derive_endpoints();
    let looks = profile.looks();
    let of = |place: usize| &profile.contexts()[looks[place].context.unwrap() as usize];
    assert_eq!((of(0).trace_id, of(0).span_id), (7, 8));
    assert!(of(0).endpoint.is_some() && of(1).endpoint.is_none());
}

#[test]
fn recordings_with_real_endpoints_or_requests_stay() {
    type Change = fn(&mut Builder);
    let changes: [Change; 3] = [
        |builder| {
            let endpoint = Some(builder.name("GET /"));
            builder.context(Context {
                endpoint,
                ..Context::default()
            });
        },
        |builder| {
            builder.requests.push(Request {
                time_ns: 0,
                duration_ns: 1,
                trace_id: 0,
                local_root_span_id: 1,
                endpoint: None,
                count: 1,
            });
        },
        |builder| builder.info.options = "filter=context".to_owned(),
    ];
    for change in changes {
        let (mut builder, _) = one_handler();
        change(&mut builder);
        let mut profile = builder.finish();
        profile.derive_endpoints();
        assert_eq!(profile.samples()[0].context, None);
        assert!(!profile.has_derived_endpoints());
    }
}

#[test]
fn both_of_two_recordings_know_that_endpoints_are_derived() {
    let derived = profile(&format!("{SPRING} app.Orders.get"));
    let both = crate::diff::both(&derived, &derived).profile;
    assert!(both.has_derived_endpoints());
    let contexts = both.samples().iter().map(|sample| sample.context);
    for context in contexts {
        assert_eq!(endpoint_of(&both, context).as_deref(), Some("Orders.get"));
    }
}
