//! Pure readers of the kernel's and the linker's data about native code: unwind tables from
//! `.eh_frame`, ELF files and their symbols, `/proc/PID/maps`, `/proc/kallsyms`.
//!
//! The input is bytes, the output values: nothing here opens files or reads memory by address. The
//! bytes come from other processes or from files. So nothing here may panic on any input, and time
//! and memory are bounded by a small multiple of the input's length.
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
