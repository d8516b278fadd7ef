//! The words for what a look at a thread shows, and for why the thread was not running.

/// What a thread did, or waited for, at a look. Exclusive: the weights of all sum to the wall time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// On a processor.
    Running,
    /// Ready, but no processor was free.
    Runnable,
    /// Ready, but the control group's quota was used up.
    Throttled,
    /// For a monitor that another thread has.
    Monitor,
    /// For a lock, as a library of the runtime makes them, that another thread has.
    Lock,
    /// For a condition, a queue, a future, a permit: parked for other reasons than a lock.
    Park,
    /// For a time to be over.
    Sleep,
    /// On a monitor, until it is told to go on.
    ObjectWait,
    /// For a peer: sockets, and what is waited for on many of them.
    Socket,
    /// For a file, a pipe, a device.
    File,
    /// In the kernel for memory that is not there, or elsewhere without a system call.
    PageFault,
    /// Held by a stop of all threads, or has asked for one and waits until it is over.
    Stopped,
    /// For memory, or because it was asked for: a collection has to come first.
    GcStall,
    /// For a class that is being loaded or initialised by another thread.
    ClassInit,
    /// For code that is being compiled.
    JitWait,
    /// A worker of a pool without work.
    IdlePool,
    /// None of these could be told.
    Unknown,
}

impl Cause {
    /// All causes, in the order in which reports show them.
    pub const ALL: [Cause; 17] = [
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

/// What the operating system says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Os {
    /// On a processor.
    Running,
    /// Ready to run.
    Runnable,
    /// Waits in this system call.
    Call(Call),
    /// Waits in the kernel, but in no system call.
    NoCall,
    /// Waits; where could not be found out.
    Waiting,
}

/// What kind of system call a thread waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// For a word of memory: most waits that a runtime makes itself.
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

/// What a descriptor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fd {
    /// A socket.
    Socket,
    /// Anything else: a file, a pipe, a terminal.
    File,
}

/// What the runtime says of monitors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Monitor {
    /// The thread has to do with none.
    None,
    /// It enters one that another thread has.
    Entering,
    /// It waits on one, which it had, until it is told to go on.
    Waiting,
}

/// One frame's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named<'a> {
    /// Class with slashes, or library.
    pub class: &'a str,
    /// Method, or function as the library calls it.
    pub name: &'a str,
    /// Whether it is a method.
    pub is_managed: bool,
}

/// What is known of a thread at a look.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// From the operating system.
    pub os: Os,
    /// From the runtime.
    pub monitor: Monitor,
    /// Whether what it is parked on is a lock, which another thread has.
    pub is_owned_lock: bool,
    /// The stack, innermost first.
    pub frames: &'a [Named<'a>],
}
