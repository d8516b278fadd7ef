//! The command as people run it, one module for each subject. A single program, so that it is
//! linked once. `xtask test` gives each test its own process.
#![allow(missing_docs)]

mod attached;
mod cut;
mod documents;
mod exports;
#[path = "../../src/fenced.rs"]
mod fenced;
mod files;
mod foreign;
mod harness;
mod inside;
mod interchange;
mod jmh;
mod launched;
mod mcp_server;
mod mono;
mod permissions;
mod query;
mod ship;
mod top;
mod usage;
mod view;
