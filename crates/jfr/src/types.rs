//! The vocabularies shared by writer and reader: frame kinds and thread states with their names in
//! the file. Only names and keys live here, no encoding.

/// How a frame ran; written as the `jdk.types.FrameType` of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum FrameKind {
    /// Byte code in the interpreter.
    Interpreted,
    /// Compiled by C1 (tiers 1 to 3).
    C1,
    /// Compiled by the optimising compiler.
    C2,
    /// Inlined into the frame below it.
    Inlined,
    /// A native frame outside the JVM library (JNI code, libc), or a Java native method.
    Native,
    /// A frame inside the JVM library.
    Vm,
    /// A frame in the kernel.
    Kernel,
    /// A code stub or adapter that the JVM generated.
    Stub,
    /// A frame that stands for a walk that failed.
    Failed,
    /// Any other name found in a recording.
    #[default]
    Other,
    /// Compiled before the program ran.
    Ahead,
}

impl FrameKind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::Interpreted,
        Self::C1,
        Self::C2,
        Self::Inlined,
        Self::Native,
        Self::Vm,
        Self::Kernel,
        Self::Stub,
        Self::Failed,
        Self::Other,
        Self::Ahead,
    ];

    /// The name in the file. The JDK's own four names are used where they fit.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interpreted => "Interpreted",
            Self::C1 => "C1 compiled",
            Self::C2 => "JIT compiled",
            Self::Inlined => "Inlined",
            Self::Native => "Native",
            Self::Vm => "VM",
            Self::Kernel => "Kernel",
            Self::Stub => "Stub",
            Self::Failed => "Failed",
            Self::Other => "Other",
            Self::Ahead => "AOT compiled",
        }
    }

    /// The kind for a name in a file; "C++" is what other profilers write for native frames.
    pub fn from_name(name: &str) -> Self {
        if name == "C++" {
            return Self::Native;
        }
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .unwrap_or(Self::Other)
    }

    /// The key in the file. Some readers know the keys only, and take a key modulo 16 for what
    /// async-profiler calls so: see [`Self::COMMON`]. Kinds that it does not have are theirs that
    /// are most like them, and 16 or a multiple more.
    pub(crate) const fn pool_key(self) -> u32 {
        let more = match self {
            Self::Ahead | Self::Stub => 16,
            Self::Failed => 32,
            Self::Other => 48,
            _ => 0,
        };
        self.common_key() + more
    }

    /// The names that other tools know, by their keys from 0 on: some readers use the keys only.
    /// The first four are the JDK's (`jfrTypeSet.cpp` and `jfrStackTrace.cpp` have no more). The
    /// others are async-profiler's.
    pub(crate) const COMMON: [&'static str; 7] = [
        "Interpreted",
        "JIT compiled",
        "Inlined",
        "Native",
        "C++",
        "Kernel",
        "C1 compiled",
    ];

    /// Whether it runs byte code, so that it has a place in it and a source line.
    pub(crate) const fn is_managed(self) -> bool {
        match self {
            Self::Interpreted | Self::C1 | Self::C2 | Self::Inlined | Self::Ahead => true,
            Self::Native | Self::Vm | Self::Kernel | Self::Stub => false,
            Self::Failed | Self::Other => false,
        }
    }

    /// The key of what other tools call it.
    pub(crate) const fn common_key(self) -> u32 {
        match self {
            Self::Interpreted => 0,
            Self::C2 | Self::Ahead => 1,
            Self::Inlined => 2,
            Self::Native | Self::Stub | Self::Failed | Self::Other => 3,
            Self::Vm => 4,
            Self::Kernel => 5,
            Self::C1 => 6,
        }
    }
}

/// The state of a thread when it was sampled, written as `jdk.types.ThreadState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum ThreadState {
    /// On a CPU or ready for one.
    #[default]
    Runnable,
    /// In `Thread.sleep`.
    Sleeping,
    /// In `Object.wait`.
    Waiting,
    /// In `LockSupport.park`.
    Parked,
    /// Blocked on entering a monitor.
    Blocked,
    /// Off CPU for an unknown reason (system call, page fault, kernel lock).
    OffCpu,
    /// Not started yet.
    New,
    /// Finished.
    Terminated,
    /// Not known, or any other name found in a recording.
    Other,
}

impl ThreadState {
    /// Every state, in the order of the constant pool (the key of a state is its place plus one).
    pub const ALL: [Self; 9] = [
        Self::Runnable,
        Self::Sleeping,
        Self::Waiting,
        Self::Parked,
        Self::Blocked,
        Self::OffCpu,
        Self::New,
        Self::Terminated,
        Self::Other,
    ];

    /// The name in the file. The JDK's own names are used where they fit.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runnable => "STATE_RUNNABLE",
            Self::Sleeping => "STATE_SLEEPING",
            Self::Waiting => "STATE_IN_OBJECT_WAIT",
            Self::Parked => "STATE_PARKED",
            Self::Blocked => "STATE_BLOCKED_ON_MONITOR_ENTER",
            Self::OffCpu => "STATE_OFF_CPU",
            Self::New => "STATE_NEW",
            Self::Terminated => "STATE_TERMINATED",
            Self::Other => "STATE_UNKNOWN",
        }
    }

    /// The state for a name in a file; timed waits count as their untimed kind.
    pub fn from_name(name: &str) -> Self {
        let untimed = name.strip_suffix("_TIMED").unwrap_or(name);
        // As ddprof calls them.
        let untimed = match untimed {
            "RUNNABLE" => "STATE_RUNNABLE",
            "CONTENDED" | "MONITOR_WAIT" => "STATE_BLOCKED_ON_MONITOR_ENTER",
            "OBJECT_WAIT" => "STATE_IN_OBJECT_WAIT",
            "PARKED" | "CONDVAR_WAIT" => "STATE_PARKED",
            "SLEEPING" => "STATE_SLEEPING",
            "SYSCALL" | "BREAKPOINTED" => "STATE_OFF_CPU",
            "NEW" => "STATE_NEW",
            "TERMINATED" => "STATE_TERMINATED",
            other => other,
        };
        Self::ALL
            .into_iter()
            .find(|state| state.name() == untimed)
            .unwrap_or(Self::Other)
    }

    pub(crate) const fn pool_key(self) -> u32 {
        self as u32 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_keys_follow_the_order() {
        for kind in FrameKind::ALL {
            assert_eq!(FrameKind::from_name(kind.name()), kind);
            assert_eq!(kind.pool_key() % 16, kind.common_key());
            // One byte each, and a key has one meaning.
            assert!(kind.pool_key() < 128);
            let same = FrameKind::ALL.into_iter();
            let same = same.filter(|other| other.pool_key() == kind.pool_key());
            assert_eq!(same.count(), 1, "{kind:?}");
        }
        for (place, state) in ThreadState::ALL.into_iter().enumerate() {
            assert_eq!(ThreadState::from_name(state.name()), state);
            assert_eq!(state.pool_key() as usize, place + 1);
        }
        assert_eq!(
            ThreadState::from_name("STATE_PARKED_TIMED"),
            ThreadState::Parked
        );
        assert_eq!(ThreadState::from_name("CONTENDED"), ThreadState::Blocked);
        assert_eq!(FrameKind::from_name("nonsense"), FrameKind::Other);
    }
}
