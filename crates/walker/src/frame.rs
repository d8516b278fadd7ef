//! Frames and named failures: the results of a walk.

use crate::native::NativeRegs;

/// The kind of code that a frame runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// A managed method in the interpreter.
    Interpreted,
    /// A managed method, compiled quickly (HotSpot: by C1).
    C1,
    /// A managed method, compiled by the best compiler (HotSpot: C2 or another top tier).
    C2,
    /// A managed method, compiled before the program ran (Mono: `--aot`).
    Ahead,
    /// A managed method inlined into the compiled frame below it.
    Inlined,
    /// A managed method without code of its own (Java: `native`), in its compiled wrapper.
    ManagedNative,
    /// Code of a native library.
    Native,
    /// Code of the runtime's own library.
    Vm,
    /// Kernel code.
    Kernel,
    /// A stub in the code cache (arraycopy, adapters, runtime stubs, ...).
    Stub,
    /// Not a frame: the reason why the walk ended or skipped frames.
    Failed,
}

impl FrameKind {
    /// Whether it is a managed method; [`Frame::id`] then identifies the method.
    #[must_use]
    pub const fn is_managed(self) -> bool {
        matches!(
            self,
            FrameKind::Interpreted
                | FrameKind::C1
                | FrameKind::C2
                | FrameKind::Ahead
                | FrameKind::Inlined
                | FrameKind::ManagedNative
        )
    }
}

/// One frame, innermost first in a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The kind of code.
    pub kind: FrameKind,
    /// Managed frames: index in the bytecode, or -1 if unknown. Others: 0.
    pub bci: i32,
    /// Managed frames: the method, as the runtime knows it (HotSpot: `Method*`). Native, VM,
    /// kernel: the pc for look-ups (return addresses are already moved back by one). Stub: the pc.
    /// Failed: the [`Failure`] as a number.
    pub id: u64,
}

impl Frame {
    /// An unused entry of a frame buffer.
    pub const EMPTY: Frame = Frame {
        kind: FrameKind::Failed,
        bci: 0,
        id: 0,
    };

    /// The pseudo-frame with the reason why a walk ended or skipped frames.
    #[must_use]
    pub const fn failed(failure: Failure) -> Frame {
        Frame {
            kind: FrameKind::Failed,
            bci: 0,
            id: failure as u64,
        }
    }
}

/// Receives the frames of a walk.
pub trait Frames {
    /// Maximum number of frames.
    fn room(&self) -> usize;
    /// Stores a frame at `index`; false if that is out of bounds.
    fn set(&mut self, index: usize, frame: Frame) -> bool;
    /// Reports that the walk reads a frame of the stack, and that its entries start at `index`.
    #[inline]
    fn begins(&mut self, _index: usize, _at: NativeRegs) {}
    /// Asks whether all frames from this one to the root are known. It has called the previous
    /// frame, and its entries would start at `index`. If so, they are stored, and their number is
    /// returned.
    #[inline]
    fn rest(&mut self, _index: usize, _at: NativeRegs) -> Option<usize> {
        None
    }
}

impl Frames for [Frame] {
    #[inline]
    fn room(&self) -> usize {
        self.len()
    }

    #[inline]
    fn set(&mut self, index: usize, frame: Frame) -> bool {
        let place = self.get_mut(index);
        place.map(|place| *place = frame).is_some()
    }
}

macro_rules! failures {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// The reason why a walk ended (or, for [`Failure::NativeGap`], what it skipped).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Failure { $($(#[$doc])* $name,)* }

        impl Failure {
            /// All failures, in the order of their numbers.
            pub const ALL: &'static [Failure] = &[$(Failure::$name,)*];

            /// The stable name used in files and reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Failure::$name => $text,)* }
            }

            /// The failure with this number ([`Frame::id`] of a failed frame).
            #[must_use]
            pub fn from_id(id: u64) -> Option<Failure> {
                usize::try_from(id).ok().and_then(|i| Failure::ALL.get(i)).copied()
            }
        }
    };
}

failures! {
    /// Memory that the walk needed could not be read.
    Unreadable = "unreadable_memory",
    /// The caller's stack pointer is not above the callee's, or outside the stack.
    StackRange = "stack_out_of_range",
    /// pc is in the code cache but in no code blob.
    NoBlob = "no_code_blob",
    /// An interpreter frame whose method or links make no sense.
    BadInterpreted = "bad_interpreted_frame",
    /// A compiled frame whose caller cannot be found.
    BadCompiled = "bad_compiled_frame",
    /// A stub whose caller cannot be found, or is not certain.
    BadStub = "bad_stub_frame",
    /// The frame of a call from native into Java is broken.
    BadEntry = "bad_entry_frame",
    /// Native code without an unwind rule and without a usable frame pointer.
    NoNativeRule = "no_native_rule",
    /// pc is not in any known code.
    UnknownPc = "unknown_pc",
    /// A virtual thread's frozen frames could not be read.
    BadContinuation = "bad_continuation",
    /// More steps than any real stack has; the stack is cyclic.
    Cycle = "cyclic_stack",
    /// The copy of the stack ended before the stack did.
    SnapshotEnd = "stack_copy_too_short",
    /// The walk used all frames the depth limit allows; the root is missing.
    Truncated = "truncated",
    /// Not an end: native frames between two Java frames are missing here.
    NativeGap = "native_frames_missing",
    /// Not an end: an interpreter frame that deoptimisation has not filled in yet.
    BeingUnpacked = "frame_being_deoptimized",
    /// Not an end: the VM is copying frames of a virtual thread back from the heap, and the
    /// youngest of them may be missing here.
    BeingThawed = "frames_being_thawed",
    /// The method's metadata was gone before it could be read.
    StaleMethod = "stale_method",
    /// A thread that ended before a timer could catch it: its CPU time without a stack.
    ShortThread = "thread_ended_unsampled",
    /// No walk was tried: the recording ended before the thread's next signal.
    RecordingEnded = "recording_ended_unsampled",
    /// No walk was tried: the thread's alternate signal stack is too small for one.
    SignalStack = "signal_stack_too_small",
    /// No walk was tried: the thread blocks the signal, and the kernel did not copy its stack.
    SignalBlocked = "signal_blocked",
    /// No walk was tried: the kernel had no room to queue the signal.
    SignalQueueFull = "signal_queue_full",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_distinct_names_and_round_trip() {
        for (i, failure) in Failure::ALL.iter().enumerate() {
            assert_eq!(Failure::from_id(i as u64), Some(*failure));
            let same = Failure::ALL
                .iter()
                .filter(|f| f.name() == failure.name())
                .count();
            assert_eq!(same, 1, "{}", failure.name());
        }
        assert_eq!(Failure::from_id(Failure::ALL.len() as u64), None);
    }

    #[test]
    fn a_frame_stays_small() {
        assert_eq!(size_of::<Frame>(), 16);
    }
}
