//! Causes of waits, by functions of HotSpot and methods of the JDK and of common libraries. These
//! are tables of names; [`dwell_wall::waits`] has their format. Must not decide anything.

use dwell_wall::cause::Cause;
use dwell_wall::waits::{Waits, WayOut};

/// The tables of HotSpot and the JDK.
pub const WAITS: Waits = Waits {
    functions: FUNCTIONS,
    methods: METHODS,
    sockets: SOCKETS,
    files: FILES,
    pools: POOLS,
    loops: LOOPS,
    calls: CALLS,
    way_out: Some(WAY_OUT),
    libraries: &[],
};

/// Functions of libjvm, by parts of their mangled names. Order matters: a thread that waits for
/// memory may also wait at a safepoint while it does so.
const FUNCTIONS: &[(&str, Cause)] = &[
    ("alloc_page_stall", Cause::GcStall),
    ("stall_until_clear", Cause::GcStall),
    ("handle_alloc_failure", Cause::GcStall),
    ("do_collection_pause", Cause::GcStall),
    ("mem_allocate", Cause::GcStall),
    ("satisfy_failed_allocation", Cause::GcStall),
    ("satisfy_failed_metadata", Cause::GcStall),
    ("allocate_new_tlab", Cause::GcStall),
    ("12MemAllocator", Cause::GcStall),
    ("collect_as_vm_thread", Cause::GcStall),
    ("attempt_allocation_slow", Cause::GcStall),
    // A thread that requests a collection waits for it: System.gc() in all collectors.
    ("7collectEN7GCCause5Cause", Cause::GcStall),
    ("11ZDriverPort9send_sync", Cause::GcStall),
    ("JVM_GC", Cause::GcStall),
    ("wait_for_completion", Cause::JitWait),
    ("compile_method_base", Cause::JitWait),
    ("initialize_impl", Cause::ClassInit),
    ("16SystemDictionary", Cause::ClassInit),
    ("SafepointSynchronize5block", Cause::Stopped),
    // A stopped thread waits only here (utilities/waitBarrier.hpp). The frames above are not always
    // known.
    ("LinuxWaitBarrier4wait", Cause::Stopped),
    ("SafepointMechanism", Cause::Stopped),
    ("HandshakeState", Cause::Stopped),
    // A thread that requests an operation of the VM thread at a safepoint, or of other threads.
    ("8VMThread7execute", Cause::Stopped),
    ("8VMThread19wait_until_executed", Cause::Stopped),
    ("9Handshake7execute", Cause::Stopped),
    // Java threads of the VM itself. They wait for work if none of the above matches.
    ("notification_thread_entry", Cause::IdlePool),
    ("service_thread_entry", Cause::IdlePool),
    ("monitor_deflation_thread_entry", Cause::IdlePool),
    ("signal_thread_entry", Cause::IdlePool),
    ("recorderthread_entry", Cause::IdlePool),
    ("attach_listener_thread_entry", Cause::IdlePool),
    // The frame above cannot always be found: its address is in a register of the thread.
    ("AttachListener7dequeueEv", Cause::IdlePool),
    // The thread that started the JVM, after `main` returned: it waits for all others.
    ("jni_DestroyJavaVM", Cause::IdlePool),
    ("7Threads10destroy_vm", Cause::IdlePool),
    ("12CompileQueue3get", Cause::IdlePool),
    ("14NMethodSweeper12sweeper_loop", Cause::IdlePool),
    // Locks of the JVM's own, whatever for: if that is known it is one of these above.
    ("5Mutex14lock_contended", Cause::VmLock),
    ("13PlatformMutex4lock", Cause::VmLock),
    // JDK 8 to 13.
    ("7Monitor5ILock", Cause::VmLock),
    // A thread that starts another one waits until that exists.
    ("2os13create_thread", Cause::VmLock),
];

/// Methods whose name determines the cause of a wait.
const METHODS: &[(&str, &[&str], Cause)] = &[
    (
        "java/lang/Thread",
        &["sleep", "sleep0", "sleepNanos", "sleepNanos0"],
        Cause::Sleep,
    ),
    ("java/lang/Object", &["wait", "wait0"], Cause::ObjectWait),
    ("jdk/internal/misc/Unsafe", &["park"], Cause::Park),
    ("sun/misc/Unsafe", &["park"], Cause::Park),
    // Also matches if libjvm has no symbols.
    ("java/lang/Runtime", &["gc"], Cause::GcStall),
];

/// Classes of the JDK whose native methods wait for peers.
const SOCKETS: &[&str] = &[
    "sun/nio/ch/Net",
    "sun/nio/ch/SocketDispatcher",
    "sun/nio/ch/UnixDispatcher",
    "sun/nio/ch/DatagramDispatcher",
    "sun/nio/ch/EPoll",
    "sun/nio/ch/ServerSocketChannelImpl",
    "java/net/SocketInputStream",
    "java/net/SocketOutputStream",
    "java/net/PlainSocketImpl",
    "java/net/PlainDatagramSocketImpl",
    "java/net/Inet",
];

/// Classes of the JDK whose native methods wait for files and pipes.
const FILES: &[&str] = &[
    "sun/nio/ch/FileDispatcherImpl",
    "sun/nio/ch/UnixFileDispatcherImpl",
    "sun/nio/ch/FileChannelImpl",
    "sun/nio/fs/UnixNativeDispatcher",
    "java/io/FileInputStream",
    "java/io/FileOutputStream",
    "java/io/RandomAccessFile",
    "java/io/UnixFileSystem",
    "java/io/FileDescriptor",
];

/// Methods in which pooled workers, and the JDK's own threads, wait for work. Names of libraries
/// begin with a star, because other products include them in packages of their own.
const POOLS: &[&str] = &[
    // The JDK.
    "java/util/concurrent/ThreadPoolExecutor.getTask",
    "java/util/concurrent/ForkJoinPool.awaitWork",
    "java/util/concurrent/DelayScheduler.loop",
    "java/lang/ref/ReferenceQueue*.remove*",
    "java/lang/ref/Reference.waitForReferencePendingList",
    "java/lang/VirtualThread.takeVirtualThreadListToUnblock",
    "sun/nio/ch/EPollPort$EventHandlerTask.poll",
    "sun/nio/ch/Poller.pollerLoop",
    "sun/nio/ch/Poller.subPollerLoop",
    "sun/nio/ch/Poller.pollLoop",
    "sun/nio/ch/Poller.updateLoop",
    "java/lang/ProcessHandleImpl*.waitForProcessExit*",
    "java/lang/UNIXProcess.waitForProcessExit",
    "jdk/jfr/internal/PlatformRecorder.takeNap",
    "sun/net/www/http/KeepAliveCache.run",
    "sun/rmi/transport/tcp/TCPTransport$AcceptLoop.executeAcceptLoop",
    // Netty.
    "*/netty/channel/nio/NioEventLoop.select",
    "*/netty/channel/nio/NioIoHandler.select",
    "*/netty/channel/epoll/EpollEventLoop.epollWait*",
    "*/netty/channel/epoll/EpollIoHandler.epollWait*",
    "*/netty/channel/uring/IOUring*.*wait*",
    "*/netty/util/concurrent/SingleThreadEventExecutor.takeTask",
    "*/netty/util/HashedWheelTimer$Worker.waitForNextTick",
    // Servers.
    "*/apache/tomcat/util/threads/TaskQueue.*",
    "*/apache/tomcat/util/threads/ThreadPoolExecutor.getTask",
    "*/apache/tomcat/util/net/*Endpoint.serverSocketAccept",
    "*/eclipse/jetty/util/thread/QueuedThreadPool*.idleJobPoll",
    "*/eclipse/jetty/util/thread/ReservedThreadExecutor$ReservedThread.*ait*",
    "*/eclipse/jetty/io/ManagedSelector.nioSelect",
    "*/eclipse/jetty/io/ManagedSelector*.select",
    "*/jboss/threads/EnhancedQueueExecutor$PoolThreadNode.park",
    // Languages.
    "*kotlinx/coroutines/scheduling/CoroutineScheduler$Worker.park",
    "*kotlinx/coroutines/scheduling/CoroutineScheduler$Worker.tryPark",
    "*akka/actor/LightArrayRevolverScheduler*.waitNanos",
    "*/apache/pekko/actor/LightArrayRevolverScheduler*.waitNanos",
];

/// Methods that wait for work and call it, too: tasks of timers, handlers of servers.
const LOOPS: &[&str] = &[
    "java/util/TimerThread.mainLoop",
    "jdk/internal/net/http/HttpClientImpl$SelectorManager.run",
    "sun/net/httpserver/ServerImpl$Dispatcher.run",
    "*/apache/tomcat/util/net/NioEndpoint$Poller.run",
    "*/xnio/nio/WorkerThread.run",
];

/// Classes between such a loop and the wait: a task has classes of its own.
const CALLS: &[&str] = &["java/lang/Object", "sun/nio/ch/"];

/// How a virtual thread leaves its carrier (java.base, java/lang/VirtualThread.java, 21 to 28). The
/// JDK's own frames of this are the same for all waits.
const WAY_OUT: WayOut = WayOut {
    entry: ("jdk/internal/vm/Continuation", "yield"),
    pinned: ("java/lang/VirtualThread", "parkOnCarrierThread"),
    classes: &[
        "jdk/internal/vm/Continuation",
        "java/lang/VirtualThread",
        "java/lang/System$",
        "jdk/internal/misc/VirtualThreads",
        "jdk/internal/access/",
    ],
    sleeps: (&["java/lang/VirtualThread", "java/lang/Thread"], "sleep"),
    pollers: &[
        "sun/nio/ch/Poller",
        "sun/nio/ch/NioSocketImpl",
        "sun/nio/ch/SelChImpl",
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_wall::cause::{Call, Facts, Fd, Known, Monitor, Named, Os};
    use dwell_wall::pools::Pools;

    fn java<'a>(class: &'a str, name: &'a str) -> Named<'a> {
        Named {
            class,
            name,
            is_managed: true,
        }
    }

    fn vm(name: &str) -> Named<'_> {
        Named {
            class: "libjvm.so",
            name,
            is_managed: false,
        }
    }

    const FUTEX: Os = Os::Call(Call::Futex);

    fn of(os: Os, monitor: Monitor, is_owned_lock: bool, frames: &[Named<'_>]) -> &'static str {
        let facts = Facts {
            os,
            monitor,
            is_owned_lock,
            frames,
        };
        Known::new(&WAITS).cause(&facts).name()
    }

    #[test]
    fn jvm_threads_without_work_are_idle_in_any_wait() {
        let accept = Os::Call(Call::On(Fd::Socket));
        for (os, function) in [
            (FUTEX, "_ZL25notification_thread_entryP10JavaThreadS0_"),
            (FUTEX, "_Z20recorderthread_entryP10JavaThreadS0_"),
            (accept, "_ZN19LinuxAttachListener7dequeueEv"),
            (accept, "_ZN19PosixAttachListener7dequeueEv"),
            (FUTEX, "jni_DestroyJavaVM"),
            (FUTEX, "_ZN7Threads10destroy_vmEv"),
        ] {
            let found = of(os, Monitor::None, false, &[vm("accept"), vm(function)]);
            assert_eq!(found, "idle-pool", "{function}");
        }
        // Shutdown hooks belong to the program.
        let hook = java("com/acme/Hook", "run");
        let frames = [vm("accept"), hook, vm("jni_DestroyJavaVM")];
        assert_eq!(of(accept, Monitor::None, false, &frames), "socket");
    }

    #[test]
    fn running_thread_has_no_wait_cause() {
        let park = [java("jdk/internal/misc/Unsafe", "park")];
        assert_eq!(of(Os::Running, Monitor::None, true, &park), "running");
        assert_eq!(
            of(Os::Runnable, Monitor::Entering, false, &park),
            "runnable"
        );
    }

    #[test]
    fn monitors_and_locks() {
        let frames = [java("app/Account", "transfer")];
        assert_eq!(of(FUTEX, Monitor::Entering, false, &frames), "monitor");
        let park = [
            vm("_ZN14os6LinuxE4parkEv"),
            java("jdk/internal/misc/Unsafe", "park"),
            java("java/util/concurrent/locks/LockSupport", "park"),
            java("app/Account", "transfer"),
        ];
        assert_eq!(of(FUTEX, Monitor::None, true, &park), "lock");
        assert_eq!(of(FUTEX, Monitor::None, false, &park), "park");
        let wait = [java("java/lang/Object", "wait0"), java("app/Queue", "take")];
        assert_eq!(of(FUTEX, Monitor::Waiting, false, &wait), "object-wait");
        let native = [java("app/Native", "call")];
        assert_eq!(of(FUTEX, Monitor::Waiting, false, &native), "object-wait");
    }

    #[test]
    fn pooled_workers_are_idle_only_while_they_wait_for_work() {
        let idle = [
            java("jdk/internal/misc/Unsafe", "park"),
            java("java/util/concurrent/locks/LockSupport", "park"),
            java("java/util/concurrent/LinkedBlockingQueue", "take"),
            java("java/util/concurrent/ThreadPoolExecutor", "getTask"),
            java("java/util/concurrent/ThreadPoolExecutor", "runWorker"),
        ];
        assert_eq!(of(FUTEX, Monitor::None, false, &idle), "idle-pool");
        // The queue's lock, which another worker holds.
        assert_eq!(of(FUTEX, Monitor::None, true, &idle), "lock");
        assert_eq!(of(FUTEX, Monitor::Entering, false, &idle), "monitor");
        assert_eq!(of(Os::Running, Monitor::None, false, &idle), "running");
        let task = [
            java("java/lang/Thread", "sleep0"),
            java("app/Task", "run"),
            java("java/util/concurrent/ThreadPoolExecutor", "runWorker"),
        ];
        assert_eq!(of(FUTEX, Monitor::None, false, &task), "sleep");
    }

    #[test]
    fn waits_in_the_vm() {
        let wait = |function| [vm("futex_wait"), vm(function), java("app/A", "b")];
        for (function, expected) in [
            (
                "_ZN14ZPageAllocator16alloc_page_stallEP15ZPageAllocation",
                "gc-stall",
            ),
            ("_ZN12MemAllocator8allocateEv", "gc-stall"),
            (
                "_ZN13InstanceKlass15initialize_implEP10JavaThread",
                "class-init",
            ),
            (
                "_ZN13CompileBroker19wait_for_completionEP11CompileTask",
                "jit-wait",
            ),
            ("_ZN14NMethodSweeper12sweeper_loopEv", "idle-pool"),
            ("_ZN20SafepointSynchronize5blockEP10JavaThread", "safepoint"),
            ("_ZN16LinuxWaitBarrier4waitEi", "safepoint"),
            ("_ZN5Mutex14lock_contendedEP6Thread", "vm-lock"),
            ("_ZN7Monitor5ILockEP6Thread", "vm-lock"),
            ("_ZN2os13create_threadEP6ThreadNS_10ThreadTypeEm", "vm-lock"),
            ("_ZN8VMThread7executeEP12VM_Operation", "safepoint"),
            (
                "_ZN9Handshake7executeEP16HandshakeClosureP10JavaThread",
                "safepoint",
            ),
        ] {
            assert_eq!(of(FUTEX, Monitor::None, false, &wait(function)), expected);
        }
        // A thread that requests a collection waits for it, in any role.
        let asked = [
            vm("_ZN8VMThread7executeEP12VM_Operation"),
            vm("_ZN20ParallelScavengeHeap7collectEN7GCCause5CauseE"),
            vm("JVM_GC"),
            java("java/lang/Runtime", "gc"),
        ];
        assert_eq!(of(FUTEX, Monitor::None, false, &asked), "gc-stall");
        assert_eq!(of(FUTEX, Monitor::None, false, &asked[3..]), "gc-stall");
        // A thread of the VM that is working.
        let asks = [
            vm("_ZN8VMThread7executeEP12VM_Operation"),
            vm("_ZL9dump_heapP15AttachOperationP12outputStream"),
            vm("_ZL28attach_listener_thread_entryP10JavaThreadS0_"),
        ];
        assert_eq!(of(FUTEX, Monitor::None, false, &asks), "safepoint");
        assert_eq!(of(FUTEX, Monitor::None, false, &asks[2..]), "idle-pool");
        // Functions further down do not count.
        let below = [
            java("jdk/internal/misc/Unsafe", "park"),
            vm("_ZN13InstanceKlass15initialize_implEP10JavaThread"),
        ];
        assert_eq!(of(FUTEX, Monitor::None, false, &below), "park");
    }

    #[test]
    fn sockets_files_and_the_rest() {
        let read = [java("java/io/FileInputStream", "readBytes")];
        let on = |fd| Os::Call(Call::On(fd));
        assert_eq!(of(on(Fd::File), Monitor::None, false, &read), "file");
        assert_eq!(of(on(Fd::Socket), Monitor::None, false, &read), "socket");
        assert_eq!(of(Os::Waiting, Monitor::None, false, &read), "file");
        let accept = [java("sun/nio/ch/Net", "accept")];
        assert_eq!(of(Os::Waiting, Monitor::None, false, &accept), "socket");
        let native = [java("app/Native", "call")];
        assert_eq!(
            of(Os::Call(Call::Many), Monitor::None, false, &native),
            "socket"
        );
        assert_eq!(
            of(Os::Call(Call::Sleep), Monitor::None, false, &native),
            "sleep"
        );
        assert_eq!(of(Os::NoCall, Monitor::None, false, &native), "page-fault");
        assert_eq!(of(FUTEX, Monitor::None, false, &native), "unknown");
        assert_eq!(of(Os::Waiting, Monitor::None, false, &[]), "unknown");
    }

    #[test]
    fn every_known_pool_is_a_method() {
        for known in POOLS.iter().chain(LOOPS) {
            Pools::default().add(known).unwrap();
        }
    }

    fn is_idle(pools: &Pools, class: &str, name: &str) -> bool {
        pools.is_idle(&[java(class, name)])
    }

    #[test]
    fn tasks_that_loops_call_are_no_idle_time() {
        let select = java("sun/nio/ch/SelectorImpl", "select");
        let wait = java("java/lang/Object", "wait");
        let socket = Os::Call(Call::On(Fd::Socket));
        let read = java("sun/nio/ch/NioSocketImpl", "read");
        let task = java("app/Task", "run");
        for (inner, class, method) in [
            (wait, "java/util/TimerThread", "mainLoop"),
            (select, "sun/net/httpserver/ServerImpl$Dispatcher", "run"),
            (select, "org/xnio/nio/WorkerThread", "run"),
        ] {
            let each = java(class, method);
            let found = of(socket, Monitor::None, false, &[inner, each]);
            assert_eq!(found, "idle-pool", "{class}");
            let called = of(socket, Monitor::None, false, &[read, task, each]);
            assert_eq!(called, "socket", "{class}");
        }
    }

    #[test]
    fn known_waits_are_found() {
        let pools = Pools::of(POOLS);
        let queue = "java/lang/ref/ReferenceQueueWithOverflow";
        assert!(is_idle(&pools, queue, "remove0"));
        assert!(is_idle(
            &pools,
            "io/netty/channel/nio/NioEventLoop",
            "select"
        ));
        assert!(!is_idle(
            &pools,
            "io/netty/channel/nio/NioEventLoop",
            "selectNow"
        ));
        assert!(!is_idle(&pools, "app/Worker", "getTask"));
        // Libraries that other products include.
        for class in [
            "io/grpc/netty/shaded/io/netty/channel/nio/NioEventLoop",
            "com/datastax/shaded/netty/channel/nio/NioEventLoop",
            "org/apache/flink/shaded/netty4/io/netty/channel/nio/NioEventLoop",
        ] {
            assert!(is_idle(&pools, class, "select"), "{class}");
            assert!(!is_idle(&pools, class, "run"), "{class}");
        }
        let other = "app/mynetty/channel/nio/NioEventLoop";
        assert!(!is_idle(&pools, other, "select"));
        // Threads of the JDK itself.
        for (class, method) in [
            ("java/util/concurrent/DelayScheduler", "loop"),
            ("jdk/jfr/internal/PlatformRecorder", "takeNap"),
            ("sun/net/www/http/KeepAliveCache", "run"),
            (
                "sun/rmi/transport/tcp/TCPTransport$AcceptLoop",
                "executeAcceptLoop",
            ),
        ] {
            assert!(is_idle(&pools, class, method), "{class}.{method}");
        }
    }

    /// The cause of a virtual thread without a carrier, by the frames below the JDK's own.
    fn of_yielded(below: &[(&'static str, &'static str)], is_owned_lock: bool) -> &'static str {
        let out = [
            ("jdk/internal/vm/Continuation", "yield"),
            ("java/lang/VirtualThread", "yieldContinuation"),
            ("java/lang/VirtualThread", "park"),
        ];
        let frames: Vec<Named<'_>> = (out.iter().chain(below))
            .map(|(class, name)| java(class, name))
            .collect();
        of(FUTEX, Monitor::None, is_owned_lock, &frames)
    }

    #[test]
    fn frames_below_way_out_decide_cause() {
        let park = [
            ("java/lang/System$2", "parkVirtualThread"),
            ("jdk/internal/misc/VirtualThreads", "park"),
            ("java/util/concurrent/locks/LockSupport", "park"),
            ("app/Queue", "take"),
        ];
        assert_eq!(of_yielded(&park, false), "park");
        assert_eq!(of_yielded(&park, true), "lock");
        let sleep = [
            ("java/lang/VirtualThread", "parkNanos"),
            ("java/lang/VirtualThread", "sleepNanos"),
            ("java/lang/Thread", "sleep"),
        ];
        assert_eq!(of_yielded(&sleep, false), "sleep");
        let read = [
            ("java/util/concurrent/locks/LockSupport", "park"),
            ("sun/nio/ch/Poller", "poll"),
            ("sun/nio/ch/NioSocketImpl", "park"),
        ];
        assert_eq!(of_yielded(&read, false), "socket");
        assert_eq!(
            of_yielded(&[("sun/nio/ch/NioSocketImpl", "park")], false),
            "socket"
        );
        assert_eq!(of_yielded(&[], false), "park");
        // One that owns a monitor stays on its carrier up to JDK 23.
        let pinned = [
            ("jdk/internal/misc/Unsafe", "park"),
            ("java/lang/VirtualThread", "parkOnCarrierThread"),
        ];
        let frames = |below: &[(&'static str, &'static str)]| -> Vec<Named<'_>> {
            let all = pinned.iter().chain(below);
            all.map(|(class, name)| java(class, name)).collect()
        };
        assert_eq!(of(FUTEX, Monitor::None, false, &frames(&sleep)), "sleep");
        assert_eq!(of(FUTEX, Monitor::None, false, &frames(&read)), "socket");
        assert_eq!(of(FUTEX, Monitor::None, true, &frames(&park)), "lock");
    }
}
