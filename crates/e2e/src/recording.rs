//! Recordings in the form that tests need: samples with names, sums of weights.

use crate::stats;
use dwell_jfr::FrameKind;
use dwell_jfr::reader::{Recording, Sample, SampleKind, Stack, Value, parse};
use std::collections::BTreeMap;
use std::path::Path;

/// Why a sample has no stack though no walk failed.
const UNSAMPLED: [&str; 2] = ["thread_ended_unsampled", "recording_ended_unsampled"];

/// A recording.
pub struct View {
    /// As our reader gives it.
    pub recording: Recording,
    /// All of its stacks, by place.
    stacks: Vec<Stack>,
}

/// A sample with its names.
#[derive(Clone, Copy)]
pub struct SampleView<'a> {
    recording: &'a Recording,
    /// As it is.
    pub sample: &'a Sample,
    /// Its stack.
    pub stack: &'a Stack,
}

/// The context of a thread, with its texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextView<'a> {
    /// The trace.
    pub trace: u128,
    /// The span.
    pub span: u64,
    /// The local root's span.
    pub root: u64,
    /// The endpoint; empty without one.
    pub endpoint: &'a str,
    /// The labels as the file has them.
    pub labels: &'a str,
}

/// A frame with its names.
#[derive(Clone, Copy, Debug)]
pub struct FrameView<'a> {
    /// Class, or library.
    pub class: &'a str,
    /// Method or function.
    pub name: &'a str,
    /// The method's descriptor; empty for functions.
    pub descriptor: &'a str,
    /// Source line.
    pub line: i32,
    /// How it ran.
    pub kind: FrameKind,
}

impl FrameView<'_> {
    /// Whether it is a Java method, the JDK's native ones included.
    #[must_use]
    pub fn is_java(&self) -> bool {
        matches!(
            self.kind,
            FrameKind::Interpreted
                | FrameKind::C1
                | FrameKind::C2
                | FrameKind::Ahead
                | FrameKind::Inlined
        ) || self.kind == FrameKind::Native && self.class.starts_with("java.")
    }
}

impl<'a> SampleView<'a> {
    /// CPU time it stands for.
    #[must_use]
    pub fn weight_ns(&self) -> u64 {
        self.sample
            .weight_ns
            .expect("every sample of ours has a weight")
    }

    /// Name of its thread: the Java name, else that of the operating system.
    #[must_use]
    pub fn thread(&self) -> &'a str {
        let thread = &self.recording.threads[self.sample.thread as usize];
        thread.java_name.as_deref().unwrap_or(&thread.os_name)
    }

    /// Why its walk failed, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<&'a str> {
        self.recording.failure(self.sample)
    }

    /// The context of its thread, if known.
    #[must_use]
    pub fn context(&self) -> Option<ContextView<'a>> {
        let context = self.recording.context(self.sample)?;
        let text = |place| self.recording.text(place).unwrap_or("");
        Some(ContextView {
            trace: context.trace_id,
            span: context.span_id,
            root: context.local_root_span_id,
            endpoint: text(context.endpoint),
            labels: text(context.labels),
        })
    }

    /// Its frames, leaf first.
    pub fn frames(&self) -> impl DoubleEndedIterator<Item = FrameView<'a>> + use<'a> {
        let recording = self.recording;
        self.stack.frames.iter().map(move |frame| {
            let method = &recording.methods[frame.method as usize];
            FrameView {
                class: &method.class,
                name: &method.name,
                descriptor: &method.descriptor,
                line: frame.line,
                kind: frame.kind,
            }
        })
    }

    /// The frame of this method nearest to the root.
    pub fn under(&self, is: impl Fn(&FrameView<'_>) -> bool) -> Option<FrameView<'a>> {
        self.frames().rev().find(|frame| is(frame))
    }

    /// Whether a method of this name is on the stack.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.frames().any(|frame| frame.name == name)
    }

    /// The stack in one line, for messages.
    #[must_use]
    pub fn line(&self) -> String {
        let text: Vec<String> = self
            .frames()
            .map(|f| format!("{}.{}:{}[{}]", f.class, f.name, f.line, f.kind.name()))
            .collect();
        let text = text.join(" < ");
        let short = text.chars().take(1500).collect::<String>();
        format!("{} {:?}: {short}", self.thread(), self.failure())
    }
}

impl View {
    /// Reads a file, which must have no fault.
    #[must_use]
    pub fn read(path: &Path) -> View {
        let view = View::read_damaged(path);
        must!(
            view.recording.warnings.is_empty(),
            "{}: {:?}",
            path.display(),
            view.recording.warnings
        );
        view
    }

    /// Reads a file as far as possible.
    #[must_use]
    pub fn read_damaged(path: &Path) -> View {
        let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let parsed = parse(&bytes);
        if let Err(error) = &parsed {
            must!(false, "{}: {error}", path.display());
        }
        let recording = parsed.expect("looked at above");
        let stacks = recording.stacks.iter().collect();
        View { recording, stacks }
    }

    /// All samples of CPU time of ours.
    pub fn samples(&self) -> impl Iterator<Item = SampleView<'_>> {
        let recording = &self.recording;
        let samples = recording.samples.iter();
        let of_cpu = samples.filter(|sample| sample.kind != SampleKind::Wall);
        of_cpu.map(move |sample| {
            let stack = &self.stacks[sample.stack as usize];
            SampleView {
                recording,
                sample,
                stack,
            }
        })
    }

    /// Those of threads whose name begins so.
    pub fn of_threads<'a>(&'a self, start: &'a str) -> impl Iterator<Item = SampleView<'a>> {
        self.samples()
            .filter(move |sample| sample.thread().starts_with(start))
    }

    /// Sum of the weights.
    #[must_use]
    pub fn weight_ns(&self) -> u64 {
        self.samples().map(|sample| sample.weight_ns()).sum()
    }

    /// The failed walks by cause, and how many they are.
    #[must_use]
    pub fn failures(&self) -> (usize, BTreeMap<&str, usize>) {
        let mut causes = BTreeMap::new();
        for cause in self.samples().filter_map(|sample| sample.failure()) {
            *causes.entry(cause).or_default() += 1;
        }
        (causes.values().sum(), causes)
    }

    /// Here and in every other test, up to 0.5 % of the walks may fail, within the error of their
    /// number. Failures come in clusters, for example during one collection, but a cluster is far
    /// smaller than this limit. False alarms: one in a million, see [`stats::FALSE_ALARM`]. The
    /// last part of a thread that ended between two samples has a weight but was never a walk.
    #[track_caller]
    pub fn check_failures(&self) {
        let (failed, causes) = self.failures();
        let unsampled = UNSAMPLED
            .iter()
            .filter_map(|cause| causes.get(cause))
            .sum::<usize>();
        let failed = failed - unsampled;
        let all = self.recording.samples.len() - unsampled;
        let percent = 100.0 * failed as f64 / all as f64;
        println!("samples {all}, failed {failed} ({percent:.3} %) {causes:?}");
        assert!(
            !stats::is_more_often(failed, all, 0.005),
            "{failed} of {all} walks failed: {causes:?}"
        );
    }

    /// The process's CPU time since the recording began, as the file itself says.
    #[must_use]
    pub fn cpu_load_ns(&self) -> u64 {
        let event = self
            .recording
            .events_named("dwell.CpuLoad")
            .last()
            .expect("dwell.CpuLoad");
        let part = |name| u64::try_from(event.int(name).expect("a number")).expect("positive");
        part("processUser") + part("processSystem")
    }

    /// Sum of a field over all events of a name.
    #[must_use]
    pub fn sum(&self, event: &str, field: &str) -> u64 {
        let ints = self
            .recording
            .events_named(event)
            .filter_map(|event| event.int(field));
        u64::try_from(ints.sum::<i64>()).expect("positive")
    }

    /// The longest time between two ticks of the wall clock. Sums over a part of the time may be
    /// wrong by this much at either end.
    #[must_use]
    pub fn longest_tick_ns(&self) -> u64 {
        let ticks = self.recording.events_named("dwell.WallTick");
        let spans = ticks.filter_map(|tick| tick.int("span"));
        u64::try_from(spans.max().expect("ticks")).expect("positive")
    }

    /// Samples lost, or not as they should be, for this cause.
    #[must_use]
    pub fn lost(&self, cause: &str) -> u64 {
        let events = self.recording.events_named("dwell.Lost");
        let of_cause = events.filter(|event| event.text("cause") == Some(cause));
        let samples = of_cause.filter_map(|event| event.int("samples"));
        u64::try_from(samples.sum::<i64>()).expect("positive")
    }

    /// CPU time that no sample stands for, because samples were lost.
    #[must_use]
    pub fn lost_ns(&self) -> u64 {
        let events = self.recording.events_named("dwell.Lost");
        let weights = events.filter_map(|event| match event.get("weight") {
            Some(Value::DurationNs(ns) | Value::Int(ns)) => u64::try_from(*ns).ok(),
            _ => None,
        });
        weights.sum()
    }

    /// Whether kernel frames could be had.
    #[must_use]
    pub fn has_kernel_frames(&self) -> bool {
        let event = self.recording.events_named("dwell.Recording").next();
        event
            .and_then(|event| event.text("engine"))
            .is_some_and(|e| e.contains("kernel"))
    }
}
