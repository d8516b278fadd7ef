//! From walked samples to a file: names, batches between two flushes, the file itself.

pub mod batch;
pub mod file;
pub mod kernel;
pub mod names;
pub mod outer;
pub mod output;
pub mod resolve;
