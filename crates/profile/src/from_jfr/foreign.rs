//! Recordings of async-profiler and ddprof: the weights of their samples, and why threads waited,
//! as far as states and frames show it. It knows no files. It trusts the other profiler's data
//! about its clock.

use super::waits::TimedWait;
use crate::idle::IDLE;
use crate::platform::is_class;
use dwell_jdk::WAITS;
use dwell_jfr::ThreadState;
use dwell_jfr::reader::{Method, Recording, Sample, SampleKind, StackFrame, Told};
use dwell_wall::cause::{Cause, Facts, Known, Monitor, Named, Os};
use std::collections::HashMap;
use std::sync::Arc;

/// async-profiler's intervals if none is given.
const CPU_DEFAULT_NS: u64 = 10_000_000;
const WALL_DEFAULT_NS: u64 = 50_000_000;
/// Frames that say what a thread waits for lie near the top.
const FRAMES_MAX: usize = 64;

/// Events that a recording may hold in addition to samples, and that are only counted.
const HELD: &[&str] = &[
    "profiler.LiveObject",
    "profiler.Malloc",
    "profiler.Free",
    "datadog.ObjectSample",
    "datadog.HeapLiveObject",
    "datadog.QueueTime",
];

dwell_jfr::told! {
    /// The configuration of ddprof.
    pub(crate) struct DdprofConfig = "datadog.DatadogProfilerConfig" {
        /// Its version.
        version: Text "version";
        /// CPU time between two samples.
        cpu_ns: MaybeSpan "cpuInterval";
        /// Wall time between two samples of a thread.
        wall_ns: MaybeSpan "wallInterval";
    }

    /// Samples of CPU time that the JDK's recorder could not take.
    pub(crate) struct SamplesLost = "jdk.CPUTimeSamplesLost" {
        /// How many.
        samples: Count "lostSamples";
    }

    /// The recorder's data about the recording.
    pub(crate) struct ActiveRecording = "jdk.ActiveRecording" {
        /// Its name.
        name: Text "name";
    }

    /// A setting, by which async-profiler says how it records.
    pub(crate) struct Setting = "jdk.ActiveSetting" {
        /// Number of the type of the event that it is of.
        event_id: Id "id";
        /// Name of the setting.
        name: MaybeText "name";
        /// Its value.
        value: MaybeText "value";
    }
}

/// Why the JDK's recorder loses samples of CPU time, in its own words.
pub(crate) const SAMPLES_LOST: &str = "the JDK's recorder had no room (jdk.CPUTimeSamplesLost)";

/// The clock of another profiler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Its name and version.
    pub(crate) tool: String,
    /// CPU time between two samples.
    pub(crate) cpu_ns: Option<u64>,
    /// Wall time between two samples of a thread.
    pub(crate) wall_ns: Option<u64>,
    /// The event whose occurrences are sampled, where that is no clock.
    pub(crate) event: String,
    /// The meaning of its `jdk.ExecutionSample` events.
    execution: Execution,
}

/// The trigger of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// CPU time that the thread used.
    Cpu,
    /// The JDK's recorder, which looks for threads that run Java code.
    Java,
    /// The same, for threads in native methods.
    Native,
    /// A wall clock.
    Wall,
    /// An event that is no clock.
    Event,
}

/// The trigger of `jdk.ExecutionSample` events without weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Execution {
    /// All by the same.
    All(Trigger),
    /// Those with a state of their thread by a wall clock, the others by this.
    ByState(Trigger),
}

impl Default for Execution {
    fn default() -> Execution {
        Execution::All(Trigger::Java)
    }
}

/// Settings by name; async-profiler writes some without a value.
type Settings = HashMap<Arc<str>, Option<Arc<str>>>;

impl Clock {
    /// The clock of a recording.
    pub(crate) fn of(recording: &Recording) -> Clock {
        if super::is_ours(recording) {
            return Clock::default();
        }
        if let Some(clock) = Clock::of_ddprof(recording) {
            return clock;
        }
        let mut settings = Settings::new();
        for setting in recording.told::<Setting>() {
            let Some(name) = setting.name else { continue };
            let value = settings.entry(name).or_default();
            *value = setting.value.or(value.take());
        }
        match tool(recording, &settings) {
            Some(tool) => Clock::by_settings(tool, &settings),
            None => Clock::unknown(recording),
        }
    }

    fn of_ddprof(recording: &Recording) -> Option<Clock> {
        let is_told = |ns: &u64| *ns > 0;
        let mut clock: Option<Clock> = None;
        for config in recording.told::<DdprofConfig>() {
            let clock = clock.get_or_insert_default();
            clock.tool = format!("ddprof {}", config.version);
            clock.cpu_ns = config.cpu_ns.filter(is_told).or(clock.cpu_ns);
            clock.wall_ns = config.wall_ns.filter(is_told).or(clock.wall_ns);
        }
        clock
    }

    /// The clock by the settings that async-profiler writes.
    fn by_settings(tool: String, settings: &Settings) -> Clock {
        let text = |name: &str| settings.get(name)?.as_deref();
        let number = |name: &str| text(name)?.parse::<u64>().ok();
        let event = text("event").unwrap_or("");
        let interval = number("interval").filter(|ns| *ns > 0);
        let is_cpu = matches!(
            event,
            "cpu" | "ctimer" | "itimer" | "cpu-clock" | "task-clock"
        );
        let is_wall = event == "wall";
        let of_event = match is_cpu {
            true => Trigger::Cpu,
            false => Trigger::Event,
        };
        let execution = match (is_wall, settings.contains_key("wall")) {
            (true, _) => Execution::All(Trigger::Wall),
            (false, true) => Execution::ByState(of_event),
            (false, false) => Execution::All(of_event),
        };
        // 0 stands for the default.
        let wall_ns = match (number("wall"), is_wall) {
            (Some(ns), _) if ns > 0 => Some(ns),
            (_, true) => Some(interval.unwrap_or(WALL_DEFAULT_NS)),
            (Some(_), false) => Some(WALL_DEFAULT_NS),
            (None, false) => None,
        };
        Clock {
            tool,
            cpu_ns: is_cpu.then(|| interval.unwrap_or(CPU_DEFAULT_NS)),
            wall_ns,
            event: match is_cpu || is_wall {
                true => String::new(),
                false => event.to_owned(),
            },
            execution,
        }
    }

    /// The clock of an unknown recorder. The JDK samples threads that run; a recorder that samples
    /// sleeping threads has a wall clock.
    fn unknown(recording: &Recording) -> Clock {
        let is_asleep = |sample: &Sample| {
            let is_counted = sample.kind == SampleKind::Execution && sample.weight_ns.is_none();
            is_counted && is_asleep(sample.state)
        };
        let execution = match recording.samples.iter().any(is_asleep) {
            true => Execution::All(Trigger::Wall),
            false => Execution::default(),
        };
        Clock {
            execution,
            ..Clock::default()
        }
    }

    /// The trigger of a sample.
    pub(crate) fn trigger(&self, sample: &Sample) -> Trigger {
        match sample.kind {
            SampleKind::Wall | SampleKind::WallClock | SampleKind::DatadogWall => Trigger::Wall,
            SampleKind::CpuTime | SampleKind::DatadogCpu => Trigger::Cpu,
            SampleKind::Native => Trigger::Native,
            SampleKind::Execution if sample.weight_ns.is_some() => Trigger::Cpu,
            SampleKind::Execution => match self.execution {
                Execution::All(trigger) => trigger,
                Execution::ByState(trigger) if sample.state == ThreadState::Other => trigger,
                Execution::ByState(_) => Trigger::Wall,
            },
        }
    }

    /// The time that a sample stands for, if that is known.
    pub(crate) fn weight_ns(&self, recording: &Recording, sample: &Sample) -> Option<u64> {
        let tick_ns = match (self.trigger(sample), sample.kind) {
            (_, SampleKind::CpuTime | SampleKind::Wall) => return None,
            (Trigger::Cpu, _) => self.cpu_ns?,
            (Trigger::Wall, _) => self.wall_ns?,
            (Trigger::Java | Trigger::Native | Trigger::Event, _) => return None,
        };
        Some(tick_ns.saturating_mul(ticks(recording, sample)))
    }

    /// Whether the thread of a sample waited: one of a wall clock that was not seen running.
    pub(crate) fn is_wait(&self, sample: &Sample) -> bool {
        sample.kind != SampleKind::Wall
            && self.trigger(sample) == Trigger::Wall
            && !matches!(
                sample.state,
                ThreadState::Runnable | ThreadState::New | ThreadState::Terminated
            )
    }
}

fn is_asleep(state: ThreadState) -> bool {
    matches!(
        state,
        ThreadState::Sleeping | ThreadState::Waiting | ThreadState::Parked | ThreadState::Blocked
    )
}

/// The profiler that a recording is of, if it says so. async-profiler names itself in
/// `jdk.ActiveRecording`, and writes settings whose names the JDK's recorder has not; so do files
/// that were converted for its readers.
fn tool(recording: &Recording, settings: &Settings) -> Option<String> {
    const NAME: &str = "async-profiler";
    let mut names = recording.told::<ActiveRecording>().map(|it| it.name);
    if let Some(name) = names.find(|name| name.starts_with(NAME)) {
        return Some(name.to_string());
    }
    let text = |name: &str| settings.get(name)?.as_deref();
    if settings.contains_key("jstackdepth") {
        let version = text("version").unwrap_or("");
        return Some(format!("{NAME} {version}").trim_end().to_owned());
    }
    let is_alike = settings.contains_key("event")
        && ["interval", "wall", "producer"]
            .iter()
            .any(|name| settings.contains_key(*name));
    is_alike.then(|| text("producer").unwrap_or("another profiler").to_owned())
}

/// How many ticks of its profiler's clock a sample stands for.
pub(crate) fn ticks(recording: &Recording, sample: &Sample) -> u64 {
    let wall = sample
        .wall
        .and_then(|place| recording.walls.get(place as usize));
    wall.map_or(u64::from(sample.count), |wall| wall.count.max(1))
}

/// Events of interest that the recording holds and that are not read. Waits are not if a wall clock
/// has seen them.
pub(crate) fn held(recording: &Recording, has_waits: bool) -> Vec<(String, u64)> {
    let waits = TimedWait::NAMES.iter().filter(|_| !has_waits);
    let counts = waits.chain(HELD).filter_map(|name| {
        let count = recording.counts.get(*name).filter(|count| **count > 0)?;
        Some(((*name).to_owned(), *count))
    });
    counts.collect()
}

/// Finds why threads waited.
pub(crate) struct Causes {
    waits: Known,
    known: HashMap<(u32, ThreadState), &'static str>,
}

impl Default for Causes {
    fn default() -> Causes {
        Causes {
            waits: Known::new(&WAITS),
            known: HashMap::new(),
        }
    }
}

impl Causes {
    /// The cause, by the state and the stack of a thread that waited.
    pub(crate) fn of(
        &mut self,
        recording: &Recording,
        stack: u32,
        state: ThreadState,
    ) -> &'static str {
        let key = (stack, state);
        if let Some(known) = self.known.get(&key) {
            return known;
        }
        let mut names: Vec<(String, &str, bool)> = Vec::new();
        let stack = recording.stacks.get(stack).unwrap_or_default();
        let methods = || (stack.frames.iter()).filter_map(|it| Some((it, recording.method(it)?)));
        let is_java = |frame: &StackFrame, method: &Method| {
            super::kind(frame.kind).is_java()
                || (frame.kind == dwell_jfr::FrameKind::Native && is_class(&method.class))
        };
        for (frame, method) in methods().take(FRAMES_MAX) {
            let is_java = is_java(frame, method);
            names.push((method.class.replace('.', "/"), &*method.name, is_java));
        }
        let frames: Vec<Named<'_>> = (names.iter())
            .map(|(class, name, is_java)| Named {
                class,
                name,
                is_managed: *is_java,
            })
            .collect();
        let facts = Facts {
            os: Os::Waiting,
            monitor: monitor(state, &frames),
            is_owned_lock: frames.iter().any(is_lock),
            frames: &frames,
        };
        let outside = || {
            methods().any(|(_, method)| is_root(&method.name))
                && !methods().any(|(frame, method)| is_java(frame, method))
        };
        let name = match self.waits.cause(&facts) {
            Cause::Unknown if outside() => IDLE,
            cause => cause.name(),
        };
        self.known.insert(key, name);
        name
    }
}

/// Whether the operating system starts threads in a function. A stack from there on without Java
/// frames is of a thread of the runtime, or of a library, which waits for work.
fn is_root(function: &str) -> bool {
    const ROOTS: [&str; 6] = [
        "clone3",
        "__clone3",
        "clone",
        "__clone",
        "start_thread",
        "thread_start",
    ];
    ROOTS.contains(&function) || function.starts_with("__libc_start_")
}

fn monitor(state: ThreadState, frames: &[Named<'_>]) -> Monitor {
    let functions = || frames.iter().take_while(|frame| !frame.is_managed);
    let has = |part: &str| functions().any(|frame| frame.name.contains(part));
    if state == ThreadState::Blocked || has("ObjectMonitor::enter") {
        Monitor::Entering
    } else if state == ThreadState::Waiting || has("ObjectMonitor::wait") {
        Monitor::Waiting
    } else {
        Monitor::None
    }
}

/// Whether a frame waits for a lock that another thread has.
fn is_lock(frame: &Named<'_>) -> bool {
    let locks = [
        "java/util/concurrent/locks/ReentrantLock",
        "java/util/concurrent/locks/ReentrantReadWriteLock$",
        "java/util/concurrent/locks/StampedLock",
    ];
    frame.is_managed
        && matches!(
            frame.name,
            "lock" | "lockInterruptibly" | "readLock" | "writeLock" | "tryLock"
        )
        && locks.iter().any(|lock| frame.class.starts_with(lock))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn java<'a>(class: &'a str, name: &'a str) -> Named<'a> {
        Named {
            class,
            name,
            is_managed: true,
        }
    }

    #[test]
    fn monitors_are_classified_by_state_or_jvm_function() {
        let enter = [Named {
            class: "libjvm.so",
            name: "ObjectMonitor::enter_internal",
            is_managed: false,
        }];
        assert_eq!(monitor(ThreadState::Sleeping, &enter), Monitor::Entering);
        assert_eq!(monitor(ThreadState::Blocked, &[]), Monitor::Entering);
        assert_eq!(monitor(ThreadState::Waiting, &[]), Monitor::Waiting);
        assert_eq!(monitor(ThreadState::Sleeping, &[]), Monitor::None);
    }

    #[test]
    fn locks_differ_from_conditions() {
        assert!(is_lock(&java(
            "java/util/concurrent/locks/ReentrantLock",
            "lock"
        )));
        assert!(!is_lock(&java(
            "java/util/concurrent/locks/ReentrantLock",
            "unlock"
        )));
        let condition = "java/util/concurrent/locks/AbstractQueuedSynchronizer$ConditionObject";
        assert!(!is_lock(&java(condition, "await")));
    }
}
