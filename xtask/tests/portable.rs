//! `portable` on small files, one for each thing that it must see. They are linked here with the C
//! compiler, against a library that stands for libc.

use std::path::{Path, PathBuf};
use std::process::Command;
use xtask::portable::problems;

/// Links `source` with these options.
fn link(name: &str, source: &str, options: &[&str]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let input = directory.join(format!("{name}.c"));
    let output = directory.join(format!("portable-{name}.so"));
    std::fs::write(&input, source).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-nostdlib", "-fPIC", "-o"])
        .args([&output, &input]);
    assert!(cc.args(options).status().unwrap().success());
    output
}

/// A library of this name with `since` in a version.
fn library(name: &str, soname: &str, version: &str) -> String {
    let map = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.map"));
    std::fs::write(&map, format!("{version} {{ global: since; }};")).unwrap();
    let script = format!("-Wl,--version-script,{}", map.display());
    let soname = format!("-Wl,-soname,{soname}");
    let path = link(name, "void since(void) {}", &["-shared", &script, &soname]);
    path.display().to_string()
}

/// The problems of a library that calls `since` of another one.
fn problems_with(name: &str, soname: &str, version: &str) -> Vec<String> {
    let used = library(&format!("{name}-used"), soname, version);
    let source = "void since(void); void call(void) { since(); }";
    let user = link(name, source, &["-shared", &used]);
    problems(&std::fs::read(user).unwrap()).unwrap()
}

#[test]
fn versions_up_to_2_17_are_fine() {
    for version in ["GLIBC_2.2.5", "GLIBC_2.3.4", "GLIBC_2.17"] {
        let found = problems_with("fine", "libc.so.6", version);
        assert!(found.is_empty(), "{version}: {found:?}");
    }
}

#[test]
fn later_versions_are_reported() {
    for version in ["GLIBC_2.17.1", "GLIBC_2.18", "GLIBC_3.0", "GCC_3.0"] {
        let found = problems_with("late", "libc.so.6", version);
        assert_eq!(found, [format!("needs since@{version}")]);
    }
}

#[test]
fn other_libraries_are_reported() {
    for name in ["libgcc_s.so.1", "ld-linux-x86-64.so.2", "librt.so.1"] {
        let found = problems_with("other", name, "GLIBC_2.2.5");
        assert_eq!(found, [format!("needs {name}")]);
    }
}

#[test]
fn symbols_that_nothing_has_are_reported_unless_weak() {
    let source = "void since(void); void call(void) { since(); }";
    let strong = link("strong", source, &["-shared"]);
    let found = problems(&std::fs::read(strong).unwrap()).unwrap();
    let wanted = "needs since, which has no version up to GLIBC_2.17";
    assert_eq!(found, [wanted]);
    let source = source.replacen("void", "__attribute__((weak)) void", 1);
    let weak = link("weak", &source, &["-shared"]);
    assert!(problems(&std::fs::read(weak).unwrap()).unwrap().is_empty());
}

#[test]
fn programs_with_a_loader_are_reported() {
    let source = "void _start(void) {}";
    let dynamic = link("dynamic", source, &["-pie"]);
    let found = problems(&std::fs::read(dynamic).unwrap()).unwrap();
    assert_eq!(found, ["is loaded by one libc's loader"]);
    let fixed = link("fixed", source, &["-static"]);
    assert!(problems(&std::fs::read(fixed).unwrap()).unwrap().is_empty());
}
