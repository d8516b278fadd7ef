//! aarch64: its name only, so far.

/// aarch64.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aarch64;
