//! The agent's option string: `start,cpu=10ms,file=app-%p-%t.jfr`. Pure; strict: an unknown word,
//! a wrong unit or a value out of range is an error that names it.

#[cfg(feature = "experiments")]
use crate::experiments::Experiment;
use dwell_jfr::redact::Secrets;
use dwell_signal::Vantage;
use dwell_wall::pools::Pools;
use std::time::Duration;

mod measures;
mod rates;

mod ways;
pub use measures::duration;
use measures::size;
pub use rates::MAX_RATE;

/// The agent's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Begin a recording.
    Start,
    /// End it.
    Stop,
    /// Make the recording so far readable now.
    Dump,
    /// Report the state.
    Status,
}

/// Which source of CPU-time signals to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineChoice {
    /// perf events where permitted, except for threads that are switched often; else timers.
    Auto,
    /// perf events only.
    Perf,
    /// Per-thread CPU timers only.
    Timer,
    /// Like `Auto`, and the kernel copies stacks, without signals, where no data is lost by that.
    Kernel,
}

/// Parsed options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The command; `start` by default.
    pub command: Command,
    /// CPU time between two samples of a thread.
    pub cpu_interval: Duration,
    /// Wall-clock time between two wall-clock samples; zero: none are taken.
    pub wall_interval: Duration,
    /// How many threads are sampled each time; none: as many as the budget allows.
    pub wall_threads: Option<usize>,
    /// Part of one processor's time that wall-clock samples may take, in millionths.
    pub wall_budget_ppm: u32,
    /// Whether only threads with a request are sampled.
    pub only_context: bool,
    /// Methods in which pooled threads wait for work, in addition to the known ones.
    pub idle: Vec<String>,
    /// The stack of a thread is recorded if it delays a stop of all threads for longer than this.
    pub late: Duration,
    /// Mean number of bytes allocated between two samples of them; 0: allocations are not sampled.
    pub alloc_bytes: u64,
    /// Samples of objects that are wanted in a second: their interval adapts; 0: it is fixed.
    pub alloc_rate: u64,
    /// Maximum number of object samples and of waits recorded in a second; 0: no limit.
    pub max_rate: u64,
    /// The same for followed objects, whose survivors are reported at the end; 0: no objects are
    /// followed. If both are given they are equal: there is one sampler.
    pub alive_bytes: u64,
    /// Waits for monitors are chosen by their duration; all longer ones are recorded. Zero: none
    /// are.
    pub lock_interval: Duration,
    /// Where signals come from.
    pub engine: EngineChoice,
    /// From where stacks are walked.
    pub walk: Vantage,
    /// Experiments.
    #[cfg(feature = "experiments")]
    pub experiment: Option<Experiment>,
    /// The recording; `%p` is the pid, `%t` the time.
    pub file: String,
    /// Most frames of a stack.
    pub depth: usize,
    /// Size at which a new chunk begins.
    pub chunk_bytes: u64,
    /// Age at which a new chunk begins.
    pub chunk_age: Duration,
    /// Size that the recording keeps, approximately; older files are dropped first. 0: no limit.
    pub max_bytes: u64,
    /// Age that the recording keeps, approximately; zero: no limit.
    pub max_age: Duration,
    /// Duration after which the recording ends; zero: a command ends it.
    pub duration: Duration,
    /// The recording ends if no command renews it within this time; zero: no lease. With `status`:
    /// the running recording is renewed.
    pub lease: Duration,
    /// Where to write the reply to this command.
    pub reply: Option<String>,
    /// A folder for walks as files: failed ones, for bug reports.
    pub freeze: Option<String>,
    /// In addition to failed walks, every n-th one; 0: none.
    pub freeze_every: u64,
    /// Parts of the command line that are not recorded.
    pub secrets: Secrets,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            command: Command::Start,
            cpu_interval: Duration::from_millis(10),
            wall_interval: Duration::ZERO,
            wall_threads: None,
            wall_budget_ppm: 20_000,
            only_context: false,
            idle: Vec::new(),
            late: Duration::from_millis(1),
            alloc_bytes: 0,
            alloc_rate: 0,
            max_rate: MAX_RATE,
            alive_bytes: 0,
            lock_interval: Duration::ZERO,
            engine: EngineChoice::Auto,
            walk: Vantage::Snapshot,
            #[cfg(feature = "experiments")]
            experiment: None,
            file: "dwell-%p-%t.jfr".into(),
            depth: 8192,
            chunk_bytes: 64 << 20,
            chunk_age: Duration::from_secs(3600),
            max_bytes: 0,
            max_age: Duration::ZERO,
            duration: Duration::ZERO,
            lease: Duration::ZERO,
            reply: None,
            freeze: None,
            freeze_every: 0,
            secrets: Secrets::default(),
        }
    }
}

/// Shortest CPU interval; below it the handler would use a large share of the time it measures.
pub const INTERVAL_MIN: Duration = Duration::from_micros(20);
/// Longest CPU interval.
pub const INTERVAL_MAX: Duration = Duration::from_secs(10);
/// Shortest time between two wall-clock samples.
pub const WALL_MIN: Duration = Duration::from_millis(1);
/// Bounds of `late`: the watcher checks every 0.2 ms.
pub const LATE: std::ops::RangeInclusive<Duration> =
    Duration::from_micros(200)..=Duration::from_secs(10);
/// Bounds of `alloc`: below, most of the time would go into samples.
pub const ALLOC: std::ops::RangeInclusive<u64> = 1 << 10..=1 << 30;
/// The interval of `live` and `alloc-rate` in bytes, if none is given.
const OBJECT_BYTES: u64 = 512 << 10;
/// Stands for the interval of `alloc` while options are read.
const AS_ALLOC: u64 = u64::MAX;
/// Bounds of `lock`: an interval below is shorter than any wait.
pub const LOCK: std::ops::RangeInclusive<Duration> =
    Duration::from_micros(1)..=Duration::from_secs(10);
/// Bounds of `depth`.
pub const DEPTH: std::ops::RangeInclusive<usize> = 1..=65_536;

/// An invalid option, with the reason and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionError(String);

fn refuse<T>(message: String) -> Result<T, OptionError> {
    Err(OptionError(message))
}

/// Parses an option string. A `file=` or `reply=` value may contain any character but a comma.
///
/// # Errors
/// [`OptionError`] that names the option.
pub fn parse(text: &str) -> Result<Options, OptionError> {
    let mut options = Options::default();
    let mut command = None;
    for word in text.split(',').filter(|w| !w.is_empty()) {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        if let Some(this) = command_of(name) {
            if value.is_some() {
                return refuse(format!("'{name}' takes no value"));
            }
            if command.is_some_and(|other| other != this) {
                return refuse(format!("'{name}': only one of start, stop, dump, status"));
            }
            command = Some(this);
            continue;
        }
        match word {
            "live" => options.alive_bytes = AS_ALLOC,
            "no-redact" => options.secrets = Secrets::none(),
            _ => {}
        }
        if ["live", "no-redact"].contains(&word) {
            continue;
        }
        let Some(value) = value.filter(|v| !v.is_empty()) else {
            return refuse(format!("'{}': {}", shown(word), known_options()));
        };
        set(&mut options, name, value)?;
    }
    options.command = command.unwrap_or(Command::Start);
    agree(&mut options)?;
    Ok(options)
}

/// There is one sampler of objects, with one interval.
fn agree(options: &mut Options) -> Result<(), OptionError> {
    ways::agree(options.engine, options.walk)?;
    let Options {
        alloc_bytes,
        alive_bytes,
        alloc_rate,
        ..
    } = options;
    if *alloc_rate != 0 && (*alloc_bytes, *alive_bytes) == (0, 0) {
        *alloc_bytes = OBJECT_BYTES;
    }
    match (*alloc_bytes, *alive_bytes) {
        (0, AS_ALLOC) => *alive_bytes = OBJECT_BYTES,
        (bytes, AS_ALLOC) => *alive_bytes = bytes,
        (0, _) | (_, 0) => {}
        (one, other) if one == other => {}
        (one, other) => {
            return refuse(format!(
                "live={other}: the sampler has one interval, that of alloc={one}; leave a size out"
            ));
        }
    }
    Ok(())
}

impl Options {
    /// Mean number of bytes allocated between two sampled objects, for any event; 0: no object is
    /// sampled.
    #[must_use]
    pub fn object_bytes(&self) -> u64 {
        self.alloc_bytes.max(self.alive_bytes)
    }

    /// The option that requests samples of objects, in the form for a message.
    #[must_use]
    pub fn asked_objects(&self) -> String {
        match self.alloc_bytes {
            0 => format!("live={}", self.alive_bytes),
            bytes => format!("alloc={bytes}"),
        }
    }
}

fn command_of(name: &str) -> Option<Command> {
    Some(match name {
        "start" => Command::Start,
        "stop" => Command::Stop,
        "dump" => Command::Dump,
        "status" => Command::Status,
        _ => return None,
    })
}

fn known_options() -> &'static str {
    "known are start, stop, dump, status, cpu=TIME, wall=TIME, wall-threads=N, \
     wall-budget=N%, filter=context, idle=METHOD, late=TIME, alloc=SIZE, alloc-rate=N, live, \
     live=SIZE, lock=TIME, maxrate=N, engine=auto|perf|timer|kernel, walk=snapshot|handler|paused, \
     file=PATH, depth=N, chunksize=SIZE, chunktime=TIME, maxsize=SIZE, maxage=TIME, \
     duration=TIME, lease=TIME, freeze=DIR, \
     freeze-every=N, redact=TEXT, no-redact, reply=PATH, perf-socket=PATH"
}

fn set(options: &mut Options, name: &str, value: &str) -> Result<(), OptionError> {
    match name {
        "cpu" => options.cpu_interval = interval(value)?,
        "wall" => options.wall_interval = wall_interval(value)?,
        "wall-threads" => options.wall_threads = Some(wall_threads(value)?),
        "idle" => options.idle.push(idle(value)?),
        "late" => options.late = late(value)?,
        "alloc" => options.alloc_bytes = objects(name, value)?,
        "alloc-rate" => options.alloc_rate = rates::wanted(value)?,
        "maxrate" => options.max_rate = rates::most(value)?,
        "live" => options.alive_bytes = objects(name, value)?,
        "lock" => options.lock_interval = lock(value)?,
        "wall-budget" => options.wall_budget_ppm = wall_budget(value)?,
        "filter" => match value {
            "context" => options.only_context = true,
            _ => return refuse(format!("filter={}: takes context", shown(value))),
        },
        "engine" => options.engine = ways::engine(value)?,
        "walk" => options.walk = ways::vantage(value)?,
        #[cfg(feature = "experiments")]
        "experiment" => options.experiment = Some(experiment(value)?),
        "file" => options.file = value.to_owned(),
        "reply" => options.reply = Some(value.to_owned()),
        "redact" => options.secrets.add(value),
        // The agent takes it from the text.
        "perf-socket" => {}
        "freeze" => options.freeze = Some(value.to_owned()),
        "freeze-every" => match value.parse() {
            Ok(n) => options.freeze_every = n,
            Err(_) => return refuse(format!("freeze-every={}: a number", shown(value))),
        },
        "depth" => options.depth = depth(value)?,
        "chunksize" => options.chunk_bytes = at_least("chunksize", size(name, value)?, 256 << 10)?,
        "chunktime" => {
            options.chunk_age = duration(name, value)?;
            if options.chunk_age < Duration::from_secs(5) {
                return refuse(format!("chunktime={}: at least 5s", shown(value)));
            }
        }
        "maxsize" => options.max_bytes = at_least("maxsize", size(name, value)?, 1 << 20)?,
        "maxage" => options.max_age = duration(name, value)?,
        "duration" => options.duration = duration(name, value)?,
        "lease" => options.lease = duration(name, value)?,
        _ => {
            return refuse(format!(
                "unknown option '{}': {}",
                shown(name),
                known_options()
            ));
        }
    }
    Ok(())
}

fn at_least(name: &str, value: u64, least: u64) -> Result<u64, OptionError> {
    if value < least {
        return refuse(format!("{name}={value}: at least {}k", least >> 10));
    }
    Ok(value)
}

fn wall_interval(value: &str) -> Result<Duration, OptionError> {
    let interval = duration("wall", value)?;
    if !(WALL_MIN..=INTERVAL_MAX).contains(&interval) {
        return refuse(format!("wall={}: from 1ms to 10s", shown(value)));
    }
    Ok(interval)
}

fn wall_threads(value: &str) -> Result<usize, OptionError> {
    match value.parse() {
        Ok(threads @ 1..) => Ok(threads),
        _ => refuse(format!("wall-threads={}: a number from 1 on", shown(value))),
    }
}

fn idle(value: &str) -> Result<String, OptionError> {
    match Pools::default().add(value) {
        Ok(()) => Ok(value.to_owned()),
        Err(_) => refuse(format!(
            "idle={}: a method as package.Class.method, * for anything",
            shown(value)
        )),
    }
}

fn late(value: &str) -> Result<Duration, OptionError> {
    let late = duration("late", value)?;
    if !LATE.contains(&late) {
        return refuse(format!("late={}: from 200us to 10s", shown(value)));
    }
    Ok(late)
}

fn objects(name: &str, value: &str) -> Result<u64, OptionError> {
    match size(name, value) {
        Ok(bytes) if ALLOC.contains(&bytes) => Ok(bytes),
        _ => refuse(format!(
            "{name}={}: bytes between two samples, from 1k to 1g, such as 512k",
            shown(value)
        )),
    }
}

fn lock(value: &str) -> Result<Duration, OptionError> {
    let interval = duration("lock", value)?;
    if !LOCK.contains(&interval) {
        return refuse(format!("lock={}: from 1us to 10s", shown(value)));
    }
    Ok(interval)
}

/// In millionths: `0.5%` is 5000.
fn wall_budget(value: &str) -> Result<u32, OptionError> {
    let number = value.strip_suffix('%');
    match number.and_then(|number| measures::decimal(number, 10_000)) {
        Some(ppm @ 100..=1_000_000) => Ok(ppm as u32),
        _ => refuse(format!(
            "wall-budget={}: a share of one CPU, from 0.01% to 100%",
            shown(value)
        )),
    }
}

fn interval(value: &str) -> Result<Duration, OptionError> {
    let interval = duration("cpu", value)?;
    if !(INTERVAL_MIN..=INTERVAL_MAX).contains(&interval) {
        return refuse(format!("cpu={}: from 20us to 10s", shown(value)));
    }
    Ok(interval)
}

#[cfg(feature = "experiments")]
fn experiment(value: &str) -> Result<Experiment, OptionError> {
    match value {
        "no-copy" => Ok(Experiment::NoCopy),
        "empty-handler" => Ok(Experiment::EmptyHandler),
        "compare" => Ok(Experiment::Compare),
        "faults" => Ok(Experiment::Faults),
        "kernel-16" => Ok(Experiment::Kernel { kib: 16 }),
        "kernel-60" => Ok(Experiment::Kernel { kib: 60 }),
        _ => refuse(format!(
            "experiment={}: no-copy, empty-handler, compare, faults, kernel-16 or \
             kernel-60",
            shown(value)
        )),
    }
}

fn depth(value: &str) -> Result<usize, OptionError> {
    match value.parse() {
        Ok(depth) if DEPTH.contains(&depth) => Ok(depth),
        _ => refuse(format!("depth={}: a number from 1 to 65536", shown(value))),
    }
}

/// User text for an error line: short, without control characters.
fn shown(text: &str) -> String {
    text.chars()
        .take(60)
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// Puts pid and time into a file name.
#[must_use]
pub fn expand(file: &str, pid: u32, time: &str) -> String {
    file.replace("%p", &pid.to_string()).replace("%t", time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_documented_string_parses() {
        let options = parse("start,cpu=10ms,file=app-%p-%t.jfr").unwrap();
        assert_eq!(options.command, Command::Start);
        assert_eq!(options.cpu_interval, Duration::from_millis(10));
        assert_eq!(expand(&options.file, 7, "T"), "app-7-T.jfr");
    }

    #[test]
    fn bytes_between_allocations_may_have_a_unit() {
        assert_eq!(parse("").unwrap().alloc_bytes, 0);
        for (text, bytes) in [("512k", 512 << 10), ("1024", 1024), ("1g", 1 << 30)] {
            let options = parse(&format!("alloc={text}")).unwrap();
            assert_eq!(options.alloc_bytes, bytes);
        }
        for bad in ["1023", "1025m", "0", "k", "-1", "1.5m"] {
            assert!(parse(&format!("alloc={bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn secrets_default_to_known_words_unless_set() {
        let told = |text: &str| parse(text).unwrap().secrets.line("--token a b.xyz.c");
        assert_eq!(told("redact=XYZ"), "--token [redacted] [redacted]");
        assert_eq!(told("start"), "--token [redacted] b.xyz.c");
        assert_eq!(told("no-redact"), "--token a b.xyz.c");
        assert!(parse("redact=").is_err());
    }

    #[test]
    fn a_rate_of_samples_begins_with_an_interval() {
        let of = |text: &str| {
            let it = parse(text).unwrap();
            (it.alloc_bytes, it.alive_bytes, it.alloc_rate)
        };
        assert_eq!(of("alloc-rate=200"), (512 << 10, 0, 200));
        assert_eq!(of("alloc-rate=1/s,alloc=64k"), (64 << 10, 0, 1));
        assert_eq!(of("live,alloc-rate=100000/s"), (0, 512 << 10, 100_000));
        for bad in ["0", "100001", "200/m", "-1", "x", "18446744073709551616"] {
            assert!(parse(&format!("alloc-rate={bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn objects_are_followed_with_the_interval_of_allocations() {
        let bytes = |text: &str| {
            let options = parse(text).unwrap();
            let asked = options.asked_objects();
            (options.alloc_bytes, options.alive_bytes, asked)
        };
        assert_eq!(bytes("live"), (0, 512 << 10, "live=524288".to_owned()));
        assert_eq!(bytes("live=1k"), (0, 1024, "live=1024".to_owned()));
        for text in ["alloc=2k,live", "live,alloc=2k", "live=2048,alloc=2k"] {
            assert_eq!(bytes(text), (2048, 2048, "alloc=2048".to_owned()));
        }
        assert_eq!(parse("").unwrap().object_bytes(), 0);
        assert_eq!(parse("live").unwrap().object_bytes(), 512 << 10);
    }

    #[test]
    fn times_need_a_unit_and_fractions_work() {
        assert_eq!(
            parse("cpu=0.5ms").unwrap().cpu_interval,
            Duration::from_micros(500)
        );
        assert_eq!(
            parse("cpu=100us").unwrap().cpu_interval,
            Duration::from_micros(100)
        );
        for bad in [
            "cpu=10",
            "cpu=10msec",
            "cpu=ms",
            "cpu=1..5ms",
            "cpu=1us",
            "cpu=1h",
            "cpu=",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn errors_name_the_option() {
        for (text, part) in [
            ("cstack=vm", "cstack"),
            ("engine=itimer", "engine=itimer"),
            ("start,stop", "stop"),
            ("walk=async", "walk=async"),
            ("start=1", "start"),
            ("depth=0", "depth=0"),
            ("chunksize=1k", "chunksize"),
            ("maxsize=2MB", "maxsize"),
            ("bogus", "bogus"),
            ("wall=20", "wall=20"),
            ("idle=work", "idle=work"),
            ("alloc=1", "alloc=1"),
            ("alloc=2g", "alloc=2g"),
            ("alloc=512kb", "alloc=512kb"),
            ("live=1", "live=1"),
            ("live=", "live="),
            ("alloc=1k,live=2k", "live=2048"),
            ("lock=1", "lock=1"),
            ("lock=0us", "lock=0us"),
            ("lock=11s", "lock=11s"),
            ("engine=kernel,walk=handler", "engine=kernel"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
            assert!(!error.contains('\n'));
        }
    }

    /// The longest list of known names, and a part of the user's text.
    const ERROR_BYTES_MAX: usize = 750;

    #[test]
    fn long_value_gives_a_short_error() {
        let zeros = "0".repeat(5000);
        for text in [
            format!("cpu={zeros}1us"),
            format!("cpu={zeros}11s"),
            format!("chunktime={zeros}1s"),
            format!("chunksize={zeros}1k"),
            format!("depth={zeros}"),
            format!("freeze-every={zeros}x"),
            format!("wall={zeros}1us"),
            format!("wall-threads={zeros}"),
            format!("idle={zeros}"),
            format!("late={zeros}1us"),
            format!("alloc={zeros}1"),
            format!("live={zeros}1"),
            format!("lock={zeros}1ns"),
            format!("wall-budget={zeros}%"),
            format!("{zeros}=1"),
            zeros.clone(),
        ] {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.len() <= ERROR_BYTES_MAX, "{} bytes", error.len());
        }
    }

    /// Options in a canonical form, with numbers in the smallest unit.
    fn written(options: &Options) -> String {
        let command = format!("{:?}", options.command).to_lowercase();
        let engine = format!("{:?}", options.engine).to_lowercase();
        let walk = format!("{:?}", options.walk).to_lowercase();
        let mut text = format!(
            "engine={engine},walk={walk},file={},depth={},{command},cpu={}ns,chunksize={},\
             chunktime={}ns,maxage={}ns,freeze-every={}",
            options.file,
            options.depth,
            options.cpu_interval.as_nanos(),
            options.chunk_bytes,
            options.chunk_age.as_nanos(),
            options.max_age.as_nanos(),
            options.freeze_every,
        );
        if !options.wall_interval.is_zero() {
            text += &format!(",wall={}ns", options.wall_interval.as_nanos());
        }
        if let Some(threads) = options.wall_threads {
            text += &format!(",wall-threads={threads}");
        }
        let percent = f64::from(options.wall_budget_ppm) / 10_000.0;
        text += &format!(",wall-budget={percent}%");
        if options.only_context {
            text += ",filter=context";
        }
        for method in &options.idle {
            text += &format!(",idle={method}");
        }
        text += &format!(",late={}ns", options.late.as_nanos());
        if options.alloc_bytes != 0 {
            text += &format!(",alloc={}", options.alloc_bytes);
        }
        if options.alive_bytes != 0 {
            text += &format!(",live={}", options.alive_bytes);
        }
        if options.alloc_rate != 0 {
            text += &format!(",alloc-rate={}", options.alloc_rate);
        }
        if !options.lock_interval.is_zero() {
            text += &format!(",lock={}ns", options.lock_interval.as_nanos());
        }
        let (duration, lease) = (options.duration.as_nanos(), options.lease.as_nanos());
        text += &format!(",duration={duration}ns,lease={lease}ns");
        text += &format!(",maxrate={}", options.max_rate);
        if options.max_bytes != 0 {
            text += &format!(",maxsize={}", options.max_bytes);
        }
        for (name, value) in [("reply", &options.reply), ("freeze", &options.freeze)] {
            if let Some(value) = value {
                text += &format!(",{name}={value}");
            }
        }
        text
    }

    /// Intervals of `alloc` and `live`, which are equal if both are given, and a rate.
    fn any_intervals() -> impl Strategy<Value = [u64; 3]> {
        let rate = prop_oneof![Just(0), rates::RATE];
        (ALLOC, 0..4u64, rate).prop_map(|(bytes, which, rate)| {
            let any = u64::from(which != 0);
            [bytes * (which & 1), bytes * (which >> 1), rate * any]
        })
    }

    /// That of waits for locks.
    fn any_lock_interval() -> impl Strategy<Value = Duration> {
        let lock = prop_oneof![Just(0), 1000..=10_000_000_000u64];
        lock.prop_map(Duration::from_nanos)
    }

    /// Engines with walks that they support.
    fn any_engine() -> impl Strategy<Value = (EngineChoice, Vantage)> {
        use EngineChoice::{Auto, Kernel, Perf, Timer};
        let vantages = [Vantage::Snapshot, Vantage::Handler, Vantage::Paused];
        let any = |engine| vantages.map(move |vantage| (engine, vantage));
        let mut all = [Auto, Perf, Timer].map(any).concat();
        all.push((Kernel, Vantage::Snapshot));
        prop::sample::select(all)
    }

    fn any_options() -> impl Strategy<Value = Options> {
        use Command::{Dump, Start, Status, Stop};
        let commands = prop::sample::select(vec![Start, Stop, Dump, Status]);
        let words = (commands, any_engine());
        let times = (
            20_000..=10_000_000_000u64,
            5_000_000_000..1u64 << 50,
            0..1u64 << 50,
            (200_000..=10_000_000_000u64).prop_map(Duration::from_nanos),
        );
        let limit = prop_oneof![Just(0), 1 << 20..1u64 << 34];
        let chunk = 256 << 10..1u64 << 34;
        let sizes = (chunk, limit, any_intervals(), any_lock_interval());
        let wall = (
            prop_oneof![Just(0), 1_000_000..=10_000_000_000u64],
            prop::option::of(1..usize::MAX),
            100..=1_000_000u32,
            any::<bool>(),
            prop::collection::vec("[a-z*.]{0,9}[A-Z*][a-z*]{0,5}[.][a-z*]{1,8}", 0..3),
        );
        let texts = (
            "[^,]{1,20}",
            prop::option::of("[^,]{1,20}"),
            prop::option::of("[^,]{1,20}"),
        );
        (words, times, sizes, wall, texts, DEPTH, any::<u64>()).prop_map(
            |(
                (command, (engine, walk)),
                (cpu, age, max_age, late),
                sizes,
                (wall, wall_threads, wall_budget_ppm, only_context, idle),
                (file, reply, freeze),
                depth,
                every,
            )| {
                Options {
                    command,
                    engine,
                    walk,
                    #[cfg(feature = "experiments")]
                    experiment: None,
                    cpu_interval: Duration::from_nanos(cpu),
                    wall_interval: Duration::from_nanos(wall),
                    wall_threads,
                    wall_budget_ppm,
                    only_context,
                    idle,
                    late,
                    alloc_bytes: sizes.2[0],
                    alive_bytes: sizes.2[1],
                    alloc_rate: sizes.2[2],
                    lock_interval: sizes.3,
                    max_rate: every % 100_001,
                    chunk_age: Duration::from_nanos(age),
                    max_age: Duration::from_nanos(max_age),
                    duration: Duration::from_nanos(max_age >> 1),
                    lease: Duration::from_nanos(age >> 1),
                    chunk_bytes: sizes.0,
                    max_bytes: sizes.1,
                    file,
                    reply,
                    freeze,
                    depth,
                    freeze_every: every,
                    secrets: Secrets::default(),
                }
            },
        )
    }

    proptest! {
        #[test]
        fn all_options_come_back(options in any_options()) {
            prop_assert_eq!(parse(&written(&options)), Ok(options));
        }

        #[test]
        fn any_text_is_answered_in_one_line(text in "(cpu=|depth=|reply=|start,)?.{0,200}") {
            if let Err(error) = parse(&text) {
                let line = error.to_string();
                prop_assert!(!line.chars().any(char::is_control), "{:?}", line);
                prop_assert!(line.len() <= ERROR_BYTES_MAX, "{}", line);
            }
        }

        #[test]
        fn every_interval_in_range_round_trips(us in 20u64..10_000_000) {
            let options = parse(&format!("cpu={us}us")).unwrap();
            prop_assert_eq!(options.cpu_interval, Duration::from_micros(us));
        }
    }
}
