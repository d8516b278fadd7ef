//! Commands in the documents run: on a recording of the program in docs/context.md, and on a JVM.

use crate::fenced::{Document, Line, commands, documents};
use crate::harness::common::modern;
use crate::harness::{Busy, Place};
use crate::query;
use std::path::Path;

/// Commands that are parsed only (`crates/cli/src/documents_tests.rs`), each with the reason.
const NOT_RUN: [(&str, &str); 9] = [
    (
        "record",
        "it lasts as long as the example says, up to minutes",
    ),
    ("start", "it changes the recording that other commands read"),
    ("stop", "it ends the recording that other commands read"),
    ("dump", "it replaces a file of the JVM's directory"),
    ("safepoints", "it lasts until it is ended"),
    ("ship", "it needs a receiver"),
    ("view", "it opens a browser, or serves until it is ended"),
    ("demo", "it records for 15 seconds"),
    ("install-mono", "it writes to the directories of the system"),
];

/// Makes `app.jfr`, with all events and requests, of the page's own example.
fn record(place: &Place, pages: &[Document]) {
    let page = pages.iter().find(|it| it.path == "docs/context.md");
    let (_, code) = page.unwrap().content.split_once("```java\n").unwrap();
    let (code, _) = code.split_once("```").unwrap();
    std::fs::write(place.path("Server.java"), code).unwrap();
    let jar = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/java/dwell-api.jar");
    let java = modern().java();
    let words = [
        "record",
        "-e",
        "all",
        "-o",
        "app",
        "--",
        java.to_str().unwrap(),
        "-cp",
        jar.to_str().unwrap(),
        "Server.java",
    ];
    place.dwell(&words).exits(0);
}

/// The words to run: the pid of a JVM for that of the example, and a single screen of `top`.
fn adapted(place: &Place, words: &[String], pid: &str) -> Vec<String> {
    let is_live = matches!(words[0].as_str(), "status" | "stacks" | "top");
    let is_pid = |word: &str| word == "PID" || word.bytes().all(|byte| byte.is_ascii_digit());
    // All files are in the directory of the test.
    let local = |word: &String| match word.rsplit_once('/') {
        Some((_, name)) if word.starts_with('/') => name.to_owned(),
        _ => word.clone(),
    };
    let mut adapted: Vec<String> = words.iter().map(local).collect();
    if let Some(last) = adapted.last_mut().filter(|it| is_live && is_pid(it)) {
        pid.clone_into(last);
    }
    if words[0] == "top" {
        adapted.extend(["--batch", "--window", "1s", "-n", "1"].map(str::to_owned));
    }
    for (at, word) in adapted.iter().enumerate() {
        if words[0] == "diff" && word.ends_with('/') {
            std::fs::create_dir_all(place.path(word)).unwrap();
            let benchmark = place.path(word).join("app.jfr");
            std::fs::copy(place.path("app.jfr"), benchmark).unwrap();
        }
        let is_input = word.ends_with(".jfr") && adapted[at - 1] != "-o";
        if is_input && !place.path(word).exists() {
            std::fs::copy(place.path("app.jfr"), place.path(word)).unwrap();
        }
    }
    adapted
}

#[test]
fn documents_have_commands_that_run() {
    let pages = documents();
    let place = Place::new("documents");
    record(&place, &pages);
    // `top` makes a recording of its own.
    let (free, recorded) = (Busy::resting(&modern()), Busy::resting(&modern()));
    let file = place.path("live.jfr");
    let start = ["start", "-o", file.to_str().unwrap(), &recorded.pid()];
    place.dwell(&start).exits(0);
    let lines: Vec<Line> = pages.iter().flat_map(commands).collect();
    let mut ran = 0;
    let duckdb = query::duckdb();
    for line in &lines {
        let name = line.words[0].as_str();
        if NOT_RUN.iter().any(|(not_run, _)| *not_run == name) {
            continue;
        }
        let jvm = if name == "top" { &free } else { &recorded };
        let words = adapted(&place, &line.words, &jvm.pid());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = match (name, &duckdb) {
            ("query", None) => {
                println!("not tried: {words:?}: duckdb is not installed");
                continue;
            }
            ("query", Some(duckdb)) => query::command(&place, duckdb, &words),
            _ => place.command(&words),
        };
        let done = command.envs(line.variables.iter().cloned());
        let done = crate::harness::finish(done.spawn().unwrap());
        // A limit of --fail-on may be exceeded.
        let is_right = match done.code() {
            Some(0) => true,
            Some(3) => words.contains(&"--fail-on"),
            _ => false,
        };
        assert!(is_right, "{}: {words:?}: {done:?}", line.place);
        ran += 1;
    }
    assert!(ran > 25, "only {ran} of {} commands ran", lines.len());
    for (name, reason) in NOT_RUN {
        let is_there = lines.iter().any(|line| line.words[0] == name);
        assert!(is_there, "no document has {name} ({reason})");
    }
}
