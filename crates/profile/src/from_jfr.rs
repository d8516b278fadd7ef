//! A recording as a profile: which samples count, the meaning of their weights, and the recording's
//! data about itself. It knows the reader's types, not the file's bytes. Only this module and its
//! submodules read recordings; the types of their results are in other modules, without knowledge
//! of recordings.

mod alive;
mod allocations;
mod collections;
mod contexts;
mod folds;
mod foreign;
mod host;
mod locks;
mod requests;
mod spans;
mod stacks;
mod stops;
mod stretches;
mod surroundings;
mod thread_time;
mod traced;
mod waits;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use dwell_jfr::kinds::{KINDS, told};
use dwell_jfr::reader::{Method, Recording, Sample as JfrSample, SampleKind, Told};
use dwell_jfr::redact::Secrets;

use self::contexts::Contexts;
use self::folds::Folds;
use self::foreign::{Causes, Clock, Trigger};
use self::stacks::StackNodes;
use crate::builder::Builder;
use crate::frame::FrameKind;
use crate::info::{CpuLimit, CpuUse, Gap, Info, Loss, Measured, SelfCost, Unread};
use crate::library::library;
use crate::profile::{Profile, Unit};
use crate::sample::{Look, Sample};
use crate::stopped_times::Stopped;
use crate::symbol::readable;

/// Said of a file that does not begin where its recording began.
const PART: &str = "a part of a recording: earlier events are not in this file";
/// Said of samples without stacks.
const NO_STACKS: &str = "no sample has a stack, so no method is known: some recorders write none \
                         (native images of GraalVM without support for it)";
/// Events that a recording may repeat are kept up to this number.
const GAPS_MAX: usize = 100_000;

impl Profile {
    /// The profile of a recording.
    ///
    /// A file can hold samples of several events whose weights mean different things; they are not
    /// mixed. The profile uses the first kind that the file has. The order is: CPU time with
    /// weights, running threads of a wall clock with weights, the same two without weights,
    /// occurrences of another event, `jdk.NativeMethodSample`. [`Info::measured`] says which.
    /// [`Info::other_events`] counts the events that are left out. Without weights every sample
    /// counts 1, see [`Unit::Samples`].
    pub fn from_recording(recording: Recording) -> Profile {
        let mut builder = built(recording);
        builder.mark_idle_loops();
        let mut profile = builder.finish();
        profile.derive_endpoints();
        profile
    }

    /// The same with the causes of waits as they were recorded, for checks of the recorder. In a
    /// profile for people, waits of threads for work are idle time as well.
    pub fn as_recorded(recording: Recording) -> Profile {
        built(recording).finish()
    }

    /// Takes secrets out of what the program was started with.
    pub fn redact(&mut self, secrets: &Secrets) {
        let Profile { info, host, .. } = self;
        for text in [
            &mut info.jvm_arguments,
            &mut info.java_arguments,
            &mut host.jvm_arguments,
            &mut host.jvm_flags,
        ] {
            *text = secrets.line(text);
        }
    }
}

fn built(recording: Recording) -> Builder {
    let clock = Clock::of(&recording);
    let taken = Taken::choose(&recording, &clock);
    let mut builder = Builder::default();
    builder.unit = if taken.weighted {
        Unit::Nanoseconds
    } else {
        Unit::Samples
    };
    builder.info = info(&recording);
    builder.bin_ns = recording.bin_ns;
    builder.host = host::host(&recording);
    builder.info.measured = taken.measured();
    tell_clock(&mut builder.info, &clock, &taken);
    builder.losses = losses(&recording, &taken);
    builder.gaps = gaps(&recording);
    stretches::add(&mut builder, &recording);
    builder.cpu_limit = cpu_limit(&recording);
    surroundings::add(&mut builder, &recording);
    let is_part = is_part(&recording);
    let duration_ns = builder.info.duration_ns;
    let part_ns = is_part.then_some(duration_ns);
    builder.self_cost = Counted::find(&recording, part_ns).map(|c| self_cost(&c, duration_ns));
    builder.cpu_use = Counted::find(&recording, part_ns).map(|c| cpu_use(&c));
    builder.warnings.clone_from(&recording.warnings);
    builder.unread = unread(&recording);
    if is_part {
        builder.warnings.push(PART.to_owned());
    }
    builder.info.sample_event = taken.kind.event_name().to_owned();
    builder.info.other_events = taken.others(&recording);
    add_threads(&mut builder, &recording);
    add_samples(&mut builder, &recording, &taken);
    let has_waits = builder.info.event_waits.is_some();
    builder.info.held_events = foreign::held(&recording, has_waits);
    if has_no_stacks(&recording, &taken) {
        builder.warnings.push(NO_STACKS.to_owned());
    }
    builder
}

/// Whether there are samples, and not one of them has a frame.
fn has_no_stacks(recording: &Recording, taken: &Taken<'_>) -> bool {
    let mut samples = recording.samples.iter();
    let mut taken = samples
        .by_ref()
        .filter(|s| taken.takes(recording, s))
        .peekable();
    taken.peek().is_some()
        && taken.all(|s| (recording.stack(s)).is_none_or(|stack| stack.frames.is_empty()))
}

/// Whether dwell made the recording.
fn is_ours(recording: &Recording) -> bool {
    recording.told::<told::Recording>().next().is_some()
}

fn unread(recording: &Recording) -> Option<Unread> {
    let unread = &recording.unread;
    (!unread.is_nothing()).then_some(Unread {
        chunks: unread.chunks,
        bytes: unread.bytes,
        absent: unread.absent,
        is_at_end: unread.is_at_end,
    })
}

/// Takes over another profiler's data about itself.
fn tell_clock(info: &mut Info, clock: &Clock, taken: &Taken<'_>) {
    if info.measured == Measured::Wall {
        info.mode = "wall".to_owned();
    }
    if clock.tool.is_empty() {
        return;
    }
    info.engine.clone_from(&clock.tool);
    info.interval_ns = clock.cpu_ns.or(clock.wall_ns).unwrap_or(0);
    let mode = match (taken.trigger, clock.cpu_ns, clock.wall_ns) {
        (Trigger::Wall, ..) => "wall",
        (Trigger::Event, ..) => &clock.event,
        (_, Some(_), Some(_)) => "cpu,wall",
        (_, None, Some(_)) => "wall",
        (_, Some(_), None) => "cpu",
        (_, None, None) => &clock.event,
    };
    info.mode = mode.to_owned();
}

/// The events that a profile is made of, besides samples. A recording may have far more of others.
pub const EVENTS: &[&str] = &flat::<{ EVENTS_COUNT }>();

/// Those that are not stretches.
const READ: &[&[&str]] = &[
    foreign::ActiveRecording::NAMES,
    foreign::DdprofConfig::NAMES,
    foreign::SamplesLost::NAMES,
    collections::Call::NAMES,
    collections::Collected::NAMES,
    contexts::DdprofEndpoint::NAMES,
    told::Allocations::NAMES,
    told::LostAllocations::NAMES,
    told::Compilers::NAMES,
    told::CpuLimit::NAMES,
    told::CpuLoad::NAMES,
    told::Endpoint::NAMES,
    told::Gap::NAMES,
    alive::Survivor::NAMES,
    told::LiveObjects::NAMES,
    told::Lost::NAMES,
    told::Machine::NAMES,
    told::MonitorOwner::NAMES,
    told::MonitorWaits::NAMES,
    told::Recording::NAMES,
    told::Request::NAMES,
    told::Safepoint::NAMES,
    told::SafepointLate::NAMES,
    told::SelfCost::NAMES,
    told::Span::NAMES,
    told::ThreadTime::NAMES,
    foreign::Setting::NAMES,
    told::CpuInformation::NAMES,
    surroundings::Compiled::NAMES,
    told::JvmInformation::NAMES,
    locks::Wait::NAMES,
    waits::TimedWait::NAMES,
    stops::Begun::NAMES,
    stops::Operation::NAMES,
    traced::Thrown::NAMES,
    traced::ThrownError::NAMES,
    traced::ThrownCount::NAMES,
    traced::Pinned::NAMES,
    traced::OldObject::NAMES,
    traced::MethodCall::NAMES,
    traced::MethodCalls::NAMES,
    told::OsInformation::NAMES,
    allocations::Object::NAMES,
    allocations::BufferedObject::NAMES,
];

const EVENTS_COUNT: usize = {
    let (mut count, mut rest) = (0, READ);
    while let Some((names, more)) = rest.split_first() {
        (count, rest) = (count + names.len(), more);
    }
    let mut rest = KINDS;
    while let Some((kind, more)) = rest.split_first() {
        (count, rest) = (count + kind.names.len(), more);
    }
    count
};

/// All names in one list.
#[allow(clippy::indexing_slicing, reason = "by the compiler alone")]
const fn flat<const COUNT: usize>() -> [&'static str; COUNT] {
    let (mut out, mut at) = ([""; COUNT], 0);
    let (mut read, mut kinds) = (READ, KINDS);
    while at < COUNT {
        let mut names: &[&str] = &[];
        if let Some((first, more)) = read.split_first() {
            (names, read) = (*first, more);
        } else if let Some((kind, more)) = kinds.split_first() {
            (names, kinds) = (kind.names, more);
        }
        while let Some((name, more)) = names.split_first() {
            out[at] = *name;
            (at, names) = (at + 1, more);
        }
    }
    out
}

/// A recording with more samples than this merges equal ones within a bin of time. A report gains
/// less from more samples than they cost.
pub const SAMPLES_MAX: usize = 1_000_000;

/// Which samples a profile is made of.
struct Taken<'c> {
    kind: SampleKind,
    trigger: Trigger,
    weighted: bool,
    clock: &'c Clock,
}

/// In the order in which they are looked for: whether they have weights, and what triggered them.
const TAKEN: [(bool, Trigger, &[SampleKind]); 7] = [
    (true, Trigger::Cpu, CPU_KINDS),
    (true, Trigger::Wall, WALL_KINDS),
    (false, Trigger::Java, CPU_KINDS),
    (false, Trigger::Cpu, CPU_KINDS),
    (false, Trigger::Wall, WALL_KINDS),
    (false, Trigger::Event, CPU_KINDS),
    (false, Trigger::Native, &[SampleKind::Native]),
];
const CPU_KINDS: &[SampleKind] = &[
    SampleKind::Execution,
    SampleKind::CpuTime,
    SampleKind::DatadogCpu,
];
const WALL_KINDS: &[SampleKind] = &[
    SampleKind::WallClock,
    SampleKind::DatadogWall,
    SampleKind::Execution,
];

impl<'c> Taken<'c> {
    fn choose(recording: &Recording, clock: &'c Clock) -> Taken<'c> {
        let taken = |weighted, trigger, kind| Taken {
            kind,
            trigger,
            weighted,
            clock,
        };
        let has = |taken: &Taken<'_>| {
            let mut samples = recording.samples.iter();
            samples.any(|sample| taken.takes(recording, sample))
        };
        let all = TAKEN.into_iter().flat_map(|(weighted, trigger, kinds)| {
            kinds
                .iter()
                .map(move |kind| taken(weighted, trigger, *kind))
        });
        // Of a recording of waits alone, the weights of nothing are times too.
        let none = || taken(true, Trigger::Cpu, SampleKind::Execution);
        all.into_iter().find(has).unwrap_or_else(none)
    }

    fn takes(&self, recording: &Recording, sample: &JfrSample) -> bool {
        sample.kind == self.kind
            && self.clock.trigger(sample) == self.trigger
            && self.weight(recording, sample).is_some() == self.weighted
            && !self.clock.is_wait(sample)
    }

    /// The quantity of the samples.
    fn measured(&self) -> Measured {
        match self.trigger {
            Trigger::Cpu => Measured::CpuTime,
            Trigger::Java => Measured::Java,
            Trigger::Native => Measured::Native,
            Trigger::Wall => Measured::Wall,
            Trigger::Event => Measured::Event(match self.clock.event.as_str() {
                "" => "an event".to_owned(),
                event => event.to_owned(),
            }),
        }
    }

    /// The time that a sample stands for, if that is known.
    fn weight(&self, recording: &Recording, sample: &JfrSample) -> Option<u64> {
        let known = sample.weight_ns;
        known.or_else(|| self.clock.weight_ns(recording, sample))
    }

    /// Whether a sample is a look of another profiler at a thread that waited.
    fn is_look(&self, sample: &JfrSample) -> bool {
        self.clock.is_wait(sample) && self.weighted && self.clock.wall_ns.is_some()
    }

    fn others(&self, recording: &Recording) -> Vec<(String, u64)> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for sample in recording.samples.iter().filter(|sample| {
            !self.takes(recording, sample)
                && sample.kind != SampleKind::Wall
                && !self.is_look(sample)
        }) {
            *counts.entry(sample.kind.event_name()).or_insert(0) += u64::from(sample.count);
        }
        counts
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count))
            .collect()
    }
}

fn add_threads(builder: &mut Builder, recording: &Recording) {
    for thread in &recording.threads {
        let java_name = thread.java_name.as_deref().filter(|name| !name.is_empty());
        let name = match java_name.unwrap_or(&thread.os_name) {
            // Virtual threads have no name unless the program gives them one.
            "" if thread.is_virtual => format!("virtual thread {}", thread.java_tid),
            "" if thread.os_tid != 0 => format!("thread {}", thread.os_tid),
            "" => "[unknown thread]".to_owned(),
            name => name.to_owned(),
        };
        builder.thread(&name, thread.os_tid, thread.java_tid, thread.is_virtual);
    }
}

/// The methods' ids in the profile, by place in the recording.
fn add_methods(builder: &mut Builder, recording: &Recording) -> Vec<u32> {
    // Only where code is not Java are names mangled; a Java method may be called anything.
    let mut native = vec![false; recording.methods.len()];
    for frame in recording.stacks.node_frames() {
        if let Some(native) = native.get_mut(frame.method as usize) {
            *native |= !kind(frame.kind).is_java();
        }
    }
    let libraries = libraries(recording);
    let add = |((method, native), library): ((&Method, bool), Option<Arc<str>>)| match readable(
        &method.name,
    ) {
        (name, rest) if native && name != *method.name => {
            builder.method(&method.class, &name, rest)
        }
        _ => {
            let (name, descriptor) = (&method.name, &method.descriptor);
            builder.method_of(library.as_deref(), &method.class, name, descriptor)
        }
    };
    let methods = recording.methods.iter().zip(native);
    methods.zip(libraries).map(add).collect()
}

/// The library of each method, by place in the recording. A method whose library is unknown in one
/// chunk gets that of the other chunks, if these agree.
fn libraries(recording: &Recording) -> Vec<Option<Arc<str>>> {
    let mut known: HashMap<(&str, &str), Option<Arc<str>>> = HashMap::new();
    let mut of_class: HashMap<&str, Option<Arc<str>>> = HashMap::new();
    let mut own = Vec::with_capacity(recording.methods.len());
    for method in &recording.methods {
        let place = known.entry((&*method.module, &*method.location));
        let library = place.or_insert_with_key(|(module, location)| {
            library(module, location).map(|library| library.into())
        });
        if let Some(library) = &*library {
            let only = of_class.entry(&*method.class);
            let only = only.or_insert_with(|| Some(Arc::clone(library)));
            if only.as_ref().is_some_and(|only| only != library) {
                *only = None;
            }
        }
        own.push(library.clone());
    }
    let methods = recording.methods.iter();
    let of = |(library, method): (Option<Arc<str>>, &Method)| {
        library.or_else(|| of_class.get(&*method.class).cloned().flatten())
    };
    own.into_iter().zip(methods).map(of).collect()
}

fn add_samples(builder: &mut Builder, recording: &Recording, taken: &Taken<'_>) {
    let methods = add_methods(builder, recording);
    let folds = Folds::new(recording);
    let mut nodes = StackNodes::new(&recording.stacks, methods, folds);
    let all = || recording.samples.iter();
    let is_wait = |s: &&JfrSample| s.kind == SampleKind::Wall || taken.is_look(s);
    let is_taken = |s: &&JfrSample| taken.takes(recording, s);
    builder.reserve(
        all().filter(is_taken).count(),
        all().filter(is_wait).count(),
    );
    let mut contexts = Contexts::new(recording);
    for sample in recording
        .samples
        .iter()
        .filter(|sample| taken.takes(recording, sample))
    {
        let node = nodes.node(builder, sample.stack, recording.failure(sample));
        let failure = recording.failure(sample).map(|cause| builder.cause(cause));
        let weight = match taken.weighted {
            true => taken.weight(recording, sample).unwrap_or(0),
            false => foreign::ticks(recording, sample),
        };
        let (time_ns, thread) = (sample.time_ns, sample.thread);
        let context = contexts.of(sample, builder);
        builder.sample(Sample {
            time_ns,
            thread,
            node,
            weight,
            count: sample.count,
            failure,
            context,
        });
    }
    add_looks(builder, recording, &mut contexts, &mut nodes);
    add_foreign_looks(builder, recording, taken, &mut contexts, &mut nodes);
    builder.complete_details();
    stops::add(builder, recording, |builder, place| {
        nodes.node_of_frames(builder, place)
    });
    add_told(builder, recording, taken, &mut nodes, &contexts);
    requests::add(builder, recording, &contexts);
    spans::add(builder, recording);
    thread_time::add(builder, recording);
    Stopped::of(&gaps(recording)).complete(builder);
}

/// Adds events that the runtime recorded on the thread itself: allocated objects, waits for
/// monitors.
fn add_told(
    builder: &mut Builder,
    recording: &Recording,
    taken: &Taken<'_>,
    nodes: &mut StackNodes<'_>,
    contexts: &Contexts<'_>,
) {
    let mut node_of = |builder: &mut Builder, place: Option<u32>, failure: Option<&str>| {
        nodes.node(builder, place.unwrap_or(u32::MAX), failure)
    };
    allocations::add(builder, recording, contexts, &mut node_of);
    alive::add(builder, recording, contexts, &mut node_of);
    waits::add(builder, recording, taken, contexts, &mut node_of);
    locks::add(builder, recording, contexts, &mut node_of);
    collections::add(builder, recording, &mut node_of);
    traced::add(builder, recording, &mut node_of);
}

fn add_looks<'r>(
    builder: &mut Builder,
    recording: &'r Recording,
    contexts: &mut Contexts<'r>,
    nodes: &mut StackNodes<'_>,
) {
    let stopped = Stopped::of(&gaps(recording));
    let cause_stopped = stopped.cause(builder);
    for sample in &recording.samples {
        let place = (sample.wall.filter(|_| sample.kind == SampleKind::Wall))
            .and_then(|place| recording.walls.get(place as usize));
        let Some(wall) = place else { continue };
        let node = nodes.node(builder, sample.stack, recording.failure(sample));
        let cause = wall
            .cause
            .and_then(|place| recording.texts.get(place as usize));
        let cause = builder.cause(cause.map_or("unknown", |text| text));
        let context = contexts.of(sample, builder);
        let detail = wall
            .detail
            .and_then(|place| recording.texts.get(place as usize))
            .filter(|text| !text.is_empty())
            .map(|text| builder.cause(&crate::allocations::readable_class(text)));
        let owner_node = wall
            .owner
            .and(wall.owner_stack)
            .and_then(|place| nodes.node_of_frames(builder, place));
        let look = Look {
            time_ns: sample.time_ns,
            duration_ns: wall.duration_ns,
            thread: sample.thread,
            node,
            cause,
            weight_ns: sample.weight_ns.unwrap_or(0),
            count: wall.count,
            choices: wall.choices,
            context,
            detail,
            owner: wall.owner,
            owner_node,
        };
        for look in stopped.split(&look, cause_stopped) {
            builder.look_on(look, sample.carrier);
        }
    }
}

/// Looks of another profiler at threads that waited.
fn add_foreign_looks<'r>(
    builder: &mut Builder,
    recording: &'r Recording,
    taken: &Taken<'_>,
    contexts: &mut Contexts<'r>,
    nodes: &mut StackNodes<'_>,
) {
    let mut causes = Causes::default();
    for sample in recording.samples.iter().filter(|s| taken.is_look(s)) {
        let node = nodes.node(builder, sample.stack, recording.failure(sample));
        let cause = builder.cause(causes.of(recording, sample.stack, sample.state));
        let context = contexts.of(sample, builder);
        builder.look(Look {
            time_ns: sample.time_ns,
            duration_ns: batch_ns(recording, sample, taken),
            thread: sample.thread,
            node,
            cause,
            weight_ns: taken.weight(recording, sample).unwrap_or(0),
            count: foreign::ticks(recording, sample),
            choices: 0,
            context,
            detail: None,
            owner: None,
            owner_node: None,
        });
    }
}

/// From the first to the last tick of an event: async-profiler writes one event for the ticks in a
/// row that saw the same, with the time of the first.
fn batch_ns(recording: &Recording, sample: &JfrSample, taken: &Taken<'_>) -> u64 {
    let weight_ns = taken.weight(recording, sample).unwrap_or(0);
    match sample.kind {
        SampleKind::WallClock => weight_ns - weight_ns / foreign::ticks(recording, sample).max(1),
        _ => 0,
    }
}

fn kind(kind: dwell_jfr::FrameKind) -> FrameKind {
    match kind {
        dwell_jfr::FrameKind::Interpreted => FrameKind::Interpreted,
        dwell_jfr::FrameKind::C1 | dwell_jfr::FrameKind::Ahead => FrameKind::C1,
        dwell_jfr::FrameKind::C2 => FrameKind::C2,
        dwell_jfr::FrameKind::Inlined => FrameKind::Inlined,
        dwell_jfr::FrameKind::Native => FrameKind::Native,
        dwell_jfr::FrameKind::Vm => FrameKind::Vm,
        dwell_jfr::FrameKind::Kernel => FrameKind::Kernel,
        dwell_jfr::FrameKind::Stub => FrameKind::Stub,
        dwell_jfr::FrameKind::Failed => FrameKind::Failed,
        dwell_jfr::FrameKind::Other => FrameKind::Other,
    }
}

fn info(recording: &Recording) -> Info {
    let start_ns = recording
        .chunks
        .iter()
        .map(|chunk| chunk.start_ns)
        .min()
        .unwrap_or(0);
    let ends = recording
        .chunks
        .iter()
        .map(|chunk| chunk.start_ns.saturating_add(chunk.duration_ns));
    let end_ns = ends.max().unwrap_or(0);
    let ours = recording.told::<told::Recording>().last();
    let jvm = recording.told::<told::JvmInformation>().last();
    let (ours, jvm) = (ours.as_ref(), jvm.as_ref());
    type Ours = told::Recording;
    type Jvm = told::JvmInformation;
    let of_ours = |text: fn(&Ours) -> &Arc<str>| ours.map_or("", |it| text(it)).to_owned();
    let of_jvm = |text: fn(&Jvm) -> &Arc<str>| jvm.map_or("", |it| text(it)).to_owned();
    let is_told = |number: &u64| *number > 0;
    let interval = (ours.map(|it| it.cpu_interval_ns).filter(is_told))
        .or(ours.map(|it| it.wall_interval_ns).filter(is_told));
    let pid = (ours.map(|it| it.pid).filter(is_told)).or(jvm.map(|it| it.pid).filter(is_told));
    Info {
        start_ns,
        duration_ns: end_ns.saturating_sub(start_ns),
        pid: pid.and_then(|pid| i64::try_from(pid).ok()).unwrap_or(0),
        profiler_version: of_ours(|it| &it.version),
        mode: mode(recording),
        engine: of_ours(|it| &it.engine),
        engine_reason: of_ours(|it| &it.engine_reason),
        interval_ns: interval.unwrap_or(0),
        options: options(of_ours(|it| &it.options)),
        jvm_name: of_jvm(|it| &it.jvm_name),
        jvm_version: of_jvm(|it| &it.jvm_version),
        jvm_arguments: of_jvm(|it| &it.jvm_arguments),
        jvm_start_ns: jvm.map_or(0, |it| it.jvm_start_epoch_ms.saturating_mul(1_000_000)),
        java_arguments: of_jvm(|it| &it.java_arguments),
        sample_event: String::new(),
        measured: Measured::default(),
        other_events: Vec::new(),
        held_events: Vec::new(),
        event_waits: None,
    }
}

/// All that was recorded at any time: a recording may be changed while it goes on, and says what it
/// records in each chunk.
fn mode(recording: &Recording) -> String {
    let mut all: Vec<String> = Vec::new();
    for event in recording.told::<told::Recording>() {
        for mode in event.mode.split(',') {
            if !mode.is_empty() && !all.iter().any(|known| known == mode) {
                all.push(mode.to_owned());
            }
        }
    }
    all.join(",")
}

/// The options without paths of the command's own, which say nothing about the recording.
fn options(text: String) -> String {
    let kept: Vec<&str> = text
        .split(',')
        .filter(|it| !it.starts_with("reply=") && !it.starts_with("perf-socket="))
        .collect();
    kept.join(",")
}

fn cause(told: &str) -> String {
    match told {
        "" => "unknown cause".to_owned(),
        cause => cause.to_owned(),
    }
}

/// Losses by cause, summed over the recording, the largest first. Losses of the JDK's samples of
/// CPU time count if the profile consists of those samples, or if it has no other data.
fn losses(recording: &Recording, taken: &Taken<'_>) -> Vec<Loss> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let has_others = || recording.samples.iter().any(|s| taken.takes(recording, s));
    if taken.kind == SampleKind::CpuTime || !has_others() {
        for event in recording.told::<foreign::SamplesLost>() {
            let sum = sums.entry(foreign::SAMPLES_LOST.to_owned()).or_default();
            sum.0 = sum.0.saturating_add(event.samples);
        }
    }
    for event in recording.told::<told::Lost>() {
        let sum = sums.entry(cause(&event.cause)).or_default();
        sum.0 = sum.0.saturating_add(event.samples);
        sum.1 = sum.1.saturating_add(event.weight_ns);
    }
    let loss = |(cause, (samples, weight_ns))| Loss {
        cause,
        samples,
        weight_ns,
    };
    let mut losses: Vec<Loss> = sums.into_iter().map(loss).collect();
    losses.sort_by_key(|loss| std::cmp::Reverse(loss.samples));
    losses
}

fn gaps(recording: &Recording) -> Vec<Gap> {
    let gap = |event: told::Gap| Gap {
        time_ns: event.time_ns,
        duration_ns: event.duration_ns,
        cause: cause(&event.cause),
        samples: event.lost_samples,
        weight_ns: event.lost_weight_ns,
    };
    recording.told().take(GAPS_MAX).map(gap).collect()
}

fn cpu_limit(recording: &Recording) -> Option<CpuLimit> {
    let events = || recording.told::<told::CpuLimit>();
    let last = events().max_by_key(|event| event.time_ns)?;
    Some(CpuLimit {
        quota_ns: last.quota_ns,
        processors: last.processors,
        periods: events().map(|event| event.periods).sum(),
        throttled: events().map(|event| event.throttled).sum(),
        throttled_ns: events().map(|event| event.throttled_ns).sum(),
    })
}

/// Whether the recording began before this file: a bounded one loses its older parts. Then what it
/// counts from its beginning says more than the file holds.
fn is_part(recording: &Recording) -> bool {
    // The bytes written before the first flush in here.
    let first = recording
        .told::<told::SelfCost>()
        .min_by_key(|event| event.time_ns);
    first.is_some_and(|event| event.bytes > 0)
}

/// An event that counts from the recording's beginning: the last one says what was counted.
struct Counted<T> {
    last: T,
    /// In a part of a recording its first one, which has counted what is not in the file.
    first: Option<T>,
}

impl<T: Told> Counted<T> {
    /// In a part of a recording, of this duration, `None` as well if what it counted is less than
    /// half of that: a part may hold only a few flushes, and two of them can follow at once.
    fn find(recording: &Recording, part_ns: Option<u64>) -> Option<Counted<T>> {
        let last = recording.told::<T>().max_by_key(Told::time_ns)?;
        let Some(part_ns) = part_ns else {
            return Some(Counted { last, first: None });
        };
        let first = recording.told::<T>().min_by_key(Told::time_ns);
        let first =
            first.filter(|first| last.time_ns() - first.time_ns() >= part_ns.div_ceil(2).max(1))?;
        Some(Counted {
            last,
            first: Some(first),
        })
    }

    fn count(&self, number: fn(&T) -> u64) -> u64 {
        let before = self.first.as_ref().map_or(0, number);
        number(&self.last).saturating_sub(before)
    }
}

fn self_cost(counted: &Counted<told::SelfCost>, duration_ns: u64) -> SelfCost {
    let last = &counted.last;
    let span_ns = match &counted.first {
        Some(first) => last.time_ns.saturating_sub(first.time_ns),
        None => duration_ns,
    };
    SelfCost {
        span_ns,
        samples: counted.count(|it| it.samples),
        walks: counted.count(|it| it.walks),
        dropped: counted.count(|it| it.dropped),
        bytes: counted.count(|it| it.bytes),
        agent_cpu_ns: counted.count(|it| it.agent_cpu_ns),
        handlers: counted.count(|it| it.handlers),
        handler_cpu_ns: counted.count(|it| it.handler_cpu_ns),
        waited_ns: counted.count(|it| it.waited_ns),
        collections_waited_ns: counted.count(|it| it.collections_waited_ns),
        walk_ns: counted.count(|it| it.walk_ns),
        copies: counted.count(|it| it.copies),
        copied_bytes: counted.count(|it| it.copied_bytes),
        handler_p50_ns: last.handler_p50_ns,
        handler_p90_ns: last.handler_p90_ns,
        handler_p99_ns: last.handler_p99_ns,
        handler_max_ns: last.handler_max_ns,
        memory_bytes: last.memory_bytes,
    }
}

fn cpu_use(counted: &Counted<told::CpuLoad>) -> CpuUse {
    CpuUse {
        since_ns: counted.first.as_ref().map_or(0, |event| event.time_ns),
        user_ns: counted.count(|it| it.process_user_ns),
        system_ns: counted.count(|it| it.process_system_ns),
    }
}
