//! Signals that arrive in the dynamic loader: while it holds its lock, while constructors and
//! destructors run, while it makes thread-local storage.

use super::Stage;
use super::helpers::c_path;
use crate::common::run_threads;
use dwell_signal::sys;
use std::ffi::c_long;
use std::path::{Path, PathBuf};

const THREADS: u64 = 3;
const CPU_NS: u64 = 150_000_000;

/// Loads, uses and unloads a library again and again.
fn reload(library: &Path) {
    let path = c_path(library);
    let until_ns = sys::own_cpu_ns() + CPU_NS;
    while sys::own_cpu_ns() < until_ns {
        // SAFETY: our own library, whose constructor only adds numbers.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null());
        // SAFETY: a handle of dlopen and a C string.
        let touch = unsafe { libc::dlsym(handle, c"touch_thread_local".as_ptr()) };
        assert!(!touch.is_null());
        // SAFETY: this is the function's type in `helpers.c`.
        let touch: extern "C" fn(c_long) -> c_long = unsafe { std::mem::transmute(touch) };
        assert!(touch(5) >= 5);
        // SAFETY: nothing of the library is used any more.
        assert_eq!(unsafe { libc::dlclose(handle) }, 0);
    }
}

/// The code of the dynamic loader.
fn loader_code() -> (u64, u64) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps
        .lines()
        .find(|line| line.contains("r-xp") && line.contains("/ld-linux"))
        .expect("the dynamic loader");
    let (lo, rest) = line.split_once('-').unwrap();
    let (hi, _) = rest.split_once(' ').unwrap();
    let number = |text| u64::from_str_radix(text, 16).unwrap();
    (number(lo), number(hi))
}

pub fn libraries_come_and_go(stage: &Stage<'_>) {
    // Another file for each thread: the same one would only be counted, not loaded.
    let copy = |number: u64| -> PathBuf {
        let copy = stage.library.with_extension(format!("{number}.so"));
        std::fs::copy(stage.library, &copy).unwrap();
        copy
    };
    let copies: Vec<PathBuf> = (0..THREADS).map(copy).collect();
    let paths = copies.clone();
    let samples = stage.record(|| {
        run_threads(stage.engine, 0..THREADS, move |number| {
            reload(&paths[number as usize]);
        })
    });
    for copy in copies {
        std::fs::remove_file(copy).unwrap();
    }
    let (lo, hi) = loader_code();
    let inside = samples.iter().filter(|s| (lo..hi).contains(&s.pc)).count();
    println!("{inside} of {} samples in the loader", samples.len());
    // It relocates, makes storage and maps all the time; one in a hundred is certain.
    assert!(inside * 100 >= samples.len(), "{inside}");
    assert!(inside > 0);
}
