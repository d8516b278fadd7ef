//! Why a thread was not running: exactly one cause for each look, from what the operating system,
//! the JVM and the stack say.
//!
//! What the OS says goes first (a thread on a processor waits for nothing), then what the JVM says
//! of its own waits, then frames, then the system call. A stack is only read from its top: what a
//! thread waits for is near there.

pub use crate::facts::{Call, Cause, Facts, Fd, Monitor, Named, Os};
use crate::pools::Pools;

/// Frames of the VM that are looked at above the first Java frame.
const VM_FRAMES_MAX: usize = 40;

/// What the functions of libjvm say that a thread waits in, by parts of their mangled names, in
/// this order: a thread that waits for memory may wait at a safepoint in doing so.
const VM_WAITS: &[(&str, Cause)] = &[
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
    // Who asks for a collection waits for it: System.gc() in all collectors.
    ("7collectEN7GCCause5Cause", Cause::GcStall),
    ("11ZDriverPort9send_sync", Cause::GcStall),
    ("JVM_GC", Cause::GcStall),
    ("wait_for_completion", Cause::JitWait),
    ("compile_method_base", Cause::JitWait),
    ("initialize_impl", Cause::ClassInit),
    ("16SystemDictionary", Cause::ClassInit),
    ("SafepointSynchronize5block", Cause::Safepoint),
    // What threads stand at until it is over, and at nothing else (utilities/waitBarrier.hpp): the
    // frames above are not always known.
    ("LinuxWaitBarrier4wait", Cause::Safepoint),
    ("SafepointMechanism", Cause::Safepoint),
    ("HandshakeState", Cause::Safepoint),
    // Who asks the VM's thread to do something while all stand still, or others to do it.
    ("8VMThread7execute", Cause::Safepoint),
    ("8VMThread19wait_until_executed", Cause::Safepoint),
    ("9Handshake7execute", Cause::Safepoint),
    // Mono: a thread that comes or goes waits for the collector's lock.
    ("mono_thread_info_set_flags", Cause::GcStall),
    // The VM's own Java threads, which wait for something to do if it is none of these.
    ("notification_thread_entry", Cause::IdlePool),
    ("service_thread_entry", Cause::IdlePool),
    ("monitor_deflation_thread_entry", Cause::IdlePool),
    ("signal_thread_entry", Cause::IdlePool),
    ("recorderthread_entry", Cause::IdlePool),
    ("attach_listener_thread_entry", Cause::IdlePool),
    // Its frame above cannot always be found: it is addressed by a register that only the thread
    // itself knows.
    ("AttachListener7dequeueEv", Cause::IdlePool),
    // The thread that started the JVM, once `main` is over: it waits for all others.
    ("jni_DestroyJavaVM", Cause::IdlePool),
    ("7Threads10destroy_vm", Cause::IdlePool),
    ("12CompileQueue3get", Cause::IdlePool),
    ("14NMethodSweeper12sweeper_loop", Cause::IdlePool),
];

/// Java methods whose wait says what is waited for.
const JAVA_WAITS: &[(&str, &[&str], Cause)] = &[
    (
        "java/lang/Thread",
        &["sleep", "sleep0", "sleepNanos", "sleepNanos0"],
        Cause::Sleep,
    ),
    ("java/lang/Object", &["wait", "wait0"], Cause::ObjectWait),
    ("jdk/internal/misc/Unsafe", &["park"], Cause::Park),
    ("sun/misc/Unsafe", &["park"], Cause::Park),
    // Also where libjvm has no symbols.
    ("java/lang/Runtime", &["gc"], Cause::GcStall),
    // Mono's, with or without a wrapper around them.
    ("System/Threading/Thread", &["SleepInternal"], Cause::Sleep),
    // As on a JVM, where it waits in `Object.wait`.
    (
        "System/Threading/Thread",
        &["JoinInternal"],
        Cause::ObjectWait,
    ),
    (
        "System/Threading/Monitor",
        &["Monitor_wait", "ObjWait"],
        Cause::ObjectWait,
    ),
    (
        "System/Threading/Monitor",
        &[
            "Enter",
            "try_enter_with_atomic_var",
            "enter_with_atomic_var",
        ],
        Cause::Monitor,
    ),
    (
        "object",
        &[
            "__icall_wrapper_mono_monitor_enter_internal",
            "__icall_wrapper_mono_monitor_enter_v4_internal",
        ],
        Cause::Monitor,
    ),
    (
        "System/Threading/WaitHandle",
        &["Wait_internal", "SignalAndWait_Internal"],
        Cause::Park,
    ),
    ("System/GC", &["InternalCollect"], Cause::GcStall),
    // Who asks for memory waits for the lock of who collects, or for the end of that.
    ("string", &["FastAllocateString"], Cause::GcStall),
    (
        "object",
        &[
            "__icall_wrapper_mono_gc_alloc_obj",
            "__icall_wrapper_mono_gc_alloc_vector",
            "__icall_wrapper_mono_gc_alloc_string",
        ],
        Cause::GcStall,
    ),
    // Where code asks whether it should stop, and does.
    (
        "object",
        &["__icall_wrapper_mono_threads_state_poll"],
        Cause::Safepoint,
    ),
];

/// Classes of the JDK whose native methods wait for peers, by the beginnings of their names.
const SOCKET_CLASSES: &[&str] = &[
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

/// The same for files and pipes.
const FILE_CLASSES: &[&str] = &[
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

/// The cause.
#[must_use]
pub fn cause(facts: &Facts<'_>, pools: &Pools) -> Cause {
    match facts.os {
        Os::Running => return Cause::Running,
        Os::Runnable => return Cause::Runnable,
        Os::Call(_) | Os::NoCall | Os::Waiting => {}
    }
    if facts.monitor == Monitor::Entering {
        return Cause::Monitor;
    }
    if let Some(cause) = vm_wait(facts.frames).or_else(|| crate::mono::cause(facts)) {
        return cause;
    }
    let in_java = java_wait(facts);
    let waits_for_anything = matches!(
        in_java,
        None | Some(Cause::Park | Cause::ObjectWait | Cause::Sleep | Cause::Socket)
    );
    if waits_for_anything && pools.is_idle(facts.frames) {
        return Cause::IdlePool;
    }
    in_java.or(system_call(facts.os)).unwrap_or(Cause::Unknown)
}

/// What the VM's own functions on top of the Java frames say.
fn vm_wait(frames: &[Named<'_>]) -> Option<Cause> {
    let top = frames.iter().take(VM_FRAMES_MAX);
    let functions: Vec<&str> = top
        .take_while(|frame| !frame.is_managed)
        .map(|frame| frame.name)
        .collect();
    let known = VM_WAITS.iter();
    known
        .filter(|(part, _)| functions.iter().any(|function| function.contains(part)))
        .map(|(_, cause)| *cause)
        .next()
}

/// What the innermost Java method says.
fn java_wait(facts: &Facts<'_>) -> Option<Cause> {
    if facts.monitor == Monitor::None
        && let Some(cause) = crate::yielded::cause(facts.frames, facts.is_owned_lock)
    {
        return Some(cause);
    }
    let top = facts.frames.iter().find(|frame| frame.is_managed);
    let named = top.and_then(|frame| {
        let known = JAVA_WAITS.iter();
        let name = frame.name.split(" [").next().unwrap_or(frame.name);
        known
            .filter(|(class, names, _)| frame.class == *class && names.contains(&name))
            .map(|(_, _, cause)| *cause)
            .next()
    });
    match named {
        Some(Cause::Park) if facts.is_owned_lock => return Some(Cause::Lock),
        Some(cause) => return Some(cause),
        None => {}
    }
    if facts.monitor == Monitor::Waiting {
        return Some(Cause::ObjectWait);
    }
    // A descriptor says more than the name of a class: sockets are read through files' methods.
    if let Some(cause @ (Cause::Socket | Cause::File)) = system_call(facts.os) {
        return Some(cause);
    }
    let class = top?.class;
    let is_of = |classes: &[&str]| classes.iter().any(|known| class.starts_with(known));
    if is_of(SOCKET_CLASSES) {
        Some(Cause::Socket)
    } else if is_of(FILE_CLASSES) {
        Some(Cause::File)
    } else {
        None
    }
}

const fn system_call(os: Os) -> Option<Cause> {
    match os {
        Os::Call(Call::Sleep) => Some(Cause::Sleep),
        Os::Call(Call::On(Fd::Socket) | Call::Many) => Some(Cause::Socket),
        Os::Call(Call::On(Fd::File)) => Some(Cause::File),
        Os::NoCall => Some(Cause::PageFault),
        Os::Call(Call::Futex | Call::Child | Call::Other)
        | Os::Waiting
        | Os::Running
        | Os::Runnable => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        cause(&facts, &Pools::default()).name()
    }

    #[test]
    fn threads_of_the_jvm_without_work_are_idle_whatever_they_wait_on() {
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
        // Hooks that run when a program ends are its own.
        let hook = java("com/acme/Hook", "run");
        let frames = [vm("accept"), hook, vm("jni_DestroyJavaVM")];
        assert_eq!(of(accept, Monitor::None, false, &frames), "socket");
    }

    #[test]
    fn waits_of_mono_are_told_by_its_methods() {
        for (class, name, cause) in [
            ("System/Threading/Thread", "SleepInternal", "sleep"),
            (
                "System/Threading/Thread",
                "SleepInternal [managed-to-native]",
                "sleep",
            ),
            ("System/Threading/Monitor", "Monitor_wait", "object-wait"),
            (
                "System/Threading/Monitor",
                "try_enter_with_atomic_var",
                "monitor",
            ),
            ("System/Threading/WaitHandle", "Wait_internal", "park"),
            (
                "object",
                "__icall_wrapper_mono_monitor_enter_v4_internal [managed-to-native]",
                "monitor",
            ),
            ("System/Threading/Thread", "JoinInternal", "object-wait"),
            ("System/GC", "InternalCollect", "gc-stall"),
            ("string", "FastAllocateString", "gc-stall"),
            (
                "object",
                "__icall_wrapper_mono_gc_alloc_obj [managed-to-native]",
                "gc-stall",
            ),
            (
                "object",
                "__icall_wrapper_mono_threads_state_poll [managed-to-native]",
                "safepoint",
            ),
            ("System/GC", "Other", "unknown"),
        ] {
            let frames = [java(class, name), java("App", "Main")];
            assert_eq!(of(FUTEX, Monitor::None, false, &frames), cause, "{name}");
        }
    }

    #[test]
    fn who_runs_waits_for_nothing() {
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
        // The queue's lock, which another worker has.
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
            ("_ZN8VMThread7executeEP12VM_Operation", "safepoint"),
            (
                "_ZN9Handshake7executeEP16HandshakeClosureP10JavaThread",
                "safepoint",
            ),
        ] {
            assert_eq!(of(FUTEX, Monitor::None, false, &wait(function)), expected);
        }
        // Who asks for a collection waits for that, whoever does it.
        let asked = [
            vm("_ZN8VMThread7executeEP12VM_Operation"),
            vm("_ZN20ParallelScavengeHeap7collectEN7GCCause5CauseE"),
            vm("JVM_GC"),
            java("java/lang/Runtime", "gc"),
        ];
        assert_eq!(of(FUTEX, Monitor::None, false, &asked), "gc-stall");
        assert_eq!(of(FUTEX, Monitor::None, false, &asked[3..]), "gc-stall");
        // One of the VM's own threads that does something.
        let asks = [
            vm("_ZN8VMThread7executeEP12VM_Operation"),
            vm("_ZL9dump_heapP15AttachOperationP12outputStream"),
            vm("_ZL28attach_listener_thread_entryP10JavaThreadS0_"),
        ];
        assert_eq!(of(FUTEX, Monitor::None, false, &asks), "safepoint");
        assert_eq!(of(FUTEX, Monitor::None, false, &asks[2..]), "idle-pool");
        // Not what the VM did further down.
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
    fn names_are_unique_and_come_back() {
        for cause in Cause::ALL {
            assert_eq!(Cause::from_name(cause.name()), Some(cause));
        }
        assert_eq!(Cause::from_name("waiting"), None);
    }
}
