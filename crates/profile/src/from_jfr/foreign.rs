//! Recordings of async-profiler and ddprof: what their samples stand for, and why threads waited as
//! far as states and frames tell. Knows no files; what another profiler says of its clock is taken
//! as true.

use dwell_jdk::WAITS;
use dwell_jfr::ThreadState;
use dwell_jfr::reader::{Recording, Sample, SampleKind};
use dwell_wall::cause::{Facts, Known, Monitor, Named, Os};
use std::collections::HashMap;
use std::sync::Arc;

/// async-profiler's intervals if none is given.
const CPU_DEFAULT_NS: u64 = 10_000_000;
const WALL_DEFAULT_NS: u64 = 50_000_000;
/// Frames that say what a thread waits for lie near the top.
const FRAMES_MAX: usize = 64;

/// Events that a recording may hold beside samples, and that are only counted.
const HELD: &[&str] = &[
    "jdk.JavaMonitorEnter",
    "jdk.JavaMonitorWait",
    "jdk.ThreadPark",
    "jdk.ThreadSleep",
    "jdk.SocketRead",
    "jdk.SocketWrite",
    "jdk.FileRead",
    "jdk.FileWrite",
    "jdk.VirtualThreadPinned",
    "jdk.JavaExceptionThrow",
    "jdk.ObjectAllocationSample",
    "jdk.ObjectAllocationInNewTLAB",
    "jdk.ObjectAllocationOutsideTLAB",
    "jdk.OldObjectSample",
    "jdk.GarbageCollection",
    "jdk.SafepointBegin",
    "jdk.ExecuteVMOperation",
    "jdk.MethodTrace",
    "profiler.LiveObject",
    "profiler.Malloc",
    "profiler.Free",
    "profiler.MethodTrace",
    "datadog.ObjectSample",
    "datadog.HeapLiveObject",
    "datadog.QueueTime",
];

dwell_jfr::told! {
    /// What ddprof says of itself.
    pub(crate) struct DdprofConfig = "datadog.DatadogProfilerConfig" {
        /// Its version.
        version: Text "version";
        /// CPU time between two samples.
        cpu_ns: MaybeSpan "cpuInterval";
        /// Wall time between two looks at a thread.
        wall_ns: MaybeSpan "wallInterval";
    }

    /// Samples of CPU time that the JDK's recorder could not take.
    pub(crate) struct SamplesLost = "jdk.CPUTimeSamplesLost" {
        /// How many.
        samples: Count "lostSamples";
    }

    /// A setting, by which async-profiler says how it records.
    pub(crate) struct Setting = "jdk.ActiveSetting" {
        /// What is set.
        name: MaybeText "name";
        /// To what.
        value: MaybeText "value";
    }
}

/// Why the JDK's recorder loses samples of CPU time, as it tells that.
pub(crate) const SAMPLES_LOST: &str = "the JDK's recorder had no room (jdk.CPUTimeSamplesLost)";

/// The clock of another profiler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock {
    /// Its name and version.
    pub(crate) tool: String,
    /// CPU time between two samples.
    pub(crate) cpu_ns: Option<u64>,
    /// Wall time between two looks at a thread.
    pub(crate) wall_ns: Option<u64>,
}

impl Clock {
    /// What the recording says of it.
    pub(crate) fn of(recording: &Recording) -> Clock {
        let is_told = |ns: &u64| *ns > 0;
        if let Some(config) = recording.told::<DdprofConfig>().last() {
            return Clock {
                tool: format!("ddprof {}", config.version),
                cpu_ns: config.cpu_ns.filter(is_told),
                wall_ns: config.wall_ns.filter(is_told),
            };
        }
        let settings = recording.told::<Setting>();
        let settings: HashMap<Arc<str>, Arc<str>> = settings
            .filter_map(|setting| Some((setting.name?, setting.value?)))
            .collect();
        // The JDK's and our own settings have neither.
        if !settings.contains_key("cstack") || !settings.contains_key("jstackdepth") {
            return Clock::default();
        }
        let number = |name: &str| settings.get(name)?.parse::<u64>().ok().filter(is_told);
        let event = settings.get("event").map_or("", |event| &**event);
        let interval = number("interval");
        Clock {
            tool: format!(
                "async-profiler {}",
                settings.get("version").map_or("", |it| &**it)
            ),
            cpu_ns: matches!(
                event,
                "cpu" | "ctimer" | "itimer" | "cpu-clock" | "task-clock"
            )
            .then(|| interval.unwrap_or(CPU_DEFAULT_NS)),
            wall_ns: number("wall")
                .or_else(|| (event == "wall").then(|| interval.unwrap_or(WALL_DEFAULT_NS))),
        }
    }

    /// The time that a sample stands for, if that is known.
    pub(crate) fn weight_ns(&self, recording: &Recording, sample: &Sample) -> Option<u64> {
        let tick_ns = match sample.kind {
            SampleKind::Execution => self.cpu_ns?,
            SampleKind::DatadogCpu => self.cpu_ns?,
            SampleKind::WallClock | SampleKind::DatadogWall => self.wall_ns?,
            SampleKind::Native | SampleKind::CpuTime | SampleKind::Wall => return None,
        };
        Some(tick_ns.saturating_mul(ticks(recording, sample)))
    }
}

/// How many ticks of its profiler's clock a sample stands for.
pub(crate) fn ticks(recording: &Recording, sample: &Sample) -> u64 {
    let wall = sample
        .wall
        .and_then(|place| recording.walls.get(place as usize));
    wall.map_or(u64::from(sample.count), |wall| wall.count.max(1))
}

/// Whether the thread of a sample waited.
pub(crate) fn is_wait(sample: &Sample) -> bool {
    let of_wall = matches!(sample.kind, SampleKind::WallClock | SampleKind::DatadogWall);
    of_wall
        && !matches!(
            sample.state,
            ThreadState::Runnable | ThreadState::New | ThreadState::Terminated
        )
}

/// Events of interest that the recording holds and that are not read.
pub(crate) fn held(recording: &Recording) -> Vec<(String, u64)> {
    let counts = HELD.iter().filter_map(|name| {
        let count = recording.counts.get(*name).filter(|count| **count > 0)?;
        Some(((*name).to_owned(), *count))
    });
    counts.collect()
}

/// Tells why threads waited.
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
    /// The cause, by the state and the stack of a sample of a thread that waited.
    pub(crate) fn of(&mut self, recording: &Recording, sample: &Sample) -> &'static str {
        let key = (sample.stack, sample.state);
        if let Some(known) = self.known.get(&key) {
            return known;
        }
        let mut names: Vec<(String, &str, bool)> = Vec::new();
        let stack = recording.stack(sample).unwrap_or_default();
        for frame in stack.frames.iter().take(FRAMES_MAX) {
            let Some(method) = recording.method(frame) else {
                continue;
            };
            let is_java = super::kind(frame.kind).is_java()
                || (frame.kind == dwell_jfr::FrameKind::Native && is_java_class(&method.class));
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
            monitor: monitor(sample.state, &frames),
            is_owned_lock: frames.iter().any(is_lock),
            frames: &frames,
        };
        let name = self.waits.cause(&facts).name();
        self.known.insert(key, name);
        name
    }
}

/// Whether the class of a native frame is that of a native method, and not a library.
fn is_java_class(class: &str) -> bool {
    class.contains('.') && !class.contains(".so") && !class.contains('/')
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
    fn monitors_are_told_by_state_or_by_the_jvms_functions() {
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
    fn native_methods_are_told_from_functions_of_libraries() {
        assert!(is_java_class("jdk.internal.misc.Unsafe"));
        for class in [
            "",
            "libjvm.so",
            "libz.so.1",
            "/usr/lib/libc.so.6",
            "[kernel]",
        ] {
            assert!(!is_java_class(class), "{class}");
        }
    }

    #[test]
    fn locks_are_told_from_conditions() {
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
