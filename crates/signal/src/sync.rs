//! Atomics for the structures that are also tested under loom (`loom/tests`): those include the
//! source files and have loom's atomics under this name.

pub(crate) use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
