//! `dwell start` while a recording runs: changes its events. Pure.
//!
//! Only options given on the command line go to the agent. Defaults are for new recordings; here,
//! an option that is not given stays unchanged.

use crate::args::{Event, Filter, Start};
use crate::reply::Reply;
use std::fmt::Write as _;

/// Bytes between two allocation samples, if neither the recording nor an option sets them.
const OBJECTS: &str = "512k";
/// The same for waits for monitors.
const LOCK: &str = "1ms";
/// The same for wall time.
const WALL: &str = "20ms";

/// The agent's options for the change. `events` are the recording's events, from its status. `file`
/// is the output, if one was given.
pub fn options(args: &Start, events: &str, file: Option<&str>) -> String {
    let present = Present(events);
    let sampling = &args.sampling;
    let mut options = "start".to_owned();
    if args.is_named("interval") {
        let _ = write!(options, ",cpu={}ns", sampling.interval.as_nanos());
    }
    add_events(&mut options, args, &present);
    if args.is_named("engine") {
        let _ = write!(options, ",engine={}", sampling.engine.word());
    }
    if args.is_named("walk") {
        let _ = write!(options, ",walk={}", sampling.walk.word());
    }
    if args.is_named("depth") {
        let _ = write!(options, ",depth={}", sampling.depth);
    }
    if args.is_named("late") {
        let _ = write!(options, ",late={}ns", sampling.late.as_nanos());
    }
    if let Some(budget) = sampling.wall_budget {
        let _ = write!(options, ",wall-budget={budget}%");
    }
    if let Some(threads) = sampling.wall_threads {
        let _ = write!(options, ",wall-threads={threads}");
    }
    if let Some(Filter::Context) = sampling.filter {
        options += ",filter=context";
    }
    for method in &sampling.idle {
        let _ = write!(options, ",idle={method}");
    }
    options += &sampling.redaction.options();
    if let Some(size) = &args.max_size {
        let _ = write!(options, ",maxsize={size}");
    }
    if let Some(age) = args.max_age {
        let _ = write!(options, ",maxage={}ms", age.as_millis());
    }
    if let Some(file) = file {
        let _ = write!(options, ",file={file}");
    }
    options
}

/// The reason why the change is impossible, in the words of the command line: wall time cannot be
/// added to a running recording or removed from it. `events` as for [`options`].
pub fn refusal(args: &Start, events: &str, pid: u32) -> Option<String> {
    let named = args.is_named("event") || args.is_named("wall");
    let wanted = args.sampling.has(Event::Wall) || args.is_named("wall");
    let (option, remedy) = match (wanted, Present(events).get("wall")) {
        _ if !named => return None,
        (false, Some(_)) => ("-e", "add wall, as in -e cpu,wall"),
        (true, None) if args.is_named("wall") => ("--wall", "leave it out"),
        (true, None) => ("-e", "leave wall out, as in -e cpu"),
        _ => return None,
    };
    Some(format!(
        "{option}: wall time is recorded from the beginning of a recording to its end or not at \
         all; {remedy}, or use 'dwell stop {pid}' first"
    ))
}

fn add_events(options: &mut String, args: &Start, present: &Present<'_>) {
    let sampling = &args.sampling;
    let intervals = [
        "interval",
        "wall",
        "alloc",
        "alloc_rate",
        "lock",
        "max_rate",
    ];
    if !args.is_named("event") && !intervals.iter().any(|id| args.is_named(id)) {
        return; // the agent says what there is to name
    }
    // Without -e the events stay, and an event with an interval is added.
    let has = |event, name| match args.is_named("event") {
        true => sampling.has(event),
        false => present.get(name).is_some(),
    };
    if has(Event::Wall, "wall") || args.is_named("wall") {
        let known = present.get("wall").unwrap_or(WALL);
        let _ = match args.is_named("wall") {
            true => write!(options, ",wall={}ns", sampling.wall.as_nanos()),
            false => write!(options, ",wall={known}"),
        };
    }
    let live = has(Event::Live, "live");
    let is_named = sampling.alloc.is_some() || sampling.alloc_rate.is_some();
    let alloc = has(Event::Alloc, "alloc") || is_named && !live;
    let known = ["alloc", "live"].map(|name| present.get(name));
    let known = known.into_iter().flatten().find(|size| !size.is_empty());
    let size = match sampling.alloc {
        Some(bytes) => bytes.to_string(),
        None => known.unwrap_or(OBJECTS).to_owned(),
    };
    if alloc {
        let _ = write!(options, ",alloc={size}");
    }
    if live {
        let _ = write!(options, ",live={size}");
    }
    // An interval replaces a rate.
    let known = present
        .get("alloc-rate")
        .filter(|_| sampling.alloc.is_none());
    let rate = sampling.alloc_rate.map(|rate| rate.to_string());
    if let Some(rate) = rate.as_deref().or(known).filter(|_| alloc || live) {
        let _ = write!(options, ",alloc-rate={rate}");
    }
    if let Some(rate) = sampling.max_rate {
        let _ = write!(options, ",maxrate={rate}");
    }
    match sampling.lock {
        Some(interval) => {
            let _ = write!(options, ",lock={}ns", interval.as_nanos());
        }
        None if has(Event::Lock, "lock") => {
            let known = present.get("lock").unwrap_or(LOCK);
            let _ = write!(options, ",lock={known}");
        }
        None => {}
    }
    if options == "start" {
        // CPU time alone, which is always recorded.
        let _ = write!(options, ",cpu={}", present.get("cpu").unwrap_or("10ms"));
    }
}

/// The change, for people.
pub fn described(pid: u32, reply: &Reply) -> String {
    let get = |key| reply.get(key).unwrap_or_default();
    let (file, was, now) = (get("file"), get("was"), get("events"));
    match was == now {
        true => format!("recording JVM {pid} to {file} as before: {now}\n"),
        false => format!(
            "recording JVM {pid} to {file}: was {was}; now {now}; end it with: dwell stop {pid}\n"
        ),
    }
}

/// The events of a recording: `cpu=10ms,wall=20ms,alloc=512k,live`.
struct Present<'a>(&'a str);

impl<'a> Present<'a> {
    /// The interval of an event; empty if it uses that of another one.
    fn get(&self, name: &str) -> Option<&'a str> {
        let words = self.0.split(',');
        let mut pairs = words.map(|word| word.split_once('=').unwrap_or((word, "")));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, parse_from};

    fn start(words: &str) -> Start {
        let words = format!("dwell start {words} 4711");
        match parse_from(words.split_whitespace()).unwrap().command {
            Command::Start(args) => args,
            other => panic!("{other:?}"),
        }
    }

    fn asked(words: &str, events: &str) -> String {
        options(&start(words), events, None)
    }

    #[test]
    fn change_requests_named_options_only() {
        const USUAL: &str = "cpu=1ms,wall=5ms";
        const ALL: &str = "cpu=1ms,wall=5ms,alloc=64k,live,lock=50us";
        for (words, events, expected) in [
            ("", USUAL, "start"),
            ("--max-size 64m", USUAL, "start,maxsize=64m"),
            ("-e cpu,wall,alloc", USUAL, "start,wall=5ms,alloc=512k"),
            ("-e cpu,wall,live", USUAL, "start,wall=5ms,live=512k"),
            (
                "-e cpu,wall,lock --lock 1ms",
                USUAL,
                "start,wall=5ms,lock=1000000ns",
            ),
            ("-e cpu,wall", ALL, "start,wall=5ms"),
            (
                "-e cpu,wall,alloc,lock",
                ALL,
                "start,wall=5ms,alloc=64k,lock=50us",
            ),
            (
                "-e cpu,wall,live",
                "cpu=1ms,wall=5ms,live=4k",
                "start,wall=5ms,live=4k",
            ),
            ("-e all", ALL, "start,wall=5ms,alloc=64k,live=64k,lock=50us"),
            ("--alloc 1m", USUAL, "start,wall=5ms,alloc=1048576"),
            (
                "--alloc 1m",
                ALL,
                "start,wall=5ms,alloc=1048576,live=1048576,lock=50us",
            ),
            ("--lock 2ms", USUAL, "start,wall=5ms,lock=2000000ns"),
            (
                "--max-rate 0",
                ALL,
                "start,wall=5ms,alloc=64k,live=64k,maxrate=0,lock=50us",
            ),
            (
                "--alloc-rate 9/s",
                USUAL,
                "start,wall=5ms,alloc=512k,alloc-rate=9",
            ),
            (
                "-e cpu,alloc,lock",
                "cpu=1ms,alloc=64k,alloc-rate=9",
                "start,alloc=64k,alloc-rate=9,lock=1ms",
            ),
            (
                "--alloc 1m",
                "cpu=1ms,alloc=64k,alloc-rate=9",
                "start,alloc=1048576",
            ),
            ("-e cpu", "cpu=1ms,alloc=64k,alloc-rate=9", "start,cpu=1ms"),
            ("-e cpu", "cpu=1ms,alloc=64k", "start,cpu=1ms"),
            ("-i 1ms -e cpu,wall", USUAL, "start,cpu=1000000ns,wall=5ms"),
            ("-e cpu,wall --wall 20ms", USUAL, "start,wall=20000000ns"),
            (
                "-e cpu,wall --engine timer",
                USUAL,
                "start,wall=5ms,engine=timer",
            ),
        ] {
            assert_eq!(asked(words, events), expected, "{words} after {events}");
        }
    }

    #[test]
    fn unchanged_wall_time_is_reported_in_option_words() {
        for (words, events, part) in [
            ("-e cpu", "cpu=1ms,wall=5ms", "-e: wall time is"),
            ("-e cpu", "cpu=1ms,wall=5ms", "add wall"),
            ("-e cpu,lock", "cpu=1ms,wall=5ms", "'dwell stop 7' first"),
            ("-e cpu,wall", "cpu=1ms", "leave wall out"),
            ("--wall 5ms", "cpu=1ms", "--wall: wall time is"),
            ("-e cpu", "cpu=1ms", ""),
            ("-e cpu,wall", "cpu=1ms,wall=5ms", ""),
            ("--lock 1ms", "cpu=1ms", ""),
            ("--lock 1ms", "cpu=1ms,wall=5ms", ""),
        ] {
            let why = refusal(&start(words), events, 7).unwrap_or_default();
            assert!(why.contains(part), "{words}: {why}");
            assert_eq!(why.is_empty(), part.is_empty(), "{words}: {why}");
        }
    }

    #[test]
    fn change_is_reported_with_old_values() {
        let reply = |was: &str| {
            let text = format!("ok\nwas={was}\nstate=running\nevents=cpu=1ms\nfile=/a.jfr\n");
            Reply::parse(text.as_bytes()).unwrap()
        };
        assert_eq!(
            described(7, &reply("cpu=1ms,alloc=1k")),
            "recording JVM 7 to /a.jfr: was cpu=1ms,alloc=1k; now cpu=1ms; end it with: dwell stop \
             7\n"
        );
        assert_eq!(
            described(7, &reply("cpu=1ms")),
            "recording JVM 7 to /a.jfr as before: cpu=1ms\n"
        );
    }
}
