//! HotSpot's structures, read through [`crate::Memory`] only.
//!
//! [`vmstructs`] reads the tables that libjvm exports for its serviceability agent. [`layout`]
//! holds the offsets found there, by *field name*, never by version. The other modules use them to
//! read structures.

pub mod classes;
pub mod codecache;
pub mod continuation;
pub mod fields;
pub mod flags;
pub mod flocks;
pub mod interpreter;
pub mod layout;
pub mod locked;
pub mod machine;
pub mod method;
mod misplaced;
pub mod monitors;
pub mod names;
pub mod nmethod;
pub mod objects;
pub mod operations;
pub mod origin;
pub mod perfdata;
pub mod safepoints;
pub mod scope;
pub mod sets;
pub mod strings;
pub mod threads;
pub mod upcall;
pub mod virtual_threads;
pub mod vmstructs;
pub mod zgc;

#[cfg(test)]
pub(crate) mod test_memory;

pub use codecache::{Blob, BlobKind, CodeCache};
pub use layout::{Layout, LayoutError};
