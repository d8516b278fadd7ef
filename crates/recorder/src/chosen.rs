//! The events of a recording, and how they may change while it runs. Pure.
//!
//! Objects and waits for monitors can be switched on and off, and get other intervals: each of
//! them has its own weight. CPU time and wall time stay as they were when the recording began.
//! Wall time combines wall-clock samples and samples of CPU time. So a recording has both from its
//! beginning to its end; otherwise its shares would be of two different stretches.

use crate::options::{MAX_RATE, Options, expand};
use std::path::PathBuf;
use std::time::Duration;

/// The recorded events, and their intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// CPU time between two samples of a thread.
    pub cpu: Duration,
    /// Wall-clock time between two wall-clock samples; zero: none are taken.
    pub wall: Duration,
    /// Mean number of bytes allocated between two samples of them; 0: none are taken.
    pub alloc_bytes: u64,
    /// Samples of objects that are wanted in a second: their interval adapts; 0: it is fixed.
    pub alloc_rate: u64,
    /// The same as `alloc_bytes` for objects that are followed; 0: no objects are followed.
    pub alive_bytes: u64,
    /// The duration from which on all waits for monitors are recorded; zero: none are.
    pub lock: Duration,
    /// Maximum number of object samples, if no rate of them is set, and of waits recorded in a
    /// second. Their intervals grow beyond it; 0: no limit.
    pub max_rate: u64,
}

/// A recording that runs.
#[derive(Clone, Debug)]
pub struct Running {
    /// Its present events.
    pub events: Events,
    /// The options at its start.
    pub options: Options,
    /// The path of its file.
    pub path: PathBuf,
}

impl Events {
    /// The events that options ask for.
    #[must_use]
    pub fn of(options: &Options) -> Events {
        Events {
            cpu: options.cpu_interval,
            wall: options.wall_interval,
            alloc_bytes: options.alloc_bytes,
            alloc_rate: options.alloc_rate,
            alive_bytes: options.alive_bytes,
            lock: options.lock_interval,
            max_rate: options.max_rate,
        }
    }

    /// Mean number of bytes allocated between two sampled objects, for any event; 0: no object is
    /// sampled.
    #[must_use]
    pub fn object_bytes(&self) -> u64 {
        self.alloc_bytes.max(self.alive_bytes)
    }

    /// In the form of the agent's options: `cpu=10ms,wall=20ms,alloc=512k,live,lock=1ms`.
    #[must_use]
    pub fn text(&self) -> String {
        let mut words = vec![format!("cpu={}", time(self.cpu))];
        if !self.wall.is_zero() {
            words.push(format!("wall={}", time(self.wall)));
        }
        if self.alloc_bytes != 0 {
            words.push(format!("alloc={}", size(self.alloc_bytes)));
        }
        match (self.alloc_bytes, self.alive_bytes) {
            (_, 0) => {}
            (0, bytes) => words.push(format!("live={}", size(bytes))),
            _ => words.push("live".to_owned()),
        }
        if self.alloc_rate != 0 {
            words.push(format!("alloc-rate={}", self.alloc_rate));
        }
        if !self.lock.is_zero() {
            words.push(format!("lock={}", time(self.lock)));
        }
        if self.max_rate != MAX_RATE {
            words.push(format!("maxrate={}", self.max_rate));
        }
        words.join(",")
    }

    /// In the form of the command's option `-e`.
    #[must_use]
    pub fn mode(&self) -> String {
        let mut mode = "cpu".to_owned();
        for (is_on, name) in [
            (!self.wall.is_zero(), ",wall"),
            (self.alloc_bytes != 0, ",alloc"),
            (self.alive_bytes != 0, ",live"),
            (!self.lock.is_zero(), ",lock"),
        ] {
            if is_on {
                mode += name;
            }
        }
        mode
    }
}

/// A time in the largest unit in which it is a whole number.
fn time(time: Duration) -> String {
    let ns = time.as_nanos();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
    let unit = units.iter().find(|(in_ns, _)| ns.is_multiple_of(*in_ns));
    unit.map_or_else(
        || format!("{ns}ns"),
        |(in_ns, it)| format!("{}{it}", ns / in_ns),
    )
}

/// Bytes in the largest unit in which they are a whole number.
fn size(bytes: u64) -> String {
    let units = [(30, "g"), (20, "m"), (10, "k")];
    let unit = units
        .iter()
        .find(|(shift, _)| bytes.trailing_zeros() >= *shift);
    unit.map_or_else(
        || bytes.to_string(),
        |(shift, it)| format!("{}{it}", bytes >> shift),
    )
}

/// Options that select events.
const EVENTS: [&str; 7] = [
    "cpu",
    "wall",
    "alloc",
    "alloc-rate",
    "live",
    "lock",
    "maxrate",
];

/// The events of a recording after `asked`: `text` shows which options were named. The named
/// events replace the present ones.
///
/// # Errors
/// One line for the user, if it names an option that cannot be changed.
pub fn changed(running: &Running, asked: &Options, text: &str) -> Result<Events, String> {
    let path = running.path.display();
    let words: Vec<&str> = text.split(',').filter(|word| !word.is_empty()).collect();
    let name = |word: &&str| {
        word.split_once('=')
            .map_or(*word, |(name, _)| name)
            .to_owned()
    };
    let names: Vec<String> = words.iter().map(name).collect();
    let is_named = |name: &str| names.iter().any(|it| it == name);
    if is_named("file") && !is_same_file(running, asked) {
        return Err(format!(
            "already recording to {path}; use 'dwell stop' first"
        ));
    }
    if !EVENTS.iter().any(|name| is_named(name)) {
        return Err(format!(
            "already recording to {path}; name the events that it shall record, such as \
             cpu,wall,alloc, or use 'dwell stop' first"
        ));
    }
    if let Some(at) = names
        .iter()
        .position(|name| !may_be_named(name, running, asked))
    {
        let word = words.get(at).copied().unwrap_or_default();
        return Err(format!(
            "{word}: stays as it is while a recording runs, to {path}; leave it out, or use \
             'dwell stop' first"
        ));
    }
    let mut wanted = Events::of(asked);
    let now = &running.events;
    if !is_named("cpu") {
        wanted.cpu = now.cpu;
    }
    if !is_named("maxrate") {
        wanted.max_rate = now.max_rate;
    }
    if wanted.cpu != now.cpu {
        return Err(format!(
            "cpu={}: the interval of CPU time stays {} while a recording runs; leave it out, or \
             use 'dwell stop' first",
            time(wanted.cpu),
            time(now.cpu)
        ));
    }
    if wanted.wall != now.wall {
        return Err(wall_stays(wanted.wall, now.wall));
    }
    Ok(wanted)
}

fn wall_stays(wanted: Duration, now: Duration) -> String {
    const WHY: &str = "wall time is recorded from the beginning to the end or not at all";
    let (wanted, now) = (
        (!wanted.is_zero()).then(|| time(wanted)),
        (!now.is_zero()).then(|| time(now)),
    );
    match (wanted, now) {
        (None, Some(now)) => {
            format!("wall: {WHY}; name wall={now} as well, or use 'dwell stop' first")
        }
        (Some(wanted), Some(now)) => format!(
            "wall={wanted}: its interval stays {now} while a recording runs; name that, or use \
             'dwell stop' first"
        ),
        (wanted, None) => format!(
            "wall={}: {WHY}; leave it out, or use 'dwell stop' first",
            wanted.unwrap_or_default()
        ),
    }
}

fn is_same_file(running: &Running, asked: &Options) -> bool {
    let file = expand(&asked.file, std::process::id(), "%t");
    asked.file == running.options.file || running.path.as_os_str() == file.as_str()
}

/// Whether an option repeats a present value, or may change.
fn may_be_named(name: &str, running: &Running, asked: &Options) -> bool {
    let now = &running.options;
    match name {
        "start" | "reply" | "file" => true,
        name if EVENTS.contains(&name) => true,
        "engine" => asked.engine == now.engine,
        "walk" => asked.walk == now.walk,
        "depth" => asked.depth == now.depth,
        "late" => asked.late == now.late,
        "wall-threads" => asked.wall_threads == now.wall_threads,
        "wall-budget" => asked.wall_budget_ppm == now.wall_budget_ppm,
        "filter" => asked.only_context == now.only_context,
        "idle" => asked.idle == now.idle,
        "chunksize" => asked.chunk_bytes == now.chunk_bytes,
        "chunktime" => asked.chunk_age == now.chunk_age,
        "maxsize" => asked.max_bytes == now.max_bytes,
        "maxage" => asked.max_age == now.max_age,
        "freeze" => asked.freeze == now.freeze,
        "freeze-every" => asked.freeze_every == now.freeze_every,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::parse;
    use proptest::prelude::*;

    fn running(text: &str) -> Running {
        let options = parse(text).unwrap();
        Running {
            events: Events::of(&options),
            options,
            path: "/tmp/a.jfr".into(),
        }
    }

    fn change(from: &str, text: &str) -> Result<String, String> {
        changed(&running(from), &parse(text).unwrap(), text).map(|events| events.text())
    }

    const USUAL: &str = "start,cpu=10ms,wall=20ms,file=/tmp/a.jfr,maxsize=64m";

    #[test]
    fn named_events_replace_present_ones() {
        let cases = [
            (
                USUAL,
                "wall=20ms,alloc=512k",
                "cpu=10ms,wall=20ms,alloc=512k",
            ),
            (
                USUAL,
                "start,cpu=10ms,wall=20ms,live",
                "cpu=10ms,wall=20ms,live=512k",
            ),
            (
                USUAL,
                "wall=20ms,lock=50us,reply=/r",
                "cpu=10ms,wall=20ms,lock=50us",
            ),
            (USUAL, "wall=20ms", "cpu=10ms,wall=20ms"),
            (
                "alloc=64k,lock=1ms",
                "alloc=1m,live",
                "cpu=10ms,alloc=1m,live",
            ),
            ("alloc=64k,lock=1ms", "cpu=10ms", "cpu=10ms"),
            ("cpu=1ms,live=3000", "lock=1500us", "cpu=1ms,lock=1500us"),
            (
                "alloc=64k",
                "alloc=64k,alloc-rate=20",
                "cpu=10ms,alloc=64k,alloc-rate=20",
            ),
            ("alloc-rate=20", "alloc=512k", "cpu=10ms,alloc=512k"),
            (
                "alloc=64k",
                "alloc=64k,maxrate=0",
                "cpu=10ms,alloc=64k,maxrate=0",
            ),
            (
                "lock=1ms,maxrate=7",
                "lock=2ms",
                "cpu=10ms,lock=2ms,maxrate=7",
            ),
        ];
        for (from, text, now) in cases {
            assert_eq!(
                change(from, text).as_deref(),
                Ok(now),
                "{from} and then {text}"
            );
        }
        let same = "wall=20ms,lock=1ms,file=/tmp/a.jfr,maxsize=64m,walk=snapshot,depth=8192";
        assert!(change(USUAL, same).is_ok(), "what stays may be named");
    }

    #[test]
    fn fixed_option_is_refused_by_name_with_remedy() {
        for (from, text, part) in [
            (
                USUAL,
                "wall=20ms,alloc=1m,file=/tmp/b.jfr",
                "already recording to /tmp/a.jfr",
            ),
            (
                USUAL,
                "start",
                "already recording to /tmp/a.jfr; name the events",
            ),
            (USUAL, "alloc=1m", "name wall=20ms as well"),
            (
                USUAL,
                "wall=10ms,alloc=1m",
                "wall=10ms: its interval stays 20ms",
            ),
            (
                USUAL,
                "cpu=1ms,wall=20ms",
                "cpu=1ms: the interval of CPU time stays 10ms",
            ),
            (USUAL, "wall=20ms,maxsize=1g", "maxsize=1g: stays"),
            (USUAL, "wall=20ms,engine=timer", "engine=timer: stays"),
            (USUAL, "wall=20ms,filter=context", "filter=context: stays"),
            (
                "cpu=10ms",
                "wall=20ms",
                "wall=20ms: wall time is recorded from the beginning",
            ),
        ] {
            let refused = change(from, text).unwrap_err();
            assert!(refused.contains(part), "{text}: {refused}");
            assert!(refused.contains("'dwell stop' first"), "{text}: {refused}");
            assert!(!refused.contains('\n'), "{text}: {refused}");
        }
    }

    #[test]
    fn recording_reports_its_mode_in_option_syntax() {
        assert_eq!(Events::of(&parse("").unwrap()).mode(), "cpu");
        let all = parse("wall=20ms,alloc=1k,live,lock=1ms").unwrap();
        assert_eq!(Events::of(&all).mode(), "cpu,wall,alloc,live,lock");
    }

    proptest! {
        #[test]
        fn text_of_events_parses_to_the_same_events(
            cpu in 20_000..=10_000_000_000u64,
            wall in prop_oneof![Just(0), 1_000_000..=10_000_000_000u64],
            bytes in 1024..=1u64 << 30,
            which in 0..4u64,
            rate in prop_oneof![Just(0), 1..=100_000u64],
            lock in prop_oneof![Just(0), 1000..=10_000_000_000u64],
            max_rate in prop_oneof![Just(MAX_RATE), 0..=100_000u64],
        ) {
            let events = Events {
                cpu: Duration::from_nanos(cpu),
                wall: Duration::from_nanos(wall),
                alloc_bytes: bytes * (which & 1),
                alloc_rate: rate * u64::from(which != 0),
                alive_bytes: bytes * (which >> 1),
                lock: Duration::from_nanos(lock),
                max_rate,
            };
            let asked = parse(&events.text()).unwrap();
            prop_assert_eq!(Events::of(&asked), events);
        }
    }
}
