//! Threads as frameworks have them, and threads that only look like these.

use crate::builder::Builder;
use crate::frame::FrameKind;
use crate::profile::Profile;
use crate::sample::{Context, ContextId, Look, Sample, ThreadId};
use crate::thread_time::ThreadTime;

const MS: u64 = 1_000_000;
const PARK: &str = "jdk.internal.misc.Unsafe.park;java.util.concurrent.locks.LockSupport.park;";
const COND: &str = "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await;";
const WAIT: &str = "java.lang.Object.wait0;java.lang.Object.wait;";
const SELECT: &str = "sun.nio.ch.EPoll.wait;sun.nio.ch.EPollSelectorImpl.doSelect;\
                      sun.nio.ch.SelectorImpl.lockAndDoSelect;sun.nio.ch.SelectorImpl.select;";

/// One thread of a recording of 30 s.
struct One {
    builder: Builder,
    thread: ThreadId,
    turns: u64,
    context: Option<ContextId>,
}

impl One {
    fn new() -> One {
        let mut builder = Builder::default();
        let thread = builder.thread("t", 1, 1, false);
        One {
            builder,
            thread,
            turns: 10,
            context: None,
        }
    }

    fn node(&mut self, stack: &str) -> u32 {
        let frames = stack.split(';').rev().map(|path| {
            let (path, kind) = match path.trim().strip_suffix("[native]") {
                Some(path) => (path, FrameKind::Native),
                None => (path.trim(), FrameKind::C2),
            };
            let (class, name) = path.rsplit_once('.').unwrap();
            let method = self.builder.method(class, name, "");
            self.builder.frame(method, 0, kind)
        });
        let frames: Vec<u32> = frames.collect();
        self.builder.stack(frames)
    }

    fn waits(&mut self, cause: &str, stack: &str, ms: u64) -> &mut One {
        let node = self.node(stack);
        let look = Look {
            thread: self.thread,
            node,
            cause: self.builder.cause(cause),
            weight_ns: ms * MS,
            count: ms / 100,
            context: self.context,
            ..Look::PLAIN
        };
        self.builder.look(look);
        self
    }

    fn runs(&mut self, stack: &str, ms: u64) -> &mut One {
        let node = self.node(stack);
        for _ in 0..ms / 10 {
            self.builder.sample(Sample {
                time_ns: 0,
                thread: self.thread,
                node,
                weight: 10 * MS,
                count: 1,
                failure: None,
                context: None,
            });
        }
        self
    }

    fn profile(&mut self) -> Profile {
        let mut builder = self.builder.clone();
        builder.thread_times.push(ThreadTime {
            thread: self.thread,
            duration_ns: 30_000 * MS,
            turns: self.turns,
            ..ThreadTime::default()
        });
        builder.mark_idle_loops();
        builder.finish()
    }

    /// The cause of the first wait.
    fn cause(&mut self) -> String {
        let profile = self.profile();
        profile.names().text(profile.looks()[0].cause).to_owned()
    }
}

/// The cause of a thread's wait that waits so all the time but for this much CPU time elsewhere.
fn cause_of(cause: &str, stack: &str, elsewhere: &str, cpu_ms: u64) -> String {
    let mut one = One::new();
    one.waits(cause, stack, 30_000 - cpu_ms);
    if cpu_ms > 0 {
        one.runs(elsewhere, cpu_ms);
    }
    one.cause()
}

/// Causes and stacks of threads without work; `PARK` and the like stand for frames of the JDK, and
/// `juc` for its package.
const QUIET: &[(&str, &str)] = &[
    (
        "park",
        "COND;juc.ArrayBlockingQueue.poll;kafka.network.RequestChannel.receiveRequest;\
         kafka.server.KafkaRequestHandler.run;java.lang.Thread.run",
    ),
    (
        "park",
        "COND;juc.DelayQueue.poll;kafka.utils.timer.SystemTimer.advanceClock;\
         kafka.server.DelayedOperationPurgatory.advanceClock;\
         kafka.server.ExpiredOperationReaper.doWork;kafka.utils.ShutdownableThread.run",
    ),
    (
        "park",
        "COND;juc.LinkedBlockingDeque.take;org.apache.spark.util.EventLoop$$anon$1.run",
    ),
    // A pool whose only task never ends.
    (
        "park",
        "COND;juc.LinkedBlockingQueue.take;org.apache.spark.rpc.netty.MessageLoop.receiveLoop;\
         org.apache.spark.rpc.netty.MessageLoop$$anon$1.run;juc.ThreadPoolExecutor.runWorker;\
         java.lang.Thread.run",
    ),
    (
        "park",
        "COND;juc.LinkedBlockingQueue.poll;org.apache.kafka.raft.internals.BlockingMessageQueue\
         .poll;org.apache.kafka.raft.KafkaRaftClientDriver.doWork;kafka.utils.Thread.run",
    ),
    (
        "object-wait",
        "WAIT;com.lmax.disruptor.BlockingWaitStrategy.waitFor;\
         com.lmax.disruptor.ProcessingSequenceBarrier.waitFor;\
         com.lmax.disruptor.BatchEventProcessor.processEvents;\
         com.lmax.disruptor.BatchEventProcessor.run;java.lang.Thread.run",
    ),
    // Queues of the program's own.
    (
        "park",
        "PARK;com.hazelcast.internal.util.concurrent.MPSCQueue.takeAll;\
         com.hazelcast.internal.util.concurrent.MPSCQueue.take;\
         com.hazelcast.spi.InboundResponseHandlerSupplier$ResponseThread.doRun;\
         com.hazelcast.spi.InboundResponseHandlerSupplier$ResponseThread.executeRun;\
         com.hazelcast.internal.util.executor.HazelcastManagedThread.run",
    ),
    ("park", "PARK;org.apache.cassandra.concurrent.SEPWorker.run"),
    ("park", "PARK;zio.internal.ZScheduler$$anon$4.run"),
    (
        "park",
        "PARK;cats.effect.unsafe.SleepSystem$.poll;cats.effect.unsafe.WorkerThread.park;\
         cats.effect.unsafe.WorkerThread.run",
    ),
    (
        "park",
        "PARK;kotlinx.coroutines.DefaultExecutor.run;java.lang.Thread.run",
    ),
    // Spring Boot's `container-0`.
    (
        "sleep",
        "java.lang.Thread.sleep;org.apache.catalina.core.StandardServer.await;\
         org.springframework.boot.web.embedded.tomcat.TomcatWebServer$1.run",
    ),
    ("object-wait", "WAIT;app.Janitor.run;java.lang.Thread.run"),
    // Up to JDK 18 the methods that wait with a limit are native.
    (
        "object-wait",
        "libc.so.6.pthread_cond_timedwait[native];java.lang.Object.wait[native];\
         org.quartz.simpl.SimpleThreadPool$WorkerThread.run",
    ),
    (
        "sleep",
        "java.lang.Thread.sleep[native];org.apache.catalina.core.StandardServer.await;\
         org.springframework.boot.web.embedded.tomcat.TomcatWebServer$1.run",
    ),
    (
        "socket",
        "SELECT;org.apache.kafka.common.network.Selector.select;\
         org.apache.kafka.common.network.Selector.poll;kafka.network.Processor.poll;\
         kafka.network.Processor.run;java.lang.Thread.run",
    ),
    (
        "socket",
        "sun.nio.ch.Net.accept;sun.nio.ch.ServerSocketChannelImpl.accept;app.Acceptor.run",
    ),
    (
        "socket",
        "acme.shaded.netty.channel.epoll.Native.epollWait[native];acme.shaded.netty.Loop.run",
    ),
];

#[test]
fn quiet_threads_of_frameworks_are_idle() {
    for (cause, stack) in QUIET {
        let stack = stack
            .replace("PARK;", PARK)
            .replace("COND;", &format!("{PARK}{COND}"))
            .replace("WAIT;", WAIT)
            .replace("SELECT;", SELECT)
            .replace("juc.", "java.util.concurrent.");
        let mut frames = stack.rsplit(';');
        let root = frames.find(|path| !path.starts_with("java.")).unwrap();
        for cpu_ms in [0, 100, 500] {
            // The loop calls the work that it does at other times.
            let work = format!("app.Codec.decode;app.Work.run;{root}");
            let found = cause_of(cause, &stack, &work, cpu_ms);
            assert_eq!(found, "idle-pool", "{stack} {cpu_ms}");
        }
    }
}

#[test]
fn load_of_others_does_not_make_a_thread_busy() {
    let wait = format!("{WAIT}app.Janitor.run;java.lang.Thread.run");
    let mut one = One::new();
    one.waits("object-wait", &wait, 10_000)
        .waits("runnable", &wait, 15_000)
        .waits("throttled", &wait, 5_000);
    let profile = one.profile();
    let causes: Vec<_> = (profile.looks().iter())
        .map(|look| profile.names().text(look.cause))
        .collect();
    assert_eq!(causes, ["idle-pool", "runnable", "throttled"]);
}

#[test]
fn main_threads_that_wait_for_the_end_are_idle() {
    let deep = "app.Driver.runJob;app.Driver.collect;app.Report.of;app.Job.run;app.Main.main";
    let future = "java.util.concurrent.CompletableFuture.get;";
    let latch = "java.util.concurrent.CountDownLatch.await;";
    for (cause, stack) in [
        (
            "park",
            format!("{PARK}{latch}kafka.server.KafkaServer.awaitShutdown;kafka.Kafka.main"),
        ),
        ("object-wait", format!("{WAIT}java.lang.Thread.join;{deep}")),
        ("park", format!("{PARK}{future}{deep}")),
        ("sleep", format!("java.lang.Thread.sleep;{deep}")),
        (
            "park",
            format!(
                "{PARK}{COND}java.util.concurrent.LinkedBlockingQueue.take;cats.effect.IOApp.main"
            ),
        ),
    ] {
        assert_eq!(cause_of(cause, &stack, "", 0), "idle-pool", "{stack}");
    }
    // One that gets answers all the time has work.
    let mut one = One::new();
    one.turns = 150;
    one.waits(
        "park",
        &format!("{PARK}{future}app.Client.call;app.Main.main"),
        30_000,
    );
    assert_eq!(one.cause(), "park");
}

#[test]
fn waits_for_locks_peers_and_results_are_never_idle() {
    let call = "app.Client.call;app.Worker.run;java.lang.Thread.run";
    let concurrent = "java.util.concurrent";
    for (cause, stack) in [
        ("monitor", call.to_owned()),
        (
            "lock",
            format!("{PARK}{concurrent}.locks.ReentrantLock.lock;{call}"),
        ),
        // Its owner is not known.
        (
            "park",
            format!("{PARK}{concurrent}.locks.ReentrantReadWriteLock$ReadLock.lock;{call}"),
        ),
        (
            "park",
            format!("{PARK}{concurrent}.Semaphore.acquire;{call}"),
        ),
        (
            "park",
            format!("{PARK}{concurrent}.locks.AbstractQueuedSynchronizer.acquire;{call}"),
        ),
        (
            "park",
            format!("{PARK}{concurrent}.CompletableFuture.get;{call}"),
        ),
        ("park", format!("{PARK}{concurrent}.FutureTask.get;{call}")),
        (
            "park",
            format!("{PARK}com.google.common.util.concurrent.AbstractFuture.get;{call}"),
        ),
        (
            "park",
            format!("{PARK}io.grpc.stub.ClientCalls$ThreadlessExecutor.waitAndDrain;{call}"),
        ),
        (
            "object-wait",
            format!("{WAIT}io.netty.util.concurrent.DefaultPromise.await;{call}"),
        ),
        // Room in a queue, and other threads at a barrier.
        (
            "park",
            format!("{PARK}{COND}{concurrent}.ArrayBlockingQueue.put;{call}"),
        ),
        (
            "park",
            format!("{PARK}{COND}{concurrent}.CyclicBarrier.await;{call}"),
        ),
        // One peer's answer.
        (
            "socket",
            format!("sun.nio.ch.Net.poll;sun.nio.ch.NioSocketImpl.read;app.Jdbc.ask;{call}"),
        ),
        ("file", format!("java.io.FileInputStream.readBytes;{call}")),
        ("unknown", format!("app.Native.call;{call}")),
        // A task of a pool sleeps, and keeps a worker.
        (
            "sleep",
            format!(
                "java.lang.Thread.sleep;app.Task.run;{concurrent}.ThreadPoolExecutor.runWorker"
            ),
        ),
    ] {
        for cpu_ms in [0, 200] {
            let found = cause_of(cause, &stack, call, cpu_ms);
            assert_eq!(found, cause, "{stack} {cpu_ms}");
        }
    }
}

#[test]
fn blocking_calls_wait_for_results() {
    let get = "reactor.core.publisher.BlockingMonoSubscriber.blockingGet";
    let stack = format!("{PARK}{get};app.Worker.run;java.lang.Thread.run");
    assert_eq!(cause_of("park", &stack, "", 0), "park");
}

#[test]
fn waits_amid_work_are_not_those_of_a_loop() {
    let rows = "app.Row.lock;app.Statement.update;app.Session.run";
    // Half of the work is done by what waits in the end, half elsewhere.
    let of = |cause: &str, wait: &str| {
        let mut one = One::new();
        one.waits(cause, &format!("{wait}{rows}"), 29_200);
        one.runs("app.Parser.parse;app.Statement.update;app.Session.run", 400);
        one.runs("app.Codec.write;app.Session.run", 400);
        one.cause()
    };
    assert_eq!(of("object-wait", WAIT), "object-wait");
    assert_eq!(of("park", PARK), "park");
    // A thread that sends work to another thread through a queue and waits for the answer.
    let poll = format!("{PARK}{COND}java.util.concurrent.SynchronousQueue.poll;");
    let mut one = One::new();
    one.waits(
        "park",
        &format!("{poll}app.Client.call;app.Worker.run"),
        29_500,
    );
    one.runs("app.Codec.encode;app.Client.call;app.Worker.run", 500);
    assert_eq!(one.cause(), "park");
}

#[test]
fn busy_threads_are_idle_in_the_wait_of_their_loop_only() {
    let take = format!(
        "{PARK}{COND}java.util.concurrent.ArrayBlockingQueue.poll;app.Channel.receive;\
         app.Handler.run"
    );
    let mut one = One::new();
    one.waits("park", &take, 12_000)
        .waits(
            "park",
            &format!("{PARK}app.Cache.load;app.Api.handle;app.Handler.run"),
            3_000,
        )
        .runs("app.Api.handle;app.Handler.run", 15_000);
    let profile = one.profile();
    let causes = profile
        .looks()
        .iter()
        .map(|look| profile.names().text(look.cause));
    assert_eq!(causes.collect::<Vec<_>>(), ["idle-pool", "park"]);
}

#[test]
fn requests_pollers_and_short_lives_are_not_idle() {
    let take = format!("{PARK}{COND}java.util.concurrent.LinkedBlockingQueue.take;app.Worker.run");
    let sleep = "java.lang.Thread.sleep;app.Poller.run";
    let with = |change: &dyn Fn(&mut One)| {
        let mut one = One::new();
        change(&mut one);
        one.cause()
    };
    assert_eq!(
        with(&|one| {
            one.waits("park", &take, 30_000);
        }),
        "idle-pool"
    );
    assert_eq!(
        with(&|one| {
            one.waits("park", &take, 4_000);
        }),
        "park"
    );
    assert_eq!(
        with(&|one| {
            one.waits("sleep", sleep, 30_000);
        }),
        "idle-pool"
    );
    let polls = |one: &mut One| {
        one.turns = 3_000;
        one.waits("sleep", sleep, 30_000);
    };
    assert_eq!(with(&polls), "sleep");
    let request = |one: &mut One| {
        one.context = Some(one.builder.context(Context::default()));
        one.waits("park", &take, 30_000);
    };
    assert_eq!(with(&request), "park");
}

#[test]
fn virtual_threads_are_idle_at_queues_and_for_clients() {
    let cause = |cause: &str, stack: &str, ms: u64| {
        let mut one = One::new();
        one.thread = one.builder.thread("v", 0, 2, true);
        one.waits(cause, stack, ms);
        one.cause()
    };
    let take = format!("{PARK}{COND}java.util.concurrent.LinkedBlockingQueue.take;app.Worker.run");
    assert_eq!(cause("park", &take, 30_000), "idle-pool");
    assert_eq!(cause("park", &take, 4_000), "park");
    // The rest of such a task follows.
    let wait = format!("{PARK}{COND}app.Task.run;java.lang.VirtualThread.run");
    assert_eq!(cause("park", &wait, 30_000), "park");
    let sleep = "java.lang.Thread.sleep;app.Task.run;java.lang.VirtualThread.run";
    assert_eq!(cause("sleep", sleep, 30_000), "sleep");
    const READ: &str = "sun.nio.ch.NioSocketImpl.read;io.helidon.common.socket.PlainSocket.get;";
    const SERVER: &str = "io.helidon.webserver.http1.Http1Connection.handle";
    assert_eq!(
        cause("socket", &format!("{READ}{SERVER}"), 1_000),
        "idle-pool"
    );
    // A handler asks, or a client of the same library.
    for asks in ["app.Quote.ask", "io.helidon.webclient.http1.Http1Call.send"] {
        let stack = format!("{READ}{asks};{SERVER}");
        assert_eq!(cause("socket", &stack, 30_000), "socket", "{asks}");
    }
    let other = READ.trim_end_matches(';');
    assert_eq!(cause("socket", other, 30_000), "socket");
}

/// The causes of two threads that read from these peers at one place.
fn readers(peers: [&[&str]; 2], stack: &str) -> Vec<String> {
    let mut one = One::new();
    for (number, peers) in peers.iter().enumerate() {
        one.thread = one.builder.thread(
            &format!("c-{number}"),
            7 + number as i64,
            7 + number as i64,
            false,
        );
        for peer in *peers {
            one.waits("socket", stack, 29_000 / peers.len() as u64);
            let detail = one.builder.name(peer);
            let place = one.builder.looks_len() - 1;
            one.builder.set_detail(place, Some(detail));
        }
    }
    let profile = one.profile();
    let causes = profile.looks().iter();
    causes
        .map(|look| profile.names().text(look.cause).to_owned())
        .collect()
}

#[test]
fn connections_of_clients_are_idle_between_requests() {
    const READ: &str = "sun.nio.ch.Net.poll;sun.nio.ch.NioSocketImpl.read;\
                        java.io.DataInputStream.readInt;org.hsqldb.server.ServerConnection.run;\
                        java.lang.Thread.run";
    let own = ["peer [::ffff:10.0.0.1]:46076", "peer 10.0.0.2:46064"];
    let idle = readers([&own[..1], &own[1..]], READ);
    assert_eq!(idle, ["idle-pool"; 2]);
    for (peers, why) in [
        ([&own[..1], &own[..1]], "one service, asked by both"),
        ([&own[..], &own[1..]], "each asks several"),
        ([&own[..1], &["peer 10.0.0.2:5432"][..]], "a service's port"),
        (
            [&own[..1], &["peer 10.0.0.3:46076"][..]],
            "one port of a service",
        ),
        ([&own[..1], &["a file"][..]], "one connection only"),
    ] {
        let causes = readers(peers, READ);
        assert!(
            causes.iter().all(|cause| cause == "socket"),
            "{why}: {causes:?}"
        );
    }
    // Deep below a thread's root it may be an answer.
    let deep = (0..7).fold("app.Main.run".to_owned(), |stack, n| {
        format!("app.A.f{n};{stack}")
    });
    let read = format!("sun.nio.ch.NioSocketImpl.read;{deep}");
    assert_eq!(readers([&own[..1], &own[1..]], &read)[0], "socket");
}
