//! System calls that have no safe form: the only `unsafe` code of this crate.
#![allow(unsafe_code)]

pub mod perf;
pub mod ptrace;
pub mod wanted;
