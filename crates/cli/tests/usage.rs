//! What needs no recording: help, wrong command lines, the list of JVMs, refusals.
#![allow(missing_docs)]

mod harness;

use harness::common::{Start, modern};
use harness::{Busy, Place};

#[test]
fn wrong_command_lines_are_one_line_and_exit_code_2() {
    let place = Place::new("usage");
    for (args, part) in [
        (&["record"][..], "required"),
        (&["record", "-d", "soon", "1"], "30s, 2m or plain seconds"),
        (&["record", "-i", "10", "1"], "with its unit"),
        (&["record", "-i", "1us", "1"], "from 20us to 10s"),
        (&["record", "-e", "wall", "1"], "invalid value 'wall'"),
        (&["record", "1", "--", "java"], "cannot be used"),
        (&["bogus"], "unrecognized subcommand 'bogus'"),
        (&["ps", "--all"], "--all"),
        (&["report"], "required"),
    ] {
        let done = place.dwell(args).exits(2);
        assert!(done.error().contains(part), "{args:?}: {done:?}");
        assert_eq!(
            (done.err.lines().count(), done.out.as_str()),
            (1, ""),
            "{args:?}"
        );
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
fn files_that_are_no_recordings_are_named() {
    let place = Place::new("files");
    std::fs::write(place.path("text.jfr"), "not a recording").unwrap();
    std::fs::write(place.path("empty.jfr"), "").unwrap();
    for (args, part) in [
        (&["report", "none.jfr"][..], "none.jfr: No such file"),
        (
            &["report", "text.jfr"],
            "text.jfr cannot be read as a JFR recording",
        ),
        (&["report", "empty.jfr"], "empty.jfr is empty"),
        (
            &["report", "text.jfr", "-o", "text.jfr"],
            "is the recording itself",
        ),
        (
            &["convert", "text.jfr", "-o", "x.png"],
            "name it .collapsed, .html or .txt",
        ),
        (
            &["convert", "text.jfr", "-o", "x.html"],
            "text.jfr cannot be read",
        ),
    ] {
        let done = place.dwell(args).exits(1);
        assert!(done.error().contains(part), "{args:?}: {done:?}");
    }
    assert_eq!(place.files(), ["empty.jfr", "text.jfr"]);
}

#[test]
fn ps_lists_a_jvm() {
    let place = Place::new("ps");
    let busy = Busy::start(&modern());
    let done = place.dwell(&["ps"]).exits(0);
    let line = done
        .out
        .lines()
        .find(|line| line.trim_start().starts_with(&busy.pid()))
        .unwrap();
    assert!(line.ends_with("  io.dwell.test.Steady60"), "{line}");
    assert!(line.contains(&format!("  {}.", modern().feature)), "{line}");
}

#[test]
fn what_cannot_be_recorded_is_refused_and_left_alone() {
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
        done.error().contains("no JVM's main class or jar holds"),
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
fn an_output_that_cannot_be_written_is_refused_before_the_jvm_is_touched() {
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
    let done = place.dwell(&["record", "-o", ".", &pid]).exits(1);
    assert!(done.error().contains("is a directory"), "{done:?}");
    assert!(!std::path::Path::new(&format!("/tmp/.java_pid{pid}")).exists());
    idle.assert_untouched();
}

#[test]
fn a_jvm_that_is_not_recorded_says_so_without_being_touched() {
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
fn a_closed_pipe_is_no_error() {
    let place = Place::new("pipe");
    let mut child = place.command(&["--help"]).spawn().unwrap();
    drop(child.stdout.take());
    assert!(!harness::finish(child).err.contains("panicked"));
    let mut child = place.command(&["ps"]).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(harness::finish(child).exits(0).err, "");
}
