//! Classifies a wait by its stack: the call of the JDK in which the program waits, and the frames
//! around it. Another module decides whether the thread is idle there.

use super::serving::Serving;
use crate::builder::Builder;
use crate::frame::MethodId;
use crate::platform::is_of_platform;
use crate::tree::NodeId;

/// The object of a wait, as far as the call shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Wait {
    /// Any of several descriptors, or a new connection.
    Ready,
    /// Something to take out of a queue.
    Queue,
    /// The next request of a client, on a connection of the thread's own.
    Request,
    /// The same, in the code of a known server.
    Client,
    /// To be woken up by another thread: a condition, `Object.wait`, a plain `park`.
    Signal,
    /// A time to be over.
    Sleep,
    /// The end of another thread, or that all have got as far.
    End,
    /// A result of another thread or process, or a resource that may be short.
    Result,
}

/// Where a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    /// The program's innermost method.
    pub(super) method: MethodId,
    /// The stack.
    pub(super) node: NodeId,
    pub(super) wait: Wait,
    /// Frames of the program around it, this one included.
    pub(super) depth: usize,
    /// Whether it is a task of a pool.
    pub(super) is_in_pool: bool,
    /// Whether the program's `main` is the outermost method.
    pub(super) is_main: bool,
}

/// Calls that wait, by the beginnings of classes and of methods, without the package
/// `java.util.concurrent`. The outermost call counts: a queue waits on its condition.
const CALLS: &[(&str, &str, Wait)] = &[
    ("java.lang.Thread", "sleep", Wait::Sleep),
    ("java.lang.Thread", "join", Wait::End),
    ("java.lang.Object", "wait", Wait::Signal),
    ("TimeUnit", "sleep", Wait::Sleep),
    ("CountDownLatch", "await", Wait::End),
    ("ThreadPoolExecutor", "awaitTermination", Wait::End),
    ("ForkJoinPool", "awaitTermination", Wait::End),
    ("locks.LockSupport", "park", Wait::Signal),
    ("locks.AbstractQueued", "await", Wait::Signal),
];
/// Calls that take something out of a queue; those that put something into it wait for room.
const TAKES: [&str; 5] = ["take", "poll", "remove", "xfer", "receive"];
const CONCURRENT: &str = "java.util.concurrent.";
/// Words in the names of methods and classes that wait for what somebody was asked for. Libraries
/// make futures of their own, of which the JDK sees a plain `park`.
const RESULTS: [&str; 8] = [
    "future",
    "promise",
    "response",
    "reply",
    "result",
    "unary",
    "threadless",
    "latch",
];
/// The same in names of methods only: a blocking queue or strategy is a class.
const RESULT_METHOD: &str = "blocking";
/// Number of the program's innermost frames that are compared with these.
const RESULT_FRAMES: usize = 4;
/// Frames below which tasks of a pool run.
const POOLS: [(&str, &str); 3] = [
    ("ThreadPoolExecutor", "runWorker"),
    ("ForkJoinPool", "runWorker"),
    ("ForkJoinWorkerThread", "run"),
];

/// Packages of a server with a thread for each connection, and the others that it uses to read.
/// The peer of a virtual thread is not known.
const SERVER: &str = "io.helidon.webserver.";
const OF_SERVER: [&str; 3] = [SERVER, "io.helidon.common.", "io.helidon.http."];

impl Place {
    /// The place of a wait; `None` if it cannot be one for work, by its cause and its frames.
    pub(super) fn of(
        builder: &Builder,
        serving: &Serving,
        node: NodeId,
        cause: &str,
    ) -> Option<Place> {
        if !matches!(cause, "park" | "sleep" | "object-wait" | "socket") {
            return None;
        }
        let methods: Vec<MethodId> = builder.java_methods(node).collect();
        let own = methods
            .iter()
            .position(|method| !is_jdk(builder, *method))?;
        let method = *methods.get(own)?;
        let calls = methods.get(..own)?;
        let wait = match cause {
            "socket" if is_of_server(builder, node) => Wait::Client,
            "socket" if serving.reads_requests(method) => Wait::Request,
            "socket" => ready(builder, calls, method)?,
            _ if is_for_result(builder, node) => Wait::Result,
            _ => match called(builder, calls)? {
                Wait::Signal if takes(builder, method) => Wait::Queue,
                wait => wait,
            },
        };
        let depth = builder.program_methods(node).count();
        let outermost = methods.last().map(|method| builder.method_name(*method));
        let is_pool = |method: &MethodId| {
            let (class, name) = (builder.class_of(*method), builder.method_name(*method));
            POOLS
                .iter()
                .any(|(of, run)| class.ends_with(of) && name == *run)
        };
        Some(Place {
            method,
            node,
            wait,
            depth,
            is_in_pool: methods.iter().any(is_pool),
            is_main: outermost == Some("main"),
        })
    }
}

impl Builder {
    /// The methods of a stack that are not the JDK's, innermost first.
    pub(super) fn program_methods(&self, node: NodeId) -> impl Iterator<Item = MethodId> {
        let methods = self.java_methods(node);
        methods.filter(|method| !is_jdk(self, *method))
    }
}

/// Whether only a server's own code is on the stack: it waits for its client.
fn is_of_server(builder: &Builder, node: NodeId) -> bool {
    let is_of = |methods: &MethodId, packages: &[&str]| {
        let class = builder.class_of(*methods);
        packages.iter().any(|package| class.starts_with(package))
    };
    let mut methods = builder.program_methods(node);
    methods.all(|method| is_of(&method, &OF_SERVER))
        && builder
            .program_methods(node)
            .any(|method| is_of(&method, &[SERVER]))
}

/// Whether the program's frames around a wait say that it is for a result.
fn is_for_result(builder: &Builder, node: NodeId) -> bool {
    builder
        .program_methods(node)
        .take(RESULT_FRAMES)
        .any(|method| {
            // The package says nothing of the method, and the class of a thread's own loop says
            // only which thread it is.
            let own = builder.method_name(method).to_ascii_lowercase();
            let class = builder.class_of(method).rsplit('.').next().unwrap_or("");
            let is_of_method = own.contains(RESULT_METHOD);
            let name = match own.ends_with("run") {
                true => own,
                false => format!("{}.{own}", class.to_ascii_lowercase()),
            };
            is_of_method || RESULTS.iter().any(|word| name.contains(word))
        })
}

/// Whether a method of the program takes something out of a queue of its own.
fn takes(builder: &Builder, method: MethodId) -> bool {
    let name = builder.method_name(method);
    is_queue(builder.class_of(method)) && TAKES.iter().any(|take| name.starts_with(take))
}

/// Whether a class is a queue, or a part of one, by its name.
fn is_queue(class: &str) -> bool {
    let outer = class.split('$').next().unwrap_or(class);
    outer.ends_with("Queue") || outer.ends_with("Deque")
}

/// The program's innermost method on a stack.
pub(super) fn own_method(builder: &Builder, node: NodeId) -> Option<MethodId> {
    builder.program_methods(node).next()
}

fn is_jdk(builder: &Builder, method: MethodId) -> bool {
    is_of_platform(builder.class_of(method))
}

/// The wait of the JDK's outermost frame that is known, of these from the innermost on.
fn called(builder: &Builder, calls: &[MethodId]) -> Option<Wait> {
    let of = |method: &MethodId| wait(builder.class_of(*method), builder.method_name(*method));
    calls.iter().rev().find_map(of)
}

fn wait(class: &str, name: &str) -> Option<Wait> {
    let concurrent = class.strip_prefix(CONCURRENT);
    let of = |(begin, method, wait): &(&str, &str, Wait)| {
        let is_class = match begin.starts_with("java.") {
            true => class == *begin,
            false => concurrent.is_some_and(|class| class.starts_with(begin)),
        };
        (is_class && name.starts_with(method)).then_some(*wait)
    };
    if let Some(wait) = CALLS.iter().find_map(of) {
        return Some(wait);
    }
    let concurrent = concurrent?;
    let takes = TAKES.iter().any(|take| name.starts_with(take));
    match is_queue(concurrent) && takes {
        true => Some(Wait::Queue),
        // Room in a queue, a permit, a result, other threads at a barrier, a lock: not for work.
        false => Some(Wait::Result),
    }
}

/// Whether a wait for descriptors is one for any of several, by the calls from the innermost on, or
/// by the program's own native method.
fn ready(builder: &Builder, calls: &[MethodId], method: MethodId) -> Option<Wait> {
    let is_ready = |method: &MethodId| {
        let (class, name) = (builder.class_of(*method), builder.method_name(*method));
        let selects = class.starts_with("sun.nio.ch.") && class.contains("Selector");
        let accepts = name.to_ascii_lowercase().contains("accept");
        selects && name.to_ascii_lowercase().contains("select") || accepts
    };
    let is_native = || {
        let name = builder.method_name(method).to_ascii_lowercase();
        let kinds = ["epoll", "kqueue", "uring"];
        calls.is_empty() && kinds.iter().any(|kind| name.contains(kind))
    };
    (calls.iter().any(is_ready) || is_native()).then_some(Wait::Ready)
}
