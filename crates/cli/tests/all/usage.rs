//! The command without a recording: help, wrong command lines, the list of JVMs, refusals.

use crate::harness::common::{Start, modern};
use crate::harness::{Busy, Place};

/// Each command line is refused in one line with this text, and leaves no file.
#[track_caller]
fn are_refused(test: &str, lines: &[(&[&str], &str)]) {
    let place = Place::new(test);
    std::fs::write(place.path("a.jfr"), "not a recording").unwrap();
    for (args, part) in lines {
        let done = place.dwell(args).exits(2);
        assert!(done.error().contains(part), "{args:?}: {done:?}");
        assert_eq!(
            (done.err.lines().count(), done.out.as_str()),
            (1, ""),
            "{args:?}"
        );
    }
    assert_eq!(place.files(), ["a.jfr"], "nothing is written or left");
}

#[test]
fn wrong_allocation_options_exit_with_2() {
    are_refused(
        "usage-allocations",
        &[
            (&["record", "--alloc", "512kb", "1"], "--alloc"),
            (&["record", "--alloc", "1", "1"], "from 1k to 1g"),
            (&["start", "--alloc", "2g", "1"], "from 1k to 1g"),
            (
                &["diff", "a.jfr", "a.jfr", "--json", "-e", "alloc"],
                "--json is for times",
            ),
            (
                &["diff", "a.jfr", "a.jfr", "-e", "live", "--per", "request"],
                "--per is for times",
            ),
            (
                &[
                    "convert",
                    "a.jfr",
                    "--collapsed",
                    "-e",
                    "alloc",
                    "--unit",
                    "objects",
                ],
                "--unit",
            ),
            (
                &[
                    "convert",
                    "a.jfr",
                    "--collapsed",
                    "-e",
                    "live",
                    "--cause",
                    "lock",
                ],
                "leave out -e live",
            ),
            (
                &["record", "--no-agent", "-e", "live", "1"],
                "-e live: needs",
            ),
            (
                &["convert", "a.jfr", "--collapsed", "--unit", "bytes"],
                "--unit",
            ),
            (
                &["record", "--no-agent", "-e", "alloc", "1"],
                "-e alloc: needs",
            ),
        ],
    );
}

#[test]
fn wrong_lock_options_exit_with_2() {
    are_refused(
        "usage-locks",
        &[
            (&["record", "--lock", "1", "1"], "--lock"),
            (&["record", "--lock", "11s", "1"], "from 1us to 10s"),
            (
                &["diff", "a.jfr", "a.jfr", "--collapsed", "-e", "lock"],
                "-e lock",
            ),
            (
                &[
                    "convert",
                    "a.jfr",
                    "--collapsed",
                    "-e",
                    "lock",
                    "--unit",
                    "bytes",
                ],
                "--unit",
            ),
            (
                &[
                    "convert",
                    "a.jfr",
                    "--collapsed",
                    "-e",
                    "lock",
                    "--cause",
                    "park",
                ],
                "-e lock",
            ),
            (
                &["record", "--no-agent", "-e", "lock", "1"],
                "-e lock: needs",
            ),
        ],
    );
}

#[test]
fn wrong_recording_options_exit_with_2() {
    are_refused(
        "usage",
        &[
            (&["explain"], "required"),
            (&["diff", "a.jfr"], "required"),
            (&["diff", "a.jfr", "a.jfr", "-e", "wall"], "--collapsed"),
            (&["record", "-d", "soon", "1"], "30s, 2m or plain seconds"),
            (&["record", "-d", "-5", "1"], "-5"),
            (&["record", "-d", "1h", "--", "true"], "-d: only `java`"),
            (&["record", "-i", "10", "1"], "with its unit"),
            (&["record", "-i", "1us", "1"], "from 20us to 10s"),
            (&["record", "-e", "heap", "1"], "invalid value 'heap'"),
            (&["record", "--wall", "20", "1"], "with its unit"),
            (&["record", "--wall", "1us", "1"], "from 1ms to 10s"),
            (&["record", "--wall-budget", "2", "1"], "from 0.01% to 100%"),
            (&["record", "--wall-threads", "0", "1"], "--wall-threads"),
            (
                &["record", "--idle", "a method", "1"],
                "package.Class.method",
            ),
            (&["record", "--idle", "a.B.c,d.E.f", "1"], "one method each"),
            (&["record", "--depth", "0", "1"], "--depth"),
            (&["record", "--engine", "itimer", "1"], "--engine"),
            (&["record", ""], "dwell ps"),
            (&["record", "1", "2"], "'2'"),
            (&["record", "1", "--", "java"], "cannot be used"),
            (&["record", "--"], "a command is missing after --"),
            (&["record", "-d", "9", "--"], "missing after --"),
            (
                &["record", "-d", "9", "java", "-jar", "x y.jar"],
                ": dwell record -d 9 -- java -jar 'x y.jar'",
            ),
            (&["record", "sh", "x.sh"], ": dwell record -- sh x.sh"),
            (&["record", "-o", ".", "--", "true"], "-o .: is a directory"),
            (&["record", "-o", ".jfr", "--", "true"], "-o .jfr: no name"),
            (&["record", "-o", "..", "--", "true"], "-o ..: "),
            (&["record", "-o", "a,b", "--", "true"], "-o"),
            (&["start", "--max-size", "2MB", "1"], "--max-size"),
            (&["start", "--max-size", "9k", "1"], "at least 1m"),
            (&["start", "--max-age", "30", "1"], "--max-age"),
            (&["start", "--max-age", "1h,file=/x", "1"], "--max-age"),
            (&["start"], "required"),
            (&["stop"], "required"),
            (&["status", " "], "dwell ps"),
            (&["dump", "-o"], "--output"),
            (&["safepoints"], "required"),
            (&["record", "--no-agent", "--", "java"], "--no-agent"),
            (
                &["record", "--no-agent", "--filter", "context", "1"],
                "--filter: needs",
            ),
            (
                &["record", "--no-agent", "--walk", "handler", "1"],
                "--walk: needs",
            ),
            (&["stacks"], "required"),
            (&["stacks", "--repeat", "0", "1"], "--repeat"),
            (&["stacks", "--virtual=x", "1"], "--virtual"),
            (&["stacks", "-i", "soon", "1"], "--interval"),
            (&["report", "--safepoints", "a.jfr"], "--text"),
            (&["demo", "-d", "0"], "from 1ms"),
            (&["demo", "-i", "1"], "--interval"),
        ],
    );
}

#[test]
fn wrong_watching_options_exit_with_2() {
    are_refused(
        "watching",
        &[
            (&["top"], "required"),
            (&["top", "1"], "not a terminal; add --batch"),
            (&["top", "--every", "1s", "1"], "--batch"),
            (&["top", "--window", "0.5s", "1"], "from 1s to 5m"),
            (&["top", "--view", "heap", "1"], "'heap'"),
            (&["top", "-b", "-n", "0", "1"], "--count"),
            (
                &["top", "-b", "--no-agent", "--filter", "context", "1"],
                "--filter: needs",
            ),
            (&["safepoints", "--least", "x", "1"], "--least"),
            (&["view"], "required"),
            (&["view", "--serve=x", "a.jfr"], "--serve"),
            (&["view", "--serve=70000", "a.jfr"], "--serve"),
        ],
    );
}

#[test]
fn wrong_report_options_exit_with_2() {
    are_refused(
        "usage-reports",
        &[
            (&["bogus"], "unrecognized subcommand 'bogus'"),
            (&["ps", "--all"], "--all"),
            (&["ps", "1"], "'1'"),
            (&["report"], "required"),
            (&["report", "a.jfr", "-o", "x.txt"], "--output"),
            (&["report", "a.jfr", "-o", "x.pdf"], "a page is .html"),
            (&["report", "a.jfr", "-o", "a.jfr"], "a page is .html"),
            (&["report", "a.jfr", "-o", ""], "--output"),
            (&["report", "a.jfr", "--text", "-o", "x.html"], "--text"),
            (&["report", "--idle", "a.jfr"], "--text"),
            (
                &["report", "--text", "--safepoints", "--idle", "a.jfr"],
                "cannot be used with",
            ),
            (&["report", "a.jfr", "b.jfr"], "b.jfr"),
            (&["diff", "a.jfr", "b", "-o", "x.txt"], "a page is .html"),
            (&["reprot", "a.jfr"], "'report'"),
            (&["report", "a.jfr", "--txt"], "see dwell report --help"),
        ],
    );
}

#[test]
fn wrong_conversions_exit_with_2() {
    are_refused(
        "usage-conversions",
        &[
            (&["convert", "a.jfr"], "--output"),
            (&["convert", "a.jfr", "-o", "x.pprof"], "--output"),
            (
                &["convert", "a.jfr", "-o", "x"],
                ".pb.gz, .json.gz, .speedscope.json, .otlp, .otlp.json or DIR/",
            ),
            (&["convert", "a.jfr", "-o", "a.jfr"], "is the input"),
            (
                &["convert", "a.jfr", "-o", "x.html", "--threads"],
                "--threads",
            ),
            (
                &["convert", "a.jfr", "-o", "x.txt", "--unit", "ns"],
                "--unit",
            ),
            (
                &["convert", "a.jfr", "-o", "x.txt", "--unit", "s"],
                "--unit",
            ),
            (
                &["convert", "a.jfr", "-o", "x.html", "--cause", "monitor"],
                "--cause is for collapsed stacks only",
            ),
            (
                &["convert", "a.jfr", "-o", "x.html", "--safepoints"],
                "--safepoints is for collapsed stacks only",
            ),
            (
                &["convert", "a.jfr", "-o", "x.collapsed", "--cause", "lunch"],
                "one of running, runnable",
            ),
            (
                &[
                    "convert",
                    "a.jfr",
                    "-o",
                    "x.collapsed",
                    "-e",
                    "cpu",
                    "--cause",
                    "sleep",
                ],
                "leave out -e cpu",
            ),
            (
                &["convert", "a.jfr", "--collapsed", "--html"],
                "cannot be used with",
            ),
            (
                &["convert", "a.jfr", "--html", "--thread", "x"],
                "--thread is for collapsed stacks only",
            ),
            (
                &["convert", "a.jfr", "-o", "x.collapsed", "--to", "noon"],
                "1.5s, 2m or plain seconds",
            ),
        ],
    );
}

#[test]
fn wrong_exports_exit_with_2() {
    are_refused(
        "usage-exports",
        &[
            (
                &["convert", "a.jfr", "--pprof", "--jfr"],
                "cannot be used with",
            ),
            (
                &["convert", "a.jfr", "-o", "x.pb.gz", "--cause", "park"],
                "--cause is for collapsed stacks only",
            ),
            (&["convert", "a.jfr", "-o", "x.gz"], "--output"),
            (
                &["diff", "a.jfr", "b.jfr", "--fail-on", "cpu"],
                "in quotes, such as 'cpu>5%'",
            ),
            (
                &["diff", "a.jfr", "b.jfr", "--fail-on", "lunch>5%"],
                "one of running, runnable",
            ),
            (
                &["diff", "a.jfr", "b.jfr", "--markdown", "--json"],
                "cannot be used with",
            ),
            (
                &["diff", "a.jfr", "b.jfr", "--markdown", "-e", "live"],
                "--markdown is for times",
            ),
            (
                &[
                    "diff",
                    "a.jfr",
                    "b.jfr",
                    "-e",
                    "alloc",
                    "--fail-on",
                    "alloc>5%",
                ],
                "--fail-on: leave -e out",
            ),
        ],
    );
}

#[test]
fn failures_exit_with_1() {
    let place = Place::new("failure");
    std::fs::create_dir(place.path("dir.jfr")).unwrap();
    for (args, part) in [
        (&["report", "none.jfr"][..], "none.jfr: no such file"),
        (&["report", "dir.jfr"], "dir.jfr is a directory; give a"),
        (&["report", "."], ". is a directory; give a recording"),
        (&["report", ".", "--text"], ". is a directory; give a"),
        (&["convert", ".", "-o", "x.txt"], ". is a directory; give"),
        (&["record", "/bin/sh"], ": dwell record -- /bin/sh"),
        (&["convert", "none.jfr", "-o", "x.txt"], "none.jfr: no such"),
        (&["record", "0"], "no process 0"),
        (&["stop", "99999999999"], "no process 99999999999"),
        (&["status", "NoSuchMainClass"], "dwell ps"),
        (&["record", "--", "/"], "/: "),
        (&["record", "-o", "none/x", "--", "true"], "with -o"),
    ] {
        let done = place.dwell(args).exits(1);
        assert!(done.error().contains(part), "{args:?}: {done:?}");
        assert_eq!(done.out, "", "{args:?}");
    }
    assert_eq!(place.files(), ["dir.jfr"]);
}

#[test]
fn hostile_names_do_not_reach_the_terminal() {
    let place = Place::new("hostile");
    let name = "a\u{1b}[31m\nb\u{202e}";
    std::fs::write(place.path(&format!("{name}.jfr")), "not a recording").unwrap();
    let jfr = format!("{name}.jfr");
    for (args, code) in [
        (&["report", &jfr][..], 1),
        (&["report", &format!("none{name}")], 1),
        (&["report", &jfr, "-o", &format!("{name}.x")], 2),
        (&["record", name], 1),
        (&["record", "-i", name, "1"], 2),
        (&["record", "-o", &format!("none/{name}"), "--", "true"], 1),
        (&["record", "--", &format!("./{name}")], 1),
        (&[name], 2),
    ] {
        let done = place.dwell(args).exits(code);
        let line = done.error();
        assert!(!line.contains(['\u{1b}', '\u{202e}']), "{args:?}: {line:?}");
        assert_eq!(done.err.lines().count(), 1, "{args:?}: {done:?}");
    }
}

#[test]
fn help_has_examples() {
    let place = Place::new("help");
    for args in [
        &["--help"][..],
        &["record", "--help"],
        &["start", "--help"],
        &["report", "--help"],
    ] {
        let done = place.dwell(args).exits(0);
        assert!(done.out.contains("Examples:"), "{done:?}");
    }
    let version = place.dwell(&["--version"]).exits(0).out;
    assert_eq!(version, concat!("dwell ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn files_that_are_no_recordings_are_refused() {
    let place = Place::new("files");
    std::fs::write(place.path("text.jfr"), "not a recording").unwrap();
    std::fs::write(place.path("empty.jfr"), "").unwrap();
    for (args, part) in [
        (
            &["report", "text.jfr"][..],
            "text.jfr cannot be read as a JFR recording",
        ),
        (&["report", "empty.jfr"], "empty.jfr is empty"),
        (&["report", "none.jfr"], "none.jfr: no such file; give"),
        (&["view", "none.jfr"], "make one with: dwell record PID"),
        (&["view", "none.html"], "make one with: dwell record PID"),
        (&["view", "--serve", "none.html"], "none.html: no such file"),
        (
            &["convert", "text.jfr", "-o", "x.html"],
            "text.jfr cannot be read",
        ),
    ] {
        let done = place.dwell(args).exits(1);
        assert!(done.error().contains(part), "{args:?}: {done:?}");
    }
    // Another name of the recording is refused as well.
    std::os::unix::fs::symlink("text.jfr", place.path("link.html")).unwrap();
    let done = place
        .dwell(&["report", "text.jfr", "-o", "link.html"])
        .exits(2);
    assert!(done.error().contains("is the input"), "{done:?}");
    assert_eq!(place.files(), ["empty.jfr", "link.html", "text.jfr"]);
}

#[test]
fn ps_lists_a_jvm() {
    let place = Place::new("ps");
    let busy = Busy::start(&modern());
    let done = place.dwell(&["ps"]).exits(0);
    let line = done
        .out
        .lines()
        .find(|line| line.trim_start().starts_with(&format!("{} ", busy.pid())))
        .unwrap();
    assert!(line.ends_with("  io.dwell.test.Steady60"), "{line}");
    assert!(line.contains(&format!("  {}.", modern().feature)), "{line}");
}

#[test]
fn unsuitable_process_is_refused_untouched() {
    let place = Place::new("refuse");
    let mut sleeper = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let done = place.dwell(&["record", &sleeper.id().to_string()]).exits(1);
    assert!(done.error().contains("(sleep) is not a JVM"), "{done:?}");
    assert_eq!(sleeper.try_wait().unwrap(), None);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();

    let done = place.dwell(&["record", &sleeper.id().to_string()]).exits(1);
    assert!(done.error().contains("no process"), "{done:?}");
    let done = place.dwell(&["record", "NoSuchMainClass"]).exits(1);
    assert!(
        done.error().contains("no JVM matches 'NoSuchMainClass'"),
        "{done:?}"
    );

    let flag = "-XX:+DisableAttachMechanism";
    let mut disabled = Start::new(&modern()).option(flag).run();
    let done = place.dwell(&["record", &disabled.pid.to_string()]).exits(1);
    assert!(done.error().contains(flag), "{done:?}");
    disabled.assert_untouched();
    assert!(place.files().is_empty(), "{:?}", place.files());
}

#[test]
fn unwritable_output_is_refused_before_attach() {
    let place = Place::new("output");
    let mut idle = Start::new(&modern()).run();
    let pid = idle.pid.to_string();
    let done = place
        .dwell(&["record", "-o", "/proc/none/x", &pid])
        .exits(1);
    assert!(
        done.error().contains("/proc/none/x.jfr cannot be written"),
        "{done:?}"
    );
    let done = place.dwell(&["record", "-o", ".", &pid]).exits(2);
    assert!(done.error().contains("is a directory"), "{done:?}");
    assert!(!std::path::Path::new(&format!("/tmp/.java_pid{pid}")).exists());
    idle.assert_untouched();
}

#[test]
fn unrecorded_jvm_is_reported_without_attaching() {
    let place = Place::new("idle");
    let mut idle = Start::new(&modern()).run();
    let pid = idle.pid.to_string();
    let done = place.dwell(&["status", &pid]).exits(0);
    assert_eq!(done.out, format!("JVM {pid} is not being recorded\n"));
    for command in ["stop", "dump"] {
        let done = place.dwell(&[command, &pid]).exits(1);
        assert!(
            done.error().contains(&format!("dwell start {pid}")),
            "{done:?}"
        );
    }
    assert!(!std::path::Path::new(&format!("/tmp/.java_pid{pid}")).exists());
    idle.assert_untouched();
}

#[test]
fn closed_pipe_is_no_error() {
    let place = Place::new("pipe");
    let mut child = place.command(&["--help"]).spawn().unwrap();
    drop(child.stdout.take());
    assert!(!crate::harness::finish(child).err.contains("panicked"));
    let mut child = place.command(&["ps"]).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(crate::harness::finish(child).exits(0).err, "");
}
