//! Frameworks that call handlers of an application: the methods in which they do (entries), and the
//! packages of libraries that can stand between an entry and the handler. Pure tables.
//!
//! A program may carry a copy of a library in a package of its own. So names are compared from a
//! package's beginning on, wherever it stands in the name.

use crate::platform::is_of_platform;

/// A method below which a framework calls the application's handler.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The class; a `*` at the end matches any suffix.
    class: &'static str,
    /// Methods, with `*` at the end as well; none: any.
    methods: &'static [&'static str],
    /// Packages of [`LIBRARIES`] between the entry and the handler.
    through: &'static [&'static str],
    /// A handler below an entry of a higher layer is more precise: a server calls a servlet, which
    /// calls a controller.
    pub(super) layer: u8,
    /// Whether handlers call it themselves to pass a request on.
    pub(super) is_chain: bool,
}

impl Entry {
    /// Whether a library can stand between the entry and its handler.
    pub(super) fn uses(&self, library: &str) -> bool {
        self.through.contains(&library)
    }

    /// The class and the methods, as they are in the table.
    #[cfg(test)]
    pub(super) fn names(&self) -> (&'static str, &'static [&'static str]) {
        (self.class, self.methods)
    }

    fn has(&self, class: &str, method: &str) -> bool {
        let is_method = self.methods.iter().any(|wanted| is_like(wanted, method));
        (self.methods.is_empty() || is_method)
            && match self.class.strip_suffix('*') {
                Some(start) => has_package(class, start),
                None => has_suffix(class, self.class),
            }
    }
}

const SERVER: u8 = 1;
const SERVLET: u8 = 2;
const ROUTE: u8 = 3;

const fn entry(
    layer: u8,
    class: &'static str,
    methods: &'static [&'static str],
    through: &'static [&'static str],
) -> Entry {
    Entry {
        class,
        methods,
        through,
        layer,
        is_chain: false,
    }
}

const fn chain(
    layer: u8,
    class: &'static str,
    methods: &'static [&'static str],
    through: &'static [&'static str],
) -> Entry {
    Entry {
        is_chain: true,
        ..entry(layer, class, methods, through)
    }
}

const SPRING: &[&str] = &["org.springframework.", "org.aspectj."];
const JAXRS: &[&str] = &[
    "org.glassfish.",
    "org.jboss.",
    "org.apache.cxf.",
    "io.quarkus.",
    "org.springframework.",
];
const GRPC: &[&str] = &["io.grpc.", "kotlinx."];
const VERTX: &[&str] = &["io.vertx."];
const REACTOR: &[&str] = &["reactor.", "org.reactivestreams."];
const KAFKA: &[&str] = &["org.apache.kafka."];
const ACTIVEMQ: &[&str] = &["org.apache.activemq."];
const AKKA: &[&str] = &["akka.", "org.apache.pekko."];

#[rustfmt::skip]
pub(super) const ENTRIES: &[Entry] = &[
    // The JDK's server: filters and the handler.
    chain(ROUTE, "com.sun.net.httpserver.Filter$Chain", &["doFilter"], &[]),
    // Servlets, in any container. A servlet of a framework is no handler: its own entries follow.
    chain(SERVLET, "javax.servlet.http.HttpServlet", &["service"], &[]),
    chain(SERVLET, "jakarta.servlet.http.HttpServlet", &["service"], &["jakarta."]),
    entry(SERVLET, "org.apache.jasper.runtime.HttpJspBase", &["service"], &[]),
    // Handlers of servers without servlets.
    entry(SERVER, "org.eclipse.jetty.server.Server", &["handle"], &["org.eclipse.jetty."]),
    entry(SERVER, "io.undertow.server.Connectors", &["executeRootHandler"], &["io.undertow."]),
    // Spring: controllers, functional routes, listeners of messages.
    entry(ROUTE, "org.springframework.web.method.support.InvocableHandlerMethod",
        &["doInvoke"], SPRING),
    entry(ROUTE, "org.springframework.web.reactive.result.method.InvocableHandlerMethod",
        &["lambda$invoke$*"], SPRING),
    entry(ROUTE, "org.springframework.web.servlet.function.support.HandlerFunctionAdapter",
        &["handle"], SPRING),
    entry(ROUTE, "org.springframework.web.reactive.function.server.support.HandlerFunctionAdapter",
        &["handle"], SPRING),
    entry(ROUTE, "org.springframework.web.servlet.mvc.SimpleControllerHandlerAdapter",
        &["handle"], SPRING),
    entry(ROUTE, "org.springframework.web.servlet.mvc.HttpRequestHandlerAdapter",
        &["handle"], SPRING),
    entry(ROUTE, "org.springframework.messaging.handler.invocation.InvocableHandlerMethod",
        &["doInvoke"], SPRING),
    entry(ROUTE,
        "org.springframework.kafka.listener.KafkaMessageListenerContainer$ListenerConsumer",
        &["doInvokeOnMessage", "doInvokeBatchOnMessage"], SPRING),
    entry(ROUTE, "org.springframework.jms.listener.AbstractMessageListenerContainer",
        &["doInvokeListener"], SPRING),
    entry(ROUTE, "org.springframework.amqp.rabbit.listener.AbstractMessageListenerContainer",
        &["doInvokeListener"], SPRING),
    // JAX-RS: Jersey, RESTEasy, the one of Quarkus, CXF.
    entry(ROUTE, "org.glassfish.jersey.server.model.internal.AbstractJavaResourceMethodDispatcher*",
        &[], JAXRS),
    entry(ROUTE, "org.jboss.resteasy.core.MethodInjectorImpl", &["invoke*"], JAXRS),
    entry(ROUTE, "org.jboss.resteasy.reactive.server.handlers.InvocationHandler",
        &["handle"], JAXRS),
    entry(ROUTE, "org.apache.cxf.service.invoker.AbstractInvoker", &["performInvocation"], JAXRS),
    // Vert.x: routes, and handlers of servers without a router.
    entry(ROUTE, "io.vertx.ext.web.impl.RouteState", &["handleContext"], VERTX),
    entry(ROUTE, "io.vertx.ext.web.impl.RouteImpl", &["handleContext"], VERTX),
    entry(ROUTE, "io.vertx.ext.web.impl.BlockingHandlerDecorator", &["lambda$handle$*"], VERTX),
    chain(ROUTE, "io.vertx.ext.web.impl.RoutingContextImpl", &["next"], VERTX),
    chain(ROUTE, "io.vertx.ext.web.impl.RoutingContextWrapper", &["next"], VERTX),
    chain(ROUTE, "io.vertx.ext.web.impl.RoutingContextDecorator", &["next"], VERTX),
    entry(SERVER, "io.vertx.core.http.impl.Http1xServerConnection", &["handleMessage"], VERTX),
    entry(SERVER, "io.vertx.core.http.impl.Http1xServerRequestHandler", &["handle"], VERTX),
    entry(SERVER, "io.vertx.core.http.impl.HttpServerRequestHandler", &["handle"], VERTX),
    // Code that a handler passes to a worker.
    entry(ROUTE, "io.vertx.core.impl.ExecuteBlocking$1", &["execute"], VERTX),
    // Reactor Netty without Spring: routes, and the publishers that they return.
    entry(SERVER, "reactor.netty.http.server.HttpServer$HttpServerHandle", &["onStateChange"],
        REACTOR),
    // Smaller frameworks.
    entry(ROUTE, "io.javalin.http.*", &[], &["io.javalin."]),
    entry(ROUTE, "io.javalin.router.*", &[], &["io.javalin."]),
    entry(ROUTE, "io.javalin.routing.*", &[], &["io.javalin."]),
    entry(ROUTE, "spark.RouteImpl$*", &["handle"], &["spark."]),
    entry(ROUTE, "io.micronaut.web.router.*", &[], &["io.micronaut."]),
    entry(ROUTE, "io.helidon.webserver.http.*", &[], &["io.helidon."]),
    // Netty: no other class calls the handler.
    chain(SERVER, "io.netty.channel.AbstractChannelHandlerContext",
        &["invokeChannelRead", "fireChannelRead"], &[]),
    entry(SERVER, "io.netty.channel.SimpleChannelInboundHandler", &["channelRead"], &[]),
    // gRPC: generated methods stand between the entry and the service.
    entry(ROUTE, "io.grpc.stub.ServerCalls$*", &["onHalfClose", "onMessage", "startCall"], GRPC),
    entry(ROUTE, "io.grpc.kotlin.ServerCalls*", &[], GRPC),
    // Kafka Streams; plain consumers ask for messages themselves.
    entry(ROUTE, "org.apache.kafka.streams.processor.internals.ProcessorNode",
        &["process"], KAFKA),
    // Messages: JMS by ActiveMQ and Artemis, RabbitMQ.
    entry(ROUTE, "org.apache.activemq.ActiveMQMessageConsumer", &["dispatch"], ACTIVEMQ),
    entry(ROUTE, "org.apache.activemq.artemis.jms.client.JMSMessageListenerWrapper",
        &["onMessage"], ACTIVEMQ),
    entry(ROUTE, "com.rabbitmq.client.impl.ConsumerDispatcher$*", &["run"], &["com.rabbitmq."]),
    // Akka and Pekko HTTP.
    entry(ROUTE, "akka.http.scaladsl.server.Route$", &[], AKKA),
    entry(ROUTE, "org.apache.pekko.http.scaladsl.server.Route$", &[], AKKA),
];

/// Libraries whose classes are no handlers: frameworks of [`ENTRIES`], servers, and clients that
/// get answers through Netty. The first that matches counts.
pub(super) const LIBRARIES: &[&str] = &[
    // Servlets are called in here: see their entries.
    "io.undertow.servlet.",
    "org.eclipse.jetty.servlet.",
    "org.eclipse.jetty.ee*",
    "io.undertow.",
    "org.eclipse.jetty.",
    "org.apache.catalina.",
    "org.apache.coyote.",
    "org.apache.tomcat.",
    "org.apache.jasper.",
    "jakarta.",
    "org.springframework.",
    "org.aspectj.",
    "org.glassfish.",
    "org.jboss.",
    "org.wildfly.",
    "org.xnio.",
    "org.apache.cxf.",
    "io.quarkus.",
    "io.javalin.",
    "spark.",
    "io.micronaut.",
    "io.helidon.",
    "io.vertx.",
    "io.netty.",
    "io.grpc.",
    "io.opentelemetry.",
    "io.micrometer.",
    "akka.",
    "org.apache.pekko.",
    "kotlinx.",
    "org.apache.kafka.",
    "org.apache.activemq.",
    "com.rabbitmq.",
    "reactor.",
    "io.lettuce.",
    "io.r2dbc.",
    "org.redisson.",
    "org.asynchttpclient.",
    "com.datastax.",
    "com.mongodb.",
    "software.amazon.",
];

/// Languages: their run-time classes stand between any two methods. So do the JDK's.
const LANGUAGES: [&str; 6] = [
    "kotlin.",
    "scala.",
    "groovy.",
    "org.codehaus.groovy.",
    "org.apache.groovy.",
    "clojure.",
];

/// A package of this name, inside of a library's, is a program's that shows how to use it.
const SHOWN: [&str; 8] = [
    "demo",
    "demos",
    "example",
    "examples",
    "sample",
    "samples",
    "quickstart",
    "quickstarts",
];

/// Words in names of classes that tools make, whose methods only call the application's.
const GENERATED: [&str; 7] = [
    "$$Lambda",
    "$$FastClass",
    "$Proxy$$",
    "$Definition$",
    "$quarkusrestinvoker$",
    "Grpc$MethodHandlers",
    "_SmallRyeMessagingInvoker_",
];

/// The role of a method in the search for a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// An entry.
    Entry(&'static Entry),
    /// The JDK's, a language's, or generated.
    Through,
    /// A library's.
    Library(&'static str),
    /// The application's, and that of any library that is not known.
    Application,
}

impl Part {
    /// The role of a method of a class.
    pub(super) fn of(class: &str, method: &str) -> Part {
        if let Some(entry) = ENTRIES.iter().find(|entry| entry.has(class, method)) {
            return Part::Entry(entry);
        }
        if is_of_platform(class) || is_generated(class) || class.is_empty() {
            return Part::Through;
        }
        if LANGUAGES.iter().any(|start| class.starts_with(start)) {
            return Part::Through;
        }
        let library = LIBRARIES.iter().find(|it| {
            let package = it.strip_suffix('*').unwrap_or(it);
            has_package(class, package) && !is_shown(class)
        });
        library.map_or(Part::Application, |library| Part::Library(library))
    }
}

fn is_generated(class: &str) -> bool {
    let simple = class.rsplit('.').next().unwrap_or(class);
    let is_proxy = || {
        let number = simple.strip_prefix("$Proxy");
        number.is_some_and(|it| it.bytes().all(|digit| digit.is_ascii_digit()))
    };
    // In the JDK's recordings, what follows `$$Lambda` has points.
    GENERATED.iter().any(|word| class.contains(word)) || is_proxy()
}

fn is_shown(class: &str) -> bool {
    let packages = class.rsplit('.').skip(1);
    packages.into_iter().any(|package| SHOWN.contains(&package))
}

/// Whether a name is the wanted one, or begins with it if that ends in `*`.
fn is_like(wanted: &str, name: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == wanted,
    }
}

/// Whether a class is this one, or a copy of it in another package.
fn has_suffix(class: &str, wanted: &str) -> bool {
    let before = class.strip_suffix(wanted);
    before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Whether a class is of a package, or of a copy of it in another package. A package of one word
/// is too common a word for the latter.
fn has_package(class: &str, package: &str) -> bool {
    let is_word = package.find('.').is_none_or(|at| at + 1 == package.len());
    let copies = || {
        class
            .match_indices(package)
            .any(|(at, _)| is_after_dot(class, at))
    };
    class.starts_with(package) || (!is_word && copies())
}

fn is_after_dot(class: &str, at: usize) -> bool {
    class.get(..at).is_some_and(|before| before.ends_with('.'))
}
