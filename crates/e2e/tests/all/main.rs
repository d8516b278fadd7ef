//! Real JVMs and Mono programs recorded by the real agent, a subject in each module. One program,
//! as each would be linked with all that a report needs; `xtask test` gives each test a process of
//! its own.
#![allow(missing_docs)]

mod accuracy;
mod alive;
mod allocations;
mod attaching;
mod blocking;
mod calls;
mod collectors;
mod commands;
mod context;
mod endings;
mod examples;
mod files;
mod frozen;
mod hostile;
mod intervals;
mod jmc;
mod libcs;
mod libraries;
mod limits;
mod locks;
mod mono;
mod otel;
mod outside;
mod outside_records;
mod own_ends;
mod published;
mod safepoints;
mod service;
mod spans;
mod stacks;
mod stubs;
mod switched;
mod taken_signals;
mod teardown;
mod throttled;
mod unreachable;
mod vantages;
mod virtual_threads;
mod wall;
mod weights;
