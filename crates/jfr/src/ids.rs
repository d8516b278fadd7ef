//! Numbers that stand for constants of one chunk, on the writing side.

macro_rules! ids {
    ($($(#[doc = $doc:literal])* $name:ident)*) => {$(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// Refers to nothing; readers show it as null.
            pub const NONE: Self = Self(0);
        }
    )*};
}

ids! {
    /// A thread of this chunk.
    ThreadId
    /// A method of this chunk.
    MethodId
    /// A stack of this chunk.
    StackId
    /// A class of this chunk.
    ClassId
}

impl StackId {
    /// As it is written.
    pub(crate) fn index(self) -> u64 {
        u64::from(self.0)
    }
}

impl ThreadId {
    /// As it is written.
    pub(crate) fn index(self) -> u64 {
        u64::from(self.0)
    }
}
