//! The parts of a stack: methods and frames, and the kinds of code of a frame.

use crate::names::NameId;

/// Index of a [`Method`] in a profile.
pub type MethodId = u32;
/// Index of a [`Frame`] in a profile.
pub type FrameId = u32;

/// The kind of code that a frame was running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrameKind {
    /// Bytecode in the interpreter.
    Interpreted,
    /// Compiled by the client compiler. Where there is one compiler only: compiled before the
    /// program ran.
    C1,
    /// Compiled by the optimising compiler, or by the only one.
    C2,
    /// Compiled into its caller.
    Inlined,
    /// A native library, or a native method.
    Native,
    /// The virtual machine itself.
    Vm,
    /// The operating system's kernel.
    Kernel,
    /// Code that the virtual machine generated and that belongs to no method.
    Stub,
    /// Not code: the place where a stack walk could not go on.
    Failed,
    /// A kind that the recording names and this version does not know.
    Other,
}

impl FrameKind {
    /// All kinds, in the order of their numbers in files and pages.
    pub const ALL: [FrameKind; 10] = [
        FrameKind::Interpreted,
        FrameKind::C1,
        FrameKind::C2,
        FrameKind::Inlined,
        FrameKind::Native,
        FrameKind::Vm,
        FrameKind::Kernel,
        FrameKind::Stub,
        FrameKind::Failed,
        FrameKind::Other,
    ];

    /// A word for people, where there are HotSpot's compilers.
    pub fn label(self) -> &'static str {
        match self {
            FrameKind::Interpreted => "interpreted",
            FrameKind::C1 => "C1",
            FrameKind::C2 => "C2",
            FrameKind::Inlined => "inlined",
            FrameKind::Native => "native",
            FrameKind::Vm => "VM",
            FrameKind::Kernel => "kernel",
            FrameKind::Stub => "stub",
            FrameKind::Failed => "failed",
            FrameKind::Other => "other",
        }
    }

    /// The number of this kind, its place in [`FrameKind::ALL`].
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Whether the frame belongs to a Java method.
    pub fn is_java(self) -> bool {
        matches!(
            self,
            FrameKind::Interpreted | FrameKind::C1 | FrameKind::C2 | FrameKind::Inlined
        )
    }
}

/// A method, or a function of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Method {
    /// The class with dots, or the library's file name, or `[kernel]`.
    pub class: NameId,
    /// The method's or function's name.
    pub name: NameId,
    /// The descriptor, e.g. `(I)V`. Outside Java empty, or the address of a nameless function.
    pub descriptor: NameId,
    /// The jar, folder or module that its class is from, if the recording says so.
    pub library: Option<NameId>,
}

/// A place in a method: two samples with the same line of a stack share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The method.
    pub method: MethodId,
    /// The source line, 0 when unknown.
    pub line: u32,
    /// The kind of code.
    pub kind: FrameKind,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places_in_all() {
        for (place, kind) in FrameKind::ALL.iter().enumerate() {
            assert_eq!(usize::from(kind.number()), place, "{}", kind.label());
        }
    }
}
