//! Recording programs from their start: exit codes, files, several JVMs, the demo.

use crate::harness::common::{Jdk, jdks, modern};
use crate::harness::{Place, busy_words, finish, signal, until, wait_for};
use rustix::process::Signal;
use std::process::Child;

/// The words of a shell that runs the busy program, followed by more commands.
fn script(jdk: &Jdk, seconds: u32, then: &str) -> String {
    let words: Vec<String> = busy_words(seconds)
        .iter()
        .map(|w| format!("'{w}'"))
        .collect();
    format!(
        "'{}' {} >/dev/null; {then}",
        jdk.java().display(),
        words.join(" ")
    )
}

fn with_java<'a>(options: &[&'a str], java: &'a str, words: &'a [String]) -> Vec<&'a str> {
    let mut args = vec!["record"];
    args.extend(options);
    args.extend(["--", java]);
    args.extend(words.iter().map(String::as_str));
    args
}

#[test]
fn java_program_is_recorded_to_its_end() {
    for jdk in jdks() {
        let place = Place::new(&format!("launched-{}", jdk.feature));
        let (java, words) = (jdk.java().to_str().unwrap().to_owned(), busy_words(1));
        let done = place
            .dwell(&with_java(&["-o", "whole"], &java, &words))
            .exits(0);
        assert!(done.out.contains("whole.html"), "{done:?}");
        assert_eq!(place.files(), ["whole.html", "whole.jfr"]);
        place.has_busy_stack("whole.jfr");
    }
}

#[test]
fn program_exit_code_is_returned() {
    let place = Place::new("exit-code");
    let java = modern().java().to_str().unwrap().to_owned();
    let words = ["-cp", "none", "NoSuchMain"].map(str::to_owned);
    place.dwell(&with_java(&[], &java, &words)).exits(1);
    let shell = script(&modern(), 1, "exit 7");
    let done = place
        .dwell(&["record", "-o", "seven", "--", "sh", "-c", &shell])
        .exits(7);
    assert!(done.out.contains("seven.html"), "{done:?}");
    place.has_busy_stack("seven.jfr");
    let done = place.dwell(&["record", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(done.code(), Some(128 + 9), "{done:?}");
}

#[test]
fn missing_jvm_or_program_is_reported() {
    let place = Place::new("no-jvm");
    let done = place.dwell(&["record", "--", "true"]).exits(1);
    assert!(done.error().contains("nothing was recorded"), "{done:?}");
    let done = place.dwell(&["record", "--", "./no-such-program"]).exits(1);
    assert!(
        done.error().contains("./no-such-program: no such program"),
        "{done:?}"
    );
    let done = place.dwell(&["record", "-d", "1", "--", "true"]).exits(2);
    assert!(done.error().contains("`java` itself"), "{done:?}");
    assert!(place.files().is_empty(), "{:?}", place.files());
}

/// Runs the command in a shell that has first made writing impossible.
fn with_full_disk(
    place: &Place,
    shell: &[&str],
    make_full: &str,
    args: &[&str],
) -> crate::harness::Done {
    let mut command = std::process::Command::new(shell[0]);
    command
        .args(&shell[1..])
        .args(["-c", &format!("{make_full} && exec \"$0\" \"$@\"")])
        .arg(env!("CARGO_BIN_EXE_dwell"))
        .args(args)
        .current_dir(&place.dir)
        .env("JAVA_TOOL_OPTIONS", "-XX:-UsePerfData")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    finish(command.spawn().unwrap())
}

#[test]
fn unwritable_recording_of_a_program_is_reported() {
    const MOUNT: &str = "mount -t tmpfs -o size=64k none disk";
    let place = Place::new("full-disk");
    std::fs::create_dir(place.path("disk")).unwrap();
    let java = modern().java().to_str().unwrap().to_owned();
    let words = busy_words(1);
    let through_shell = script(&modern(), 1, "true");
    let through_shell = ["record", "-o", "x", "--", "sh", "-c", &through_shell];
    let own_mounts = ["unshare", "--mount", "bash"];
    // A limit of the file size has the effect of a full disk anywhere.
    let full_disk = format!("{MOUNT} && cd disk && ! cat /dev/zero 2>/dev/null >filler");
    let mut ways = vec![(&own_mounts[2..], "ulimit -f 4", "file too large")];
    let mut mount = std::process::Command::new(own_mounts[0]);
    mount.args(&own_mounts[1..]).args(["-c", MOUNT]);
    if mount
        .current_dir(&place.dir)
        .status()
        .is_ok_and(|status| status.success())
    {
        ways.push((&own_mounts[..], full_disk.as_str(), "no storage space"));
    } else {
        println!("not tried: only who may mount has a disk to fill");
    }
    // The limit also applies to the libraries, for JVMs and for Mono, which a shell may start. From
    // here on they are in place.
    place.dwell(&["record", "--", "true"]).exits(1);
    assert_eq!(place.files(), ["disk"]);
    for (shell, make_full, reason) in ways {
        for args in [
            with_java(&["-o", "x"], &java, &words),
            through_shell.to_vec(),
        ] {
            let done = with_full_disk(&place, shell, make_full, &args).exits(1);
            let said = done.err.lines().last().unwrap();
            assert!(
                said.starts_with("dwell: nothing was recorded: cannot write ")
                    && said.ends_with(&format!("/x.jfr: {reason}")),
                "{done:?}"
            );
            assert_eq!(place.files(), ["disk"]);
        }
    }
}

/// A limit of the file size may exist before the agent's library was put anywhere.
#[test]
fn agent_without_a_writable_place_is_an_error() {
    const MOUNT: &str =
        "for dir in /tmp /var/tmp /dev/shm; do mount -t tmpfs none $dir || exit 99; done";
    let place = Place::new("nowhere");
    // The command itself may be below one of these.
    let record = "HOME=/tmp exec /proc/self/fd/9 record -o /tmp/x -- true";
    let script = format!("exec 9<\"$0\"; {MOUNT}; ulimit -f 4; {record}");
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "bash", "-c", &script]);
    command.arg(env!("CARGO_BIN_EXE_dwell"));
    command.current_dir(&place.dir);
    command.stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    let done = finish(command.spawn().unwrap());
    if !done.err.contains("dwell: ") {
        eprintln!("not tried: only who may mount has places of their own: {done:?}");
        return;
    }
    let error = done.exits(1);
    let error = error.error();
    assert!(
        error.starts_with("dwell: no directory that the agent can be loaded from is writable")
            && error.matches("/tmp: File too large").count() == 2,
        "{error}"
    );
}

#[test]
fn short_program_has_a_recording_without_findings() {
    for jdk in jdks() {
        let place = Place::new(&format!("version-{}", jdk.feature));
        let java = jdk.java().to_str().unwrap().to_owned();
        let done = place.dwell(&["record", "--", &java, "-version"]).exits(0);
        let files = place.files();
        assert_eq!(files.len(), 2, "{files:?}");
        assert!(
            files.iter().all(|name| name.starts_with("java-2")),
            "{files:?}"
        );
        let jfr = files.iter().find(|name| name.ends_with(".jfr")).unwrap();
        if (1..10).contains(&place.samples(jfr)) {
            assert!(
                done.out.contains(" too few ") && !done.out.contains('%'),
                "{done:?}"
            );
        }
    }
}

#[test]
fn earlier_recording_is_not_reported_as_new() {
    let place = Place::new("stale");
    let old = ["stale.jfr", "stale-4711.jfr"];
    for name in old {
        std::fs::write(place.path(name), "before").unwrap();
    }
    let java = modern().java().to_str().unwrap().to_owned();
    let words = ["-XX:+NoSuchFlag", "Busy"].map(str::to_owned);
    let shell = format!("'{java}' -XX:+NoSuchFlag Busy");
    let script = ["record", "-o", "stale", "--", "sh", "-c", &shell];
    for args in [with_java(&["-o", "stale"], &java, &words), script.to_vec()] {
        let done = place.dwell(&args).exits(1);
        assert!(done.error().contains("nothing was recorded"), "{done:?}");
    }
    assert_eq!(place.files(), ["stale-4711.jfr", "stale.jfr"]);
    for name in old {
        assert_eq!(std::fs::read(place.path(name)).unwrap(), b"before");
    }
}

#[test]
fn each_jvm_of_a_script_gets_a_file() {
    let place = Place::new("script");
    let twice = script(&modern(), 1, &script(&modern(), 1, "true"));
    place
        .dwell(&["record", "-o", "both", "--", "sh", "-c", &twice])
        .exits(0);
    let files = place.files();
    let recordings: Vec<&String> = files.iter().filter(|name| name.ends_with(".jfr")).collect();
    assert_eq!((files.len(), recordings.len()), (4, 2), "{files:?}");
    recordings
        .iter()
        .for_each(|name| assert!(place.samples(name) > 0, "{name}"));
}

#[test]
fn options_set_by_the_user_are_kept() {
    let place = Place::new("tool-options");
    let shell = script(&modern(), 1, "true");
    let mut command = place.command(&["record", "-o", "kept", "--", "sh", "-c", &shell]);
    let child = command
        .env("JAVA_TOOL_OPTIONS", "-Ddwell.test=kept")
        .spawn()
        .unwrap();
    let done = finish(child).exits(0);
    assert!(
        done.err.contains("-Ddwell.test=kept -agentpath:"),
        "{done:?}"
    );
}

#[test]
fn part_of_a_program_is_recorded() {
    let place = Place::new("part");
    let (java, words) = (modern().java().to_str().unwrap().to_owned(), busy_words(3));
    let done = place
        .dwell(&with_java(&["-d", "1", "-o", "part"], &java, &words))
        .exits(0);
    assert!(
        done.err.contains("recording ended; the program continues"),
        "{done:?}"
    );
    assert!(done.out.contains("part.html"), "{done:?}");
    assert!(place.samples("part.jfr") > 0);
}

#[test]
fn interrupted_program_ends_with_its_recording() {
    let place = Place::new("interrupted");
    let (java, words) = (
        modern().java().to_str().unwrap().to_owned(),
        busy_words(100),
    );
    let mut child = place
        .command(&with_java(&["-o", "cut"], &java, &words))
        .spawn()
        .unwrap();
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    wait_for(&mut stdout, "ready");
    let written = || std::fs::metadata(place.path("cut.jfr")).map_or(0, |data| data.len());
    let first = written();
    until("a flush", || written() > first);
    signal(child.id(), Signal::INT);
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut stdout, &mut rest).unwrap();
    // The JVM exits with the code for an interrupt, and its recording is complete.
    finish(child).exits(130);
    assert!(rest.contains("cut.html"), "{rest}");
    place.has_busy_stack("cut.jfr");
}

/// Processes started by a command that still run.
fn children(of: &Child) -> Vec<u32> {
    let path = format!("/proc/{0}/task/{0}/children", of.id());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

#[test]
fn demo_shows_findings_and_ends_its_service() {
    let place = Place::new("demo");
    let java_home = modern().home;
    let mut command = place.command(&["demo", "-d", "3"]);
    let child = command.env("JAVA_HOME", &java_home).spawn().unwrap();
    until("the service's start", || !children(&child).is_empty());
    let service = children(&child)[0];
    let done = finish(child).exits(0);
    for part in [
        "top frames by self CPU",
        "GC ",
        "failed stacks",
        "dwell itself",
        "io.dwell.demo",
        "Requests by endpoint",
        "Where the time goes: ",
        "GET /quote",
        "GET /stock",
    ] {
        assert!(done.out.contains(part), "{part}: {done:?}");
    }
    assert_eq!(place.files(), ["dwell-demo.html", "dwell-demo.jfr"]);
    let explained = place
        .dwell(&["explain", "dwell-demo.jfr", "--json"])
        .exits(0);
    assert!(explained.out.contains("\"notApplicable\""), "{explained:?}");
    let some = ["explain", "dwell-demo.jfr", "--endpoint", "GET /*"];
    let some = place.dwell(&some).exits(0).out;
    assert!(some.contains("not enough data: warm-up: "), "{some}");
    healthy_endpoint_has_no_finding(&place);
    let none = ["explain", "dwell-demo.jfr", "--endpoint", "GET /none"];
    let none = place.dwell(&none).exits(1);
    assert!(
        none.error().contains("no sample of dwell-demo.jfr"),
        "{none:?}"
    );
    assert!(!std::path::Path::new(&format!("/proc/{service}")).exists());

    // The same after an early interrupt, or two.
    for signals in [&[Signal::INT][..], &[Signal::INT, Signal::INT]] {
        let mut command = place.command(&["demo", "-d", "100"]);
        let child = command.env("JAVA_HOME", &java_home).spawn().unwrap();
        until("the service's start", || !children(&child).is_empty());
        let service = children(&child)[0];
        std::thread::sleep(std::time::Duration::from_millis(500));
        for &each in signals {
            signal(child.id(), each);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        finish(child);
        until("the service's end", || {
            !std::path::Path::new(&format!("/proc/{service}")).exists()
        });
    }
}

/// Rules about waits and wasted work of an endpoint. The rule for locks is left out, because
/// requests wait for the HTTP server's lock if processors are short.
const FAULTS: [&str; 8] = [
    "blocked-event-loop",
    "exceptions",
    "pinned-virtual-threads",
    "pool-exhaustion",
    "repeated-reads",
    "sleeping",
    "slow-downstream",
    "waiting-for-tasks",
];

/// An endpoint of the demo that only computes has no finding, even on a busy machine. A finding for
/// a faulty endpoint would need a longer recording.
fn healthy_endpoint_has_no_finding(place: &Place) {
    let words = [
        "explain",
        "dwell-demo.jfr",
        "--endpoint",
        "GET /compress",
        "--json",
    ];
    let done = place.dwell(&words);
    if done.err.contains("no sample of") {
        println!("the machine was too busy for a single sample of it");
        return;
    }
    let found: serde_json::Value = serde_json::from_str(&done.exits(0).out).expect("JSON");
    let findings = found["findings"].as_array().expect("findings");
    let is_told = |rule: &&str| findings.iter().any(|finding| finding["rule"] == *rule);
    let told: Vec<&str> = FAULTS.into_iter().filter(is_told).collect();
    assert_eq!(told, [""; 0], "{found}");
}

#[test]
fn demo_without_java_prints_the_remedy() {
    let place = Place::new("no-java");
    let mut command = place.command(&["demo"]);
    let child = command.env("JAVA_HOME", "/no/such/home").spawn().unwrap();
    let done = finish(child).exits(1);
    assert!(
        done.error()
            .contains("JAVA_HOME is set, but /no/such/home/bin/java"),
        "{done:?}"
    );
    assert!(place.files().is_empty());
}
