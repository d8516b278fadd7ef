//! The terms for the facts of a sample, and for the cause of a wait.

/// The activity of a thread at a sample, or the reason of its wait. Exclusive: the weights of all
/// causes sum to the wall time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// On a processor.
    Running,
    /// Ready, but no processor was free.
    Runnable,
    /// Ready, but the control group's quota was used up.
    Throttled,
    /// For a monitor that another thread owns.
    Monitor,
    /// For a lock of a library of the runtime that another thread owns.
    Lock,
    /// For a condition, a queue, a future, a permit: parked for another reason than a lock.
    Park,
    /// For a time to pass.
    Sleep,
    /// On a monitor, until it is notified.
    ObjectWait,
    /// For a peer: one socket, or any of many.
    Socket,
    /// For a file, a pipe, a device.
    File,
    /// In the kernel for memory that is not present, or elsewhere without a system call.
    PageFault,
    /// Stopped with all threads, or requested such a stop and waits for its end.
    Stopped,
    /// For a garbage collection that it requested or whose memory it needs.
    GcStall,
    /// For a class that is being loaded or initialised by another thread.
    ClassInit,
    /// For code that is being compiled.
    JitWait,
    /// For a lock of the runtime's own, or a thread that is just being made.
    VmLock,
    /// A worker of a pool without work.
    IdlePool,
    /// The cause could not be found.
    Unknown,
}

impl Cause {
    /// All causes, in the order in which reports show them.
    pub const ALL: [Cause; 18] = [
        Cause::Running,
        Cause::Runnable,
        Cause::Throttled,
        Cause::Monitor,
        Cause::Lock,
        Cause::Park,
        Cause::Sleep,
        Cause::ObjectWait,
        Cause::Socket,
        Cause::File,
        Cause::PageFault,
        Cause::Stopped,
        Cause::GcStall,
        Cause::ClassInit,
        Cause::JitWait,
        Cause::VmLock,
        Cause::IdlePool,
        Cause::Unknown,
    ];

    /// The name used in files, options and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Running => "running",
            Cause::Runnable => "runnable",
            Cause::Throttled => "throttled",
            Cause::Monitor => "monitor",
            Cause::Lock => "lock",
            Cause::Park => "park",
            Cause::Sleep => "sleep",
            Cause::ObjectWait => "object-wait",
            Cause::Socket => "socket",
            Cause::File => "file",
            Cause::PageFault => "page-fault",
            Cause::Stopped => "safepoint",
            Cause::GcStall => "gc-stall",
            Cause::ClassInit => "class-init",
            Cause::JitWait => "jit-wait",
            Cause::VmLock => "vm-lock",
            Cause::IdlePool => "idle-pool",
            Cause::Unknown => "unknown",
        }
    }

    /// The cause with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Cause> {
        Cause::ALL.into_iter().find(|cause| cause.name() == name)
    }
}

/// The state of the thread by the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Os {
    /// On a processor.
    Running,
    /// Ready to run.
    Runnable,
    /// Waits in this system call.
    Call(Call),
    /// Waits in the kernel outside a system call.
    NoCall,
    /// Waits; the place could not be found.
    Waiting,
}

/// Kind of the system call that a thread waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// For a word of memory: most waits of a runtime itself.
    Futex,
    /// For a time.
    Sleep,
    /// On a descriptor of this kind.
    On(Fd),
    /// For any of several descriptors.
    Many,
    /// For another process.
    Child,
    /// Any other.
    Other,
}

/// Kind of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fd {
    /// A socket.
    Socket,
    /// Anything else: a file, a pipe, a terminal.
    File,
}

/// The runtime's report about monitors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Monitor {
    /// No monitor is involved.
    None,
    /// The thread enters a monitor that another thread owns.
    Entering,
    /// The thread waits on a monitor, which it owned, until it is notified.
    Waiting,
}

/// One frame's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named<'a> {
    /// Class with slashes, or library.
    pub class: &'a str,
    /// Method, or function by the library's name for it.
    pub name: &'a str,
    /// Whether it is a method.
    pub is_managed: bool,
}

/// The facts of a thread at a sample.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// State by the operating system.
    pub os: Os,
    /// State by the runtime.
    pub monitor: Monitor,
    /// Whether the thread is parked on a lock that another thread owns.
    pub is_owned_lock: bool,
    /// The stack, innermost first.
    pub frames: &'a [Named<'a>],
}
