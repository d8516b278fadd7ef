//! Links the library for every libc, and marks it as one that is never unloaded. The JVM unloads an
//! agent that has refused a command (`JvmtiAgent::load` in
//! src/hotspot/share/prims/jvmtiAgent.cpp), but still calls our callbacks and signal handlers.

use std::path::Path;

mod link;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Strings that end alike are stored once.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-O2");
    link::for_every_libc(Path::new("link/since.c"));
}
