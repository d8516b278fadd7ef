//! Pure readers of what the kernel and the linker say about native code: unwind tables from
//! `.eh_frame`, ELF files and their symbols, `/proc/PID/maps`, `/proc/kallsyms`.
//!
//! Everything takes bytes and gives values: no file is opened here, no memory is read by address.
//! The bytes come from somebody else's process or disk, so nothing here may panic on any input, and
//! time and memory are bounded by a small multiple of the input's length.
//!
//! Read next: [`unwind`] (the table that the stack walker uses), [`elf`], [`maps`].
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

pub mod elf;
pub mod kernel;
pub mod maps;
pub mod unwind;
