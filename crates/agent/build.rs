//! Marks the library as one that is never unloaded: the JVM does so where an agent has refused a
//! command (`JvmtiAgent::load` in src/hotspot/share/prims/jvmtiAgent.cpp), but goes on calling our
//! callbacks and signal handlers.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
