//! Atomics and waits of the structures that are also tested under loom (`loom/tests`): those
//! include the source files and have loom's under these names.

pub(crate) use std::sync::Mutex;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::thread::park_timeout;
