//! Mono programs and the command: recorded from their start, listed, refused if they already run,
//! and the message if Mono has not loaded the module. Skipped with a line if Mono is missing.

use crate::harness::Place;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

const SOURCE: &str = "
static class Spin {
    static long Work(long x) { for (int i = 0; i < 200000000; i++) x = x * 31 + i; return x; }
    static void Main(string[] args) {
        if (args.Length > 0) System.Threading.Thread.Sleep(60000);
        System.Console.WriteLine(Work(1) == Work(1));
    }
}
";

/// A place with `spin.exe`; `None` without Mono.
fn with_program(test: &str) -> Option<Place> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has = |name: &str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    if !has("mono") || !has("mcs") {
        // Directly to the stream, because the harness captures the output of passing tests.
        let _ = writeln!(
            std::io::stderr(),
            "\nskipped: {test}: there is no mono or no mcs on this machine (on Debian: apt-get \
             install mono-runtime mono-mcs)"
        );
        return None;
    }
    let place = Place::new(test);
    std::fs::write(place.path("spin.cs"), SOURCE).unwrap();
    let compiled = Command::new("mcs")
        .args(["-debug", "spin.cs"])
        .current_dir(&place.dir)
        .status();
    assert!(compiled.unwrap().success());
    std::fs::remove_file(place.path("spin.cs")).unwrap();
    Some(place)
}

#[test]
fn mono_program_is_recorded_and_its_reports_read_it() {
    let Some(place) = with_program("mono-recorded") else {
        return;
    };
    let words = ["record", "-i", "1ms", "--", "mono", "--debug", "spin.exe"];
    let done = place.dwell(&words).exits(0);
    assert!(done.out.starts_with("True\n"), "{done:?}");
    let files = place.files();
    let named = |ending: &str| {
        let is_it = |name: &&String| name.starts_with("spin-") && name.ends_with(ending);
        files
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("{files:?}"))
    };
    named(".html");
    let report = place.dwell(&["report", named(".jfr"), "--text"]).exits(0);
    assert!(report.out.contains("Mono "), "{report:?}");
    assert!(report.out.contains("Spin.Work"), "{report:?}");
    // It was compiled while it ran, and Mono has no C2.
    let spent = report.out.lines().find(|line| line.starts_with("spent in"));
    let spent = spent.expect("a line on kinds of code");
    assert!(spent.contains("JIT ") && !spent.contains("C2 "), "{spent}");
    let out = ["convert", named(".jfr"), "--collapsed"];
    let stacks = place.dwell(&out).exits(0).out;
    let is_whole = |line: &str| line.contains("Spin.Main;Spin.Work");
    assert!(stacks.lines().any(is_whole), "{stacks}");
}

#[test]
fn mono_started_by_a_script_is_recorded() {
    let Some(place) = with_program("mono-script") else {
        return;
    };
    let script = "mono spin.exe && exit 7";
    let words = ["record", "-o", "all", "--", "sh", "-c", script];
    let done = place.dwell(&words).exits(7);
    assert!(done.out.contains("all.html"), "{done:?}");
    assert!(place.files().contains(&"all.jfr".to_owned()));
}

#[test]
fn running_mono_is_listed_with_record_command() {
    let Some(place) = with_program("mono-running") else {
        return;
    };
    let mut mono = Command::new("mono")
        .args(["spin.exe", "wait"])
        .current_dir(&place.dir)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = mono.id().to_string();
    let is_its = |line: &str| line.trim_start().starts_with(&format!("{pid} "));
    let listed = loop {
        let list = place.dwell(&["ps"]).exits(0).out;
        match list.lines().find(|line| is_its(line)) {
            Some(line) => break line.to_owned(),
            // Its program is not loaded yet.
            None => assert!(mono.try_wait().unwrap().is_none(), "it has ended"),
        }
    };
    assert!(
        listed.contains("Mono") && listed.contains("spin.exe"),
        "{listed}"
    );
    let done = place.dwell(&["record", &pid]).exits(1);
    let said = done.error();
    assert!(
        said.contains("Mono loads profilers only when it starts"),
        "{said}"
    );
    assert!(said.contains("dwell record -- mono"), "{said}");
    assert!(said.contains("MONO_ENV_OPTIONS"), "{said}");
    mono.kill().unwrap();
    mono.wait().unwrap();
}

#[test]
fn module_that_mono_did_not_load_is_reported() {
    let Some(place) = with_program("mono-silent") else {
        return;
    };
    // A mono with other search paths for libraries.
    let script = "#!/bin/sh\nunset LD_LIBRARY_PATH\nexec \"$(command -v mono-sgen)\" \"$@\"\n";
    std::fs::write(place.path("mono"), script).unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path("mono"), executable).unwrap();
    let done = place
        .dwell(&["record", "--", "./mono", "spin.exe"])
        .exits(1);
    let said = done.error();
    assert!(said.contains("nothing was recorded"), "{said}");
    assert!(said.contains("libmono-profiler-dwell.so"), "{said}");
    assert!(said.contains("dwell install-mono"), "{said}");
}

#[test]
fn installed_module_works_in_the_given_directory() {
    let Some(place) = with_program("mono-installed") else {
        return;
    };
    std::fs::create_dir(place.path("lib")).unwrap();
    let done = place.dwell(&["install-mono", "lib"]).exits(0);
    assert!(
        done.out.contains("lib/libmono-profiler-dwell.so"),
        "{done:?}"
    );
    let ran = Command::new("mono")
        .arg("spin.exe")
        .current_dir(&place.dir)
        .env("LD_LIBRARY_PATH", place.path("lib"))
        .env("MONO_ENV_OPTIONS", "--profile=dwell:cpu=1ms,file=own.jfr")
        .output()
        .unwrap();
    assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
    assert!(place.samples("own.jfr") > 0);
    place.dwell(&["install-mono", "none"]).exits(2);
}
