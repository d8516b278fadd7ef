//! Finds real libraries to test on: JVMs by `DWELL_JDKS` (a folder of JDK homes), `JAVA_HOME` and
//! `/usr/lib/jvm`; other libraries by the mappings of this process.
//!
//! Each test program includes this file and uses its own part of it.
#![allow(dead_code)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use dwell_native::maps;

/// All `libjvm.so` files that can be found. The test fails without any.
pub fn jvm_libraries() -> Vec<PathBuf> {
    let mut homes: Vec<PathBuf> = std::env::var_os("JAVA_HOME")
        .map(PathBuf::from)
        .into_iter()
        .collect();
    let folders = std::env::var_os("DWELL_JDKS").map(PathBuf::from);
    for folder in folders.into_iter().chain([PathBuf::from("/usr/lib/jvm")]) {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        homes.extend(entries.map(|entry| entry.path()));
    }
    let places = ["lib/server/libjvm.so", "jre/lib/amd64/server/libjvm.so"];
    let found: BTreeSet<PathBuf> = homes
        .iter()
        .flat_map(|home| places.iter().map(|place| home.join(place)))
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    assert!(
        !found.is_empty(),
        "no libjvm.so found: set JAVA_HOME or DWELL_JDKS"
    );
    found.into_iter().collect()
}

/// The files whose code this process has mapped: the test program, libc, libgcc and so on.
pub fn mapped_libraries() -> Vec<PathBuf> {
    let text = own_maps();
    let modules = maps::modules(maps::parse(&text).map(|mapping| mapping.unwrap()));
    let files = modules
        .iter()
        .filter(|module| module.backing == maps::Backing::File);
    let paths: BTreeSet<PathBuf> = files
        .map(|module| PathBuf::from(String::from_utf8(module.path.clone()).unwrap()))
        .collect();
    assert!(paths.len() >= 2, "the test program and its libc: {paths:?}");
    paths.into_iter().collect()
}

/// Libraries with hand-written code or from other compilers, if installed.
pub fn system_libraries() -> Vec<PathBuf> {
    let names = [
        "mono-sgen",
        "libz.so.1",
        "libcrypto.so.3",
        "libstdc++.so.6",
        "ld-linux-x86-64.so.2",
    ];
    let folders = [
        "/lib/x86_64-linux-gnu",
        "/usr/lib64",
        "/lib64",
        "/usr/lib",
        "/usr/bin",
    ];
    let all = names
        .iter()
        .flat_map(|name| folders.iter().map(move |f| Path::new(f).join(name)));
    let found: BTreeSet<PathBuf> = all.filter_map(|path| path.canonicalize().ok()).collect();
    found.into_iter().collect()
}

/// This process's memory map.
pub fn own_maps() -> Vec<u8> {
    std::fs::read("/proc/self/maps").unwrap()
}
