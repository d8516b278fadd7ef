//! Links the module for every libc, and marks it as one that is never unloaded: signal handlers and
//! callbacks are in it.

use std::path::Path;

#[path = "../agent/link/mod.rs"]
mod link;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    link::for_every_libc(Path::new("../agent/link/since.c"));
}
