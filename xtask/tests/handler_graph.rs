//! `handler-graph` on small libraries, one for each thing it must see. They are compiled here, with
//! the compiler that builds the project, at the optimisation level that ships.

use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::graph::{Image, Report, Rules, walk};

const HEAD: &str = "
#![allow(unused)]
use std::arch::asm;
#[inline(always)]
unsafe fn call(number: usize) { unsafe { asm!(\"syscall\", inlateout(\"rax\") number => _,
    lateout(\"rcx\") _, lateout(\"r11\") _); } }
";

fn compile(name: &str, source: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let input = directory.join(format!("{name}.rs"));
    let output = directory.join(format!("lib{name}.so"));
    std::fs::write(&input, format!("{HEAD}{source}")).unwrap();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let status = Command::new(rustc)
        .args([
            "--edition=2024",
            "--crate-type=cdylib",
            "-Copt-level=3",
            "-o",
        ])
        .args([&output, &input])
        .status()
        .unwrap();
    assert!(status.success());
    output
}

/// The report on a library whose only root is `dwell_test_handler`.
fn report(name: &str, source: &str) -> Report {
    let bytes = std::fs::read(compile(name, source)).unwrap();
    let rules = Rules {
        roots: vec!["dwell_test_handler".to_owned()],
        ..Rules::for_dwell()
    };
    walk(&Image::parse(&bytes).unwrap(), &rules).unwrap()
}

fn assert_problem(name: &str, source: &str, expected: &str) {
    let report = report(name, source);
    let found = report
        .problems
        .iter()
        .any(|problem| problem.contains(expected));
    assert!(found, "no problem with {expected} in {report}");
}

#[test]
fn a_handler_that_only_counts_and_copies_is_fine() {
    let report = report(
        "fine",
        "use std::sync::atomic::*;
        static COUNT: AtomicU64 = AtomicU64::new(0);
        #[inline(never)] fn step(n: u64) -> u64 { COUNT.fetch_add(n, Ordering::Relaxed) }
        #[unsafe(no_mangle)] pub extern \"C\" fn dwell_test_handler(to: *mut u8, len: usize) {
            step(step(3));
            unsafe { call(186); to.copy_from_nonoverlapping(0x1000 as *const u8, len); }
        }",
    );
    assert!(report.problems.is_empty(), "{report}");
    assert!(
        report.reached.keys().any(|name| name.contains("step")),
        "{report}"
    );
    assert!(report.imports.contains("memcpy"), "{report}");
    assert_eq!(
        report.system_calls.iter().copied().collect::<Vec<_>>(),
        [186]
    );
}

#[test]
fn sees_an_allocation() {
    assert_problem(
        "allocates",
        "#[inline(never)] fn deep(n: usize) -> Vec<u8> { vec![1; n] }
        #[unsafe(no_mangle)] pub extern \"C\" fn dwell_test_handler(n: usize) -> usize {
            deep(n).iter().filter(|b| **b as usize == n).count()
        }",
        "alloc",
    );
}

#[test]
fn sees_a_bounds_check() {
    assert_problem(
        "panics",
        "static TABLE: [u8; 7] = [1, 2, 3, 4, 5, 6, 7];
        #[unsafe(no_mangle)] pub extern \"C\" fn dwell_test_handler(n: usize) -> u8 { TABLE[n] }",
        "core::panicking",
    );
}

#[test]
fn sees_a_function_reached_by_its_address_only() {
    assert_problem(
        "address",
        "use std::hint::black_box;
        extern \"C\" fn bad(n: usize) -> usize { String::from_utf8(vec![b'x'; n]).unwrap().len() }
        #[unsafe(no_mangle)] pub extern \"C\" fn dwell_test_handler(n: usize) -> usize {
            black_box(bad as extern \"C\" fn(usize) -> usize)(n)
        }",
        "alloc",
    );
}

#[test]
fn sees_lazy_thread_local_storage() {
    assert_problem(
        "tls",
        "use std::cell::Cell;
        thread_local! { static SEEN: Cell<u64> = const { Cell::new(0) }; }
        #[unsafe(no_mangle)] pub extern \"C\" fn dwell_test_handler() { SEEN.set(SEEN.get() + 1) }",
        "__tls_get_addr",
    );
}

#[test]
fn sees_an_import_that_is_not_listed() {
    assert_problem(
        "imports",
        "unsafe extern \"C\" { fn getenv(name: *const u8) -> *const u8; }
        #[unsafe(no_mangle)] pub extern \"C\" fn dwell_test_handler(name: *const u8) -> *const u8 {
            unsafe { getenv(name) }
        }",
        "getenv of another library",
    );
}

#[test]
fn sees_an_indirect_call_that_is_not_listed() {
    assert_problem(
        "indirect",
        "#[unsafe(no_mangle)]
        pub extern \"C\" fn dwell_test_handler(next: extern \"C\" fn() -> u64) -> u64 {
            next() + 1
        }",
        "makes 1 indirect calls, 0 known",
    );
}

#[test]
fn unlisted_and_unknown_system_calls_are_reported() {
    assert_problem(
        "exits",
        "#[unsafe(no_mangle)] pub extern \"C\" fn dwell_test_handler() { unsafe { call(231) } }",
        "system call 231",
    );
    assert_problem(
        "unknown",
        "#[unsafe(no_mangle)]
        pub extern \"C\" fn dwell_test_handler(number: usize) { unsafe { call(number) } }",
        "system call of unknown number",
    );
}

#[test]
fn sees_a_lock() {
    assert_problem(
        "locks",
        "use std::sync::Mutex;
        static SHARED: Mutex<u64> = Mutex::new(0);
        #[unsafe(no_mangle)] pub extern \"C\" fn dwell_test_handler() {
            if let Ok(mut shared) = SHARED.lock() { *shared += 1; }
        }",
        "std::",
    );
}

#[test]
fn hooks_are_roots_as_well() {
    assert_problem(
        "hook",
        "#[unsafe(no_mangle)] pub extern \"C\" fn dwell_test_handler() {}
        #[unsafe(no_mangle)] pub extern \"C\" fn dwell_extra_hook(n: usize) -> u8 {
            [1, 2, 3][n]
        }",
        "core::panicking",
    );
}

#[test]
fn a_library_without_the_handlers_is_an_error() {
    let bytes = std::fs::read(compile("empty", "#[unsafe(no_mangle)] pub fn other() {}")).unwrap();
    let error = walk(&Image::parse(&bytes).unwrap(), &Rules::for_dwell()).unwrap_err();
    assert!(error.to_string().contains("dwell_sample_handler"));
    assert!(Image::parse(b"\x7fELF and no more").is_err());
}
