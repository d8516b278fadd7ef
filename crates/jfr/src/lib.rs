//! JFR chunks: writer and reader, pure (bytes in, bytes out); no file system, no clock, no
//! threads.
//!
//! A recording is a row of *chunks*; a chunk is a 68 byte header, one metadata event that
//! describes every type, and then events and *checkpoints* (constant pools) in any order. Threads,
//! methods and stacks are written once per chunk as constants; a sample is about fifteen bytes
//! that name them.
//!
//! # Writing
//! ```
//! use dwell_jfr::writer::{ChunkClock, ChunkWriter, FrameRef, MethodInfo, Sample, ThreadInfo};
//! use dwell_jfr::{FrameKind, ThreadState};
//!
//! let clock = ChunkClock { epoch_ns: 1_700_000_000_000_000_000, start_ticks: 0,
//!     ticks_per_second: 1_000_000_000 };
//! let mut chunk = ChunkWriter::new(clock);
//! let thread = chunk.thread(7, &ThreadInfo { os_name: "main", os_tid: 7, java_tid: 1,
//!     java_name: Some("main"), group: Some("main"), is_virtual: false });
//! let method = chunk.method(1, &MethodInfo { class: "com/acme/Work", name: "run",
//!     descriptor: "()V", modifiers: 1, hidden: false, origin: None });
//! let frame = FrameRef { method, line: 12, bci: 3, kind: FrameKind::C2 };
//! let stack = chunk.stack(&[frame], false);
//! chunk.execution_sample(&Sample { ticks: 5, thread, stack, weight_ns: 10_000_000,
//!     state: ThreadState::Runnable, ..Sample::default() });
//!
//! let mut file = chunk.flush(6);                 // append these bytes ...
//! file[..68].copy_from_slice(&chunk.header());   // ... then overwrite the header (pwrite)
//! let recording = dwell_jfr::reader::parse(&file).unwrap();
//! assert_eq!(recording.samples.len(), 1);
//! ```
//! **Crash safety.** The file is complete after every "append, then pwrite the header". If the
//! process dies between the two, the header still has the previous length. This crate's reader then
//! reads all that the header covers, and skips the other bytes with a warning. The JDK's tools take
//! the trailing bytes for another chunk and refuse the file, so cut it to the chunk size first.
//!
//! **Rotation.** Ids are good for one chunk only. When [`writer::ChunkWriter::memory_bytes`] grows
//! past the caller's limit, flush, and begin the next `ChunkWriter` at the end of the file.
//!
//! **Time.** The JDK's tools leave out events that end after the chunk does; [`flush`] therefore
//! sets the chunk's end to the latest of its argument and the ends of all events.
//!
//! **Names** may be anything. The JDK's tools and JMC parse descriptors and class names without
//! checks. The writer therefore replaces a descriptor that is not well formed by `()V`, and
//! brackets around a class name by parentheses. The reader restores the brackets.
//!
//! [`flush`]: writer::ChunkWriter::flush
//!
//! # Reading
//! [`reader::parse`] decodes by the metadata in the file, so it takes this crate's recordings and
//! the JDK's own. Threads, methods and stacks are deduplicated across chunks. Unreadable data (a
//! torn tail, a broken chunk) becomes a warning. Only a file without readable data is an error.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

pub mod hash;
mod ids;
pub mod kinds;
pub mod reader;
pub mod redact;
mod schema;
mod types;
mod wire;
pub mod writer;

pub use types::{FrameKind, ThreadState};
