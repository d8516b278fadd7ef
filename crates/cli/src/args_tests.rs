//! Command lines, and the resulting settings.

use super::*;

fn record(words: &[&str]) -> Result<Record, clap::Error> {
    let all = ["dwell", "record"].iter().chain(words);
    match Cli::try_parse_from(all)?.command {
        Command::Record(record) => Ok(record),
        other => panic!("{other:?}"),
    }
}

#[test]
fn definitions_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn record_takes_a_jvm_or_a_program() {
    let by_pid = record(&["-d", "30", "-i", "1ms", "-e", "cpu", "4711"]).unwrap();
    assert_eq!(by_pid.jvm.as_deref(), Some("4711"));
    assert_eq!(by_pid.duration, Some(Duration::from_secs(30)));
    let launched = record(&["--", "java", "-jar", "a.jar", "-d"]).unwrap();
    assert_eq!(launched.program, ["java", "-jar", "a.jar", "-d"]);
    let only = record(&[]).unwrap();
    assert!(only.jvm.is_none() && only.program.is_empty());
    assert!(record(&["4711", "--", "java"]).is_err());
}

#[test]
fn cpu_and_wall_are_recorded_unless_one_is_chosen() {
    let both = record(&["1"]).unwrap().sampling;
    assert_eq!(both.event, [Event::Cpu, Event::Wall]);
    assert_eq!(
        (both.wall, both.wall_budget),
        (Duration::from_millis(20), None)
    );
    let cpu = record(&["-e", "cpu", "1"]).unwrap().sampling;
    assert_eq!(cpu.event, [Event::Cpu]);
    let all = ["-e", "cpu,wall,alloc", "--alloc", "1m", "1"];
    let all = record(&all).unwrap().sampling;
    assert_eq!(all.event, [Event::Cpu, Event::Wall, Event::Alloc]);
    let bytes = |words: &[&str]| record(words).unwrap().sampling.alloc_bytes();
    assert_eq!(
        (both.alloc_bytes(), all.alloc_bytes()),
        (None, Some(1 << 20))
    );
    assert_eq!(bytes(&["-e", "cpu,alloc", "1"]), Some(512 << 10));
    assert_eq!(bytes(&["--alloc", "64k", "1"]), Some(64 << 10));
    assert_eq!(bytes(&["--alloc-rate", "200/s", "1"]), Some(512 << 10));
    let most = |words: &[&str]| record(words).unwrap().sampling.max_rate;
    assert_eq!(most(&["--max-rate", "0", "1"]), Some(0));
    assert_eq!(
        (most(&["--max-rate", "50/s", "1"]), most(&["1"])),
        (Some(50), None)
    );
    let rate = |words: &[&str]| record(words).unwrap().sampling.alloc_rate;
    assert_eq!(rate(&["--alloc-rate", "200/s", "1"]), Some(200));
    assert_eq!(rate(&["--alloc-rate", "7", "1"]), Some(7));
    let both = |words: &[&str]| {
        let sampling = record(words).unwrap().sampling;
        (sampling.alloc_bytes(), sampling.live_bytes())
    };
    let (k64, k512) = (Some(64 << 10), Some(512 << 10));
    assert_eq!(both(&["-e", "live", "1"]), (None, k512));
    assert_eq!(both(&["-e", "live", "--alloc", "64k", "1"]), (None, k64));
    assert_eq!(both(&["-e", "alloc,live", "1"]), (k512, k512));
    assert_eq!(
        both(&["-e", "alloc,live", "--alloc", "64k", "1"]),
        (k64, k64)
    );
    let lock = |words: &[&str]| record(words).unwrap().sampling.lock_interval();
    assert_eq!(lock(&["1"]), None);
    assert_eq!(lock(&["-e", "cpu,wall,lock", "1"]), Some(LOCK_INTERVAL));
    let finer = Some(Duration::from_micros(50));
    assert_eq!(lock(&["--lock", "50us", "1"]), finer);
    assert_eq!(lock(&["-e", "all", "1"]), Some(LOCK_INTERVAL));
    assert_eq!(both(&["-e", "all", "1"]), (k512, k512));
    let all = record(&["-e", "all", "1"]).unwrap().sampling;
    assert!(all.has(Event::Cpu) && all.has(Event::Wall));
    let more = [
        "-e", "cpu,wall", "--wall", "5ms", "--idle", "a.B.c", "--idle", "a.B.d*", "1",
    ];
    assert_eq!(record(&more).unwrap().sampling.idle, ["a.B.c", "a.B.d*"]);
}

#[test]
fn wrong_event_lists_all_events() {
    let told = |words: &[&str]| record(words).unwrap_err().to_string();
    let events = "[possible values: cpu, wall, alloc, live, lock, all]";
    for words in [
        ["-e", "heap", "1"],
        ["-e", "cpu,heap", "1"],
        ["-e", "ALL", "1"],
    ] {
        let told = told(&words);
        assert!(told.contains(events), "{words:?}: {told}");
    }
    // A conversion of a recording selects one of its events.
    let convert = ["dwell", "convert", "a.jfr", "-e", "heap", "--collapsed"];
    let told = Cli::try_parse_from(convert).unwrap_err().to_string();
    let events = "[possible values: cpu, wall, alloc, live, lock]";
    assert!(told.contains(events), "{told}");
}

#[test]
fn wrong_values_are_refused() {
    for words in [
        &["-i", "10", "1"][..],
        &["-d", "x", "1"],
        &["-e", "heap", "1"],
        &["-e", "alloc", "--alloc", "1", "1"],
        &["--alloc-rate", "0", "1"],
        &["--alloc-rate", "200/m", "1"],
        &["--alloc-rate", "100001/s", "1"],
        &["--lock", "1", "1"],
        &["--lock", "11s", "1"],
        &["--wall", "20", "1"],
        &["--wall-budget", "0", "1"],
        &["--idle", "no method", "1"],
        &["--depth", "0", "1"],
        &["--engine", "itimer", "1"],
    ] {
        assert!(record(words).is_err(), "{words:?}");
    }
}
