//! Recordings for other tools: JFR with the events and fields alone that they know.
//!
//! Our own recordings have more: weights, causes and contexts of samples. Readers that do not use
//! the metadata cannot read these fields, and tools that count samples give all of them the same
//! weight. Therefore samples are drawn again, by points at equal distances of the measured time,
//! the first at a random place. A sample that stands for 2.5 intervals gets two or three points,
//! and every sum of points is unbiased.
//!
//! Causes, owners, requests and safepoints are left out, because other tools have no events for
//! them.

use dwell_jfr::writer::{
    self as written, AllocationSample, ChunkClock, ChunkWriter, EXECUTION_SAMPLE_TYPE_ID, Event,
    FrameRef, MethodId, MethodInfo, Origin, Sample, StackId, ThreadInfo, WallClockSample,
};
use dwell_jfr::{FrameKind as Kind, ThreadState};
use dwell_profile::{
    Allocation, CallTree, FrameKind, LiveObject, Measured, MonitorWait, NodeId, Profile, RUNNING,
    Unit, Wall, WallFilter, Window,
};
use std::collections::HashMap;
use std::io::{self, Write};

/// Ticks are nanoseconds.
const TICKS_PER_SECOND: u64 = 1_000_000_000;
/// A chunk ends when its events and constants take this amount of memory.
const CHUNK_BYTES_MAX: usize = 32 << 20;
/// How often that is asked, in events.
const ASKED_EVENTS: u32 = 4096;
/// Least interval: no recording has a shorter one, and a wrong value would create too many points.
const INTERVAL_MIN_NS: u64 = 10_000;
/// The most points of all samples together: for more, the distance grows. Collapsed stacks of other
/// tools may count bytes or nanoseconds.
const POINTS_MAX: u64 = 20_000_000;
/// A wait has an event for each second: tools that show time take an event for an instant.
const PIECE_NS: u64 = 1_000_000_000;
/// Maximum number of pieces of one wait; longer waits get longer pieces.
const PIECES_MAX: u64 = 1_000;

/// Writes a recording that other tools read: `jdk.ExecutionSample`, `jdk.ObjectAllocationSample`,
/// `jdk.JavaMonitorEnter`, and, as async-profiler has them, `profiler.WallClockSample` and
/// `profiler.LiveObject`. Samples of time have the distance `every_ns`, or that of the recording.
///
/// # Errors
///
/// Only those of `out`.
pub fn interchange_jfr(
    profile: &Profile,
    every_ns: Option<u64>,
    out: &mut impl Write,
) -> io::Result<()> {
    let start_ns = profile.info().start_ns;
    let mut file = File::begin(profile, start_ns);
    if let Some(every_ns) = every_ns {
        file.wall_distance = every_ns.max(INTERVAL_MIN_NS);
        if profile.unit() == Unit::Nanoseconds {
            file.distance = file.wall_distance;
        }
    }
    file.settings();
    // Equal for both times, as there are tools that know one distance only.
    let mut cpu = Points::new(file.distance, start_ns);
    let mut clock = Points::new(file.wall_distance, start_ns ^ 1);
    // One kind after the other, wall time last: a reader that many use (Grafana's jfr-parser,
    // pprof 0.0.4) takes the number of points of an event for that of all which follow.
    for sample in profile.samples() {
        file.ran(sample, &mut cpu);
        file.make_room(out)?;
    }
    for allocation in profile.allocations() {
        file.allocated(allocation);
        file.make_room(out)?;
    }
    for object in profile.live().iter().filter(|it| it.has_survived()) {
        file.lives(object);
        file.make_room(out)?;
    }
    for wait in profile.monitor_waits() {
        file.waited(wait);
        file.make_room(out)?;
    }
    if profile.has_wall() {
        for wall in profile.wall(&WallFilter::default()) {
            file.was(&wall, &mut clock);
            file.make_room(out)?;
        }
    }
    file.flush(out)
}

/// The sampled event in the form of async-profiler's setting. `None` for samples of the JDK's
/// recorder, which has no such setting.
fn event(profile: &Profile) -> Option<String> {
    match (&profile.info().measured, profile.unit()) {
        (Measured::CpuTime, _) => Some("cpu".to_owned()),
        (Measured::Wall, Unit::Nanoseconds) => Some("wall".to_owned()),
        (Measured::Wall, Unit::Samples) => Some("seen running".to_owned()),
        (Measured::Native, _) => Some("jdk.NativeMethodSample".to_owned()),
        (Measured::Event(event), _) => Some(event.clone()),
        (Measured::Java, _) => None,
    }
}

/// Points at equal distances.
struct Points {
    distance: u64,
    /// Remaining distance to the next point.
    rest: u64,
}

impl Points {
    /// The first one is at a place that `seed` chooses.
    fn new(distance: u64, seed: u64) -> Points {
        let distance = distance.max(1);
        // The finaliser of splitmix64 makes any number a random one.
        let mut word = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let rest = (word ^ (word >> 31)) % distance;
        Points { distance, rest }
    }

    /// How many there are in the next `weight`.
    fn within(&mut self, weight: u64) -> u64 {
        if weight <= self.rest {
            self.rest -= weight;
            return 0;
        }
        let beyond = weight - self.rest - 1;
        self.rest = self.distance - 1 - beyond % self.distance;
        1 + beyond / self.distance
    }
}

/// The file that is written.
struct File<'p> {
    profile: &'p Profile,
    chunk: ChunkWriter,
    start_ns: u64,
    /// Of two points, in the unit of the recording's weights.
    distance: u64,
    /// The same of wall time, in nanoseconds.
    wall_distance: u64,
    /// Stacks of this chunk.
    stacks: HashMap<(NodeId, bool), StackId>,
    frames: Vec<FrameRef>,
    last_ns: u64,
    /// How often it was asked whether the chunk is full.
    asked: u32,
}

impl<'p> File<'p> {
    fn begin(profile: &'p Profile, start_ns: u64) -> File<'p> {
        let info = profile.info();
        let period_ns = info.event_waits.map_or(0, |waits| waits.period_ns);
        let interval_ns = info.interval_ns.max(INTERVAL_MIN_NS);
        let (distance, wall_distance) = match profile.unit() {
            Unit::Nanoseconds => (interval_ns, interval_ns),
            Unit::Samples => (1, interval_ns.max(period_ns)),
        };
        let distance = distance.max(profile.total().sum / POINTS_MAX);
        File {
            profile,
            chunk: ChunkWriter::plain(clock(start_ns)),
            start_ns,
            distance,
            wall_distance,
            stacks: HashMap::new(),
            frames: Vec::new(),
            last_ns: start_ns,
            asked: 0,
        }
    }

    /// Settings of the recording, in the form of the JDK and async-profiler.
    fn settings(&mut self) {
        let (ticks, info) = (self.ticks(self.start_ns), self.profile.info());
        self.chunk.event(&Event::JvmInformation {
            ticks,
            jvm_name: &info.jvm_name,
            jvm_version: &info.jvm_version,
            jvm_arguments: &info.jvm_arguments,
            jvm_flags: "",
            java_arguments: &info.java_arguments,
            jvm_start_epoch_ms: info.jvm_start_ns / 1_000_000,
            pid: info.pid.unsigned_abs(),
        });
        // The producer, because the meaning of settings depends on it.
        let mut settings = vec![("producer", "dwell convert".to_owned())];
        settings.extend(event(self.profile).map(|event| ("event", event)));
        if self.profile.unit() == Unit::Nanoseconds {
            settings.push(("interval", self.distance.to_string()));
        }
        if self.profile.has_wall() {
            settings.push(("wall", self.wall_distance.to_string()));
        }
        for (name, value) in &settings {
            self.chunk.event(&Event::ActiveSetting {
                ticks,
                event_id: EXECUTION_SAMPLE_TYPE_ID,
                name,
                value,
            });
        }
    }

    /// CPU time, or the other measure of the samples: one event for each point. Samples of a wall
    /// clock are in the wall time, if it is present.
    fn ran(&mut self, sample: &dwell_profile::Sample, points: &mut Points) {
        let is_wall = self.profile.info().measured == Measured::Wall;
        if is_wall && self.profile.has_wall() {
            return;
        }
        let count = points.within(sample.weight);
        if count == 0 {
            return;
        }
        let sample = Sample {
            ticks: self.ticks(sample.time_ns),
            thread: self.thread(sample.thread),
            stack: self.stack(sample.node, sample.failure.is_some()),
            state: match is_wall {
                true => ThreadState::Runnable,
                false => ThreadState::Other,
            },
            ..Sample::default()
        };
        for _ in 0..count {
            self.chunk.execution_sample(&sample);
        }
    }

    /// Wall time: one event for all points of a second.
    fn was(&mut self, wall: &Wall, points: &mut Points) {
        let extent = wall.extent();
        let piece_ns = PIECE_NS.max(extent.duration_ns / PIECES_MAX);
        let mut window = Window::ALL;
        window.from_ns = extent.time_ns;
        loop {
            let to_ns = window.from_ns.saturating_add(piece_ns);
            let is_last = to_ns >= extent.end_ns();
            window.to_ns = if is_last { u64::MAX } else { to_ns };
            let count = points.within(window.part(wall.weight.sum, extent));
            if count > 0 {
                self.was_at(window.from_ns, wall, count);
            }
            if is_last {
                return;
            }
            window.from_ns = to_ns;
        }
    }

    fn was_at(&mut self, time_ns: u64, wall: &Wall, count: u64) {
        let sample = WallClockSample {
            ticks: self.ticks(time_ns),
            thread: self.thread(wall.thread),
            stack: self.stack(wall.node, false),
            state: state(wall.cause),
            count: u32::try_from(count).unwrap_or(u32::MAX),
        };
        self.chunk.wall_clock_sample(&sample);
    }

    fn allocated(&mut self, it: &Allocation) {
        let sample = self.object(it);
        self.chunk.allocation_sample(&sample);
    }

    fn lives(&mut self, it: &LiveObject) {
        let allocated = self.object(&it.allocated);
        self.chunk.live_object(&written::LiveObject {
            allocated,
            age_ns: it.age_ns,
            collections: it.collections,
            snapshot: 0,
        });
    }

    /// It lasts as long as it stands for: tools add up how long waits last.
    fn waited(&mut self, it: &MonitorWait) {
        let node = self.profile.tree().parent(it.node);
        let class = internal_class(self.profile.names().text(it.class));
        let wait = written::MonitorEnter {
            ticks: self.ticks(it.time_ns),
            duration_ticks: it.weight_ns,
            thread: self.thread(it.thread),
            stack: self.stack(node, false),
            class: self.chunk.object_class(&class),
            owner: it.owner.map(|owner| self.thread(owner)),
            ..written::MonitorEnter::default()
        };
        self.chunk.monitor_enter(&wait);
    }

    fn object(&mut self, it: &Allocation) -> AllocationSample<'static> {
        let profile = self.profile;
        // The innermost frame stands for the class, which the event has in a field.
        let node = profile.tree().parent(it.node);
        let class = internal_class(profile.names().text(it.class));
        AllocationSample {
            ticks: self.ticks(it.time_ns),
            thread: self.thread(it.thread),
            stack: self.stack(node, false),
            class: self.chunk.object_class(&class),
            weight_bytes: it.bytes,
            ..AllocationSample::default()
        }
    }

    fn thread(&mut self, thread: u32) -> dwell_jfr::writer::ThreadId {
        let key = u64::from(thread);
        if let Some(known) = self.chunk.thread_id(key) {
            return known;
        }
        let name = self.profile.thread_name(thread);
        let info = match self.profile.threads().get(thread as usize) {
            Some(it) => ThreadInfo {
                os_name: name,
                os_tid: it.os_tid,
                java_name: (it.java_tid != 0).then_some(name),
                java_tid: it.java_tid,
                group: None,
                is_virtual: it.is_virtual,
            },
            None => ThreadInfo::default(),
        };
        self.chunk.thread(key, &info)
    }

    fn stack(&mut self, node: NodeId, is_cut: bool) -> StackId {
        if node == CallTree::ROOT {
            return StackId::NONE;
        }
        if let Some(known) = self.stacks.get(&(node, is_cut)) {
            return *known;
        }
        let profile = self.profile;
        self.frames.clear();
        for key in profile.tree().stack(node) {
            let Some(frame) = profile.frames().get(key as usize) else {
                continue;
            };
            let method = self.method(frame.method, frame.kind);
            self.frames.push(FrameRef {
                method,
                line: i32::try_from(frame.line).unwrap_or(0),
                bci: 0,
                kind: kind(frame.kind),
            });
        }
        let stack = self.chunk.stack(&self.frames, is_cut);
        self.stacks.insert((node, is_cut), stack);
        stack
    }

    fn method(&mut self, method: u32, kind: FrameKind) -> MethodId {
        let key = u64::from(method);
        if let Some(known) = self.chunk.method_id(key) {
            return known;
        }
        let profile = self.profile;
        let text = |name| profile.names().text(name);
        let Some(it) = profile.methods().get(method as usize) else {
            return self.chunk.method(key, &MethodInfo::default());
        };
        let class = match kind.is_java() || text(it.descriptor).starts_with('(') {
            true => text(it.class).replace('.', "/"),
            false => text(it.class).to_owned(),
        };
        let origin = it.library.map(|library| Origin {
            module: "",
            location: text(library),
        });
        let info = MethodInfo {
            class: &class,
            name: text(it.name),
            descriptor: text(it.descriptor),
            origin,
            ..MethodInfo::default()
        };
        self.chunk.method(key, &info)
    }

    /// After an event: ends the chunk if it is full, and begins the next one.
    fn make_room(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.asked += 1;
        if !self.asked.is_multiple_of(ASKED_EVENTS) || self.chunk.memory_bytes() <= CHUNK_BYTES_MAX
        {
            return Ok(());
        }
        self.flush(out)?;
        self.chunk = self.chunk.following(clock(self.start_ns));
        self.stacks.clear();
        self.settings();
        Ok(())
    }

    fn flush(&mut self, out: &mut impl Write) -> io::Result<()> {
        let ticks = self.ticks(self.last_ns);
        out.write_all(&self.chunk.flush(ticks))
    }

    /// Ticks count from the beginning of the recording.
    fn ticks(&mut self, time_ns: u64) -> u64 {
        self.last_ns = self.last_ns.max(time_ns);
        time_ns.saturating_sub(self.start_ns)
    }
}

/// All chunks begin with the recording: none of the kinds is before it.
fn clock(start_ns: u64) -> ChunkClock {
    ChunkClock {
        epoch_ns: start_ns,
        start_ticks: 0,
        ticks_per_second: TICKS_PER_SECOND,
    }
}

/// The state that other tools know. Causes without one become a state that does not run.
fn state(cause: &str) -> ThreadState {
    match cause {
        RUNNING | "runnable" | "throttled" => ThreadState::Runnable,
        _ => ThreadState::Sleeping,
    }
}

fn kind(kind: FrameKind) -> Kind {
    match kind {
        FrameKind::Interpreted => Kind::Interpreted,
        FrameKind::C1 => Kind::C1,
        FrameKind::C2 => Kind::C2,
        FrameKind::Inlined => Kind::Inlined,
        FrameKind::Native => Kind::Native,
        FrameKind::Vm => Kind::Vm,
        FrameKind::Kernel => Kind::Kernel,
        FrameKind::Stub => Kind::Stub,
        FrameKind::Failed => Kind::Failed,
        FrameKind::Other => Kind::Other,
    }
}

/// A class as class files have it, from the way Java has it: `[B` of `byte[]`.
fn internal_class(readable: &str) -> String {
    let element = readable.trim_end_matches("[]");
    let dimensions = (readable.len() - element.len()) / 2;
    if dimensions == 0 {
        return readable.replace('.', "/");
    }
    let code = match element {
        "byte" => "B",
        "char" => "C",
        "double" => "D",
        "float" => "F",
        "int" => "I",
        "long" => "J",
        "short" => "S",
        "boolean" => "Z",
        _ => return format!("{}L{};", "[".repeat(dimensions), element.replace('.', "/")),
    };
    "[".repeat(dimensions) + code
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_jfr::reader::{Recording, SampleKind, Value, parse};
    use dwell_jfr::writer::{ThreadId, WallSample};
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const START_NS: u64 = 1_700_000_000_000_000_000;

    /// The frame of a method, of which `descriptor` says whether it is Java's.
    fn frame(chunk: &mut ChunkWriter, key: u64, class: &str, descriptor: &str) -> FrameRef {
        let info = MethodInfo {
            class,
            name: "run",
            descriptor,
            ..MethodInfo::default()
        };
        FrameRef {
            method: chunk.method(key, &info),
            line: 7,
            bci: 3,
            kind: match descriptor {
                "" => Kind::Vm,
                _ => Kind::C1,
            },
        }
    }

    fn thread(chunk: &mut ChunkWriter) -> ThreadId {
        let info = ThreadInfo {
            os_name: "worker",
            os_tid: 11,
            java_name: Some("worker"),
            java_tid: 12,
            ..ThreadInfo::default()
        };
        chunk.thread(1, &info)
    }

    /// 10,000 bytes of one class, allocated and twice alive, and a wait for a monitor.
    fn objects_and_locks(chunk: &mut ChunkWriter, thread: ThreadId, runs: StackId) {
        let class = chunk.object_class("[Ljava/lang/String;");
        let allocated = AllocationSample {
            ticks: 5,
            thread,
            stack: runs,
            class,
            weight_bytes: 10_000,
            size_bytes: 100,
            ..AllocationSample::default()
        };
        chunk.allocation_sample(&allocated);
        for collections in [0, 2] {
            chunk.live_object(&written::LiveObject {
                allocated,
                age_ns: 7,
                collections,
                snapshot: 1,
            });
        }
        chunk.event(&Event::LiveObjects {
            ticks: 1000 * MS,
            snapshot: 1,
            interval_bytes: 10_000,
            objects: 2,
            one_of: 1,
            samples: 2,
            lost: 0,
            followed_ns: 0,
        });
        chunk.monitor_enter(&written::MonitorEnter {
            ticks: 6,
            duration_ticks: 20_000,
            thread,
            stack: runs,
            class,
            weight_ns: MS,
            ..written::MonitorEnter::default()
        });
    }

    /// 100 ms of CPU time in samples of 4 ms, 1 s of a wait, and more.
    fn ours() -> Profile {
        let mut chunk = ChunkWriter::new(ChunkClock {
            epoch_ns: START_NS,
            start_ticks: 0,
            ticks_per_second: 0,
        });
        let thread = thread(&mut chunk);
        let java = frame(&mut chunk, 1, "a/b/C", "()V");
        let vm = frame(&mut chunk, 2, "libjvm.so", "");
        let runs = chunk.stack(&[java], false);
        let waits = chunk.stack(&[vm, java], false);
        chunk.event(&Event::Recording {
            ticks: 0,
            version: "1",
            pid: 1,
            mode: "cpu,wall,alloc",
            engine: "perf",
            engine_reason: "",
            cpu_interval_ns: 10 * MS,
            wall_interval_ns: 20 * MS,
            options: "",
        });
        for place in 0..25 {
            chunk.execution_sample(&Sample {
                ticks: place * 4 * MS,
                thread,
                stack: runs,
                state: ThreadState::Runnable,
                weight_ns: 4 * MS,
                ..Sample::default()
            });
        }
        chunk.wall_sample(&WallSample {
            ticks: 100 * MS,
            duration_ticks: 980 * MS,
            thread,
            stack: waits,
            cause: "park",
            weight_ns: 1000 * MS,
            count: 50,
            ..WallSample::default()
        });
        objects_and_locks(&mut chunk, thread, runs);
        Profile::from_recording(parse(&chunk.flush(2000 * MS)).unwrap())
    }

    fn theirs(profile: &Profile) -> Recording {
        let mut bytes = Vec::new();
        interchange_jfr(profile, None, &mut bytes).unwrap();
        parse(&bytes).unwrap()
    }

    #[test]
    fn sums_are_those_of_our_recording() {
        let theirs = theirs(&ours());
        // Points of 10 ms.
        let of = |kind| theirs.samples.iter().filter(move |it| it.kind == kind);
        let count = of(SampleKind::Execution).count();
        assert!((10..=11).contains(&count), "{count}");
        let first = &theirs.samples[0];
        let frames = theirs.stack(first).unwrap().frames;
        assert_eq!((frames.len(), frames[0].line), (1, 7));
        // 1.1 s of wall time, of which 0.1 ran.
        let count = |wall: Option<u32>| theirs.walls[wall.unwrap() as usize].count;
        let points: u64 = of(SampleKind::WallClock).map(|it| count(it.wall)).sum();
        assert!((109..=111).contains(&points), "{points}");
        let allocated: Vec<_> = theirs.events_named("jdk.ObjectAllocationSample").collect();
        assert_eq!(allocated.len(), 1);
        assert_eq!(allocated[0].int("weight"), Some(10_000));
        assert_eq!(
            allocated[0].text("objectClass"),
            Some("[Ljava.lang.String;")
        );
        assert_eq!(allocated[0].get("objectSize"), None);
        assert!(
            matches!(allocated[0].get("stackTrace"), Some(Value::Stack(stack))
            if theirs.stacks.get(*stack).unwrap().frames.len() == 1)
        );
    }

    #[test]
    fn samples_have_the_distance_that_is_asked_for() {
        let mut bytes = Vec::new();
        interchange_jfr(&ours(), Some(3 * MS), &mut bytes).unwrap();
        let profile = Profile::from_recording(parse(&bytes).unwrap());
        // 100 ms of CPU time, and 1.1 s of wall time.
        let samples = profile.samples().len();
        assert!((33..=34).contains(&samples), "{samples}");
        let (cpu, wall) = (profile.total().sum, profile.wall_totals().0.sum);
        assert_eq!((cpu, wall % (3 * MS)), (samples as u64 * 3 * MS, 0));
        assert!(wall.abs_diff(1100 * MS) <= 3 * MS, "{wall}");
    }

    #[test]
    fn a_converted_file_has_the_same_times_when_it_is_read() {
        let profile = Profile::from_recording(theirs(&ours()));
        assert_eq!(profile.info().engine, "dwell convert");
        assert_eq!(profile.unit(), Unit::Nanoseconds);
        let near = |ns: u64, ms: u64| assert!(ns.abs_diff(ms * MS) <= 10 * MS, "{ns}");
        near(profile.total().sum, 100);
        let (wall, _) = profile.wall_totals();
        near(wall.sum, 1100);
        assert_eq!(profile.monitor_waits()[0].weight_ns, MS);
        assert_eq!(profile.allocated().sum, 10_000);
    }

    #[test]
    fn more_points_than_a_file_holds_are_drawn_again() {
        let weights = [3 * POINTS_MAX, POINTS_MAX].map(|weight| weight * 1_000);
        let [x, y] = weights;
        let text = format!("weight: {x} {y}\na.A.x a.A.y");
        let mut builder = dwell_profile::text_art::builder(&text);
        builder.unit = Unit::Samples;
        let profile = builder.finish();
        let file = File::begin(&profile, 0);
        let mut points = Points::new(file.distance, 0);
        let counts = weights.map(|weight| points.within(weight));
        assert_eq!(counts.iter().sum::<u64>(), POINTS_MAX);
        assert!(counts[0].abs_diff(3 * POINTS_MAX / 4) <= 1, "{counts:?}");
    }

    #[test]
    fn waits_of_counted_samples_have_points_of_the_period() {
        let mut builder = dwell_profile::text_art::builder("weight: 1 1\na.A.x a.A.y");
        builder.unit = Unit::Samples;
        builder.info.measured = Measured::Java;
        builder.info.start_ns = START_NS;
        builder.info.event_waits = Some(dwell_profile::EventWaits {
            threshold_ns: 0,
            sockets_ns: 0,
            files_ns: 0,
            period_ns: 10 * MS,
        });
        let cause = builder.cause("sleep");
        builder.look(dwell_profile::Look {
            time_ns: START_NS,
            duration_ns: 100 * MS,
            cause,
            weight_ns: 100 * MS,
            count: 5,
            ..dwell_profile::Look::default()
        });
        let theirs = theirs(&builder.finish());
        let points = theirs.walls.iter().map(|wall| wall.count);
        // 100 ms of waiting, and two samples of 10 ms each.
        assert_eq!(points.sum::<u64>(), 12);
    }

    #[test]
    fn converted_file_keeps_the_measure_of_samples() {
        let event = || Measured::Event("page-faults".to_owned());
        for (measured, unit, expected) in [
            (Measured::Java, Unit::Samples, Measured::Java),
            (Measured::Wall, Unit::Nanoseconds, Measured::Wall),
            (event(), Unit::Samples, event()),
            (
                Measured::Native,
                Unit::Samples,
                Measured::Event("jdk.NativeMethodSample".to_owned()),
            ),
        ] {
            let mut builder = dwell_profile::text_art::builder("weight: 30000 30000\na.A.x a.A.y");
            builder.unit = unit;
            builder.info.measured = measured;
            builder.info.start_ns = START_NS;
            let told = Profile::from_recording(theirs(&builder.finish()));
            assert_eq!((&told.info().measured, told.unit()), (&expected, unit));
        }
    }

    #[test]
    fn waits_last_and_objects_are_as_large_as_they_stand_for() {
        let theirs = theirs(&ours());
        let waits: Vec<_> = theirs.events_named("jdk.JavaMonitorEnter").collect();
        assert_eq!(waits.len(), 1);
        assert_eq!(waits[0].int("duration"), Some(MS as i64));
        let class = Some("[Ljava.lang.String;");
        assert_eq!(waits[0].text("monitorClass"), class);
        assert_eq!(waits[0].get("weight"), None);
        // The other object is not yet seen by a GC.
        let live: Vec<_> = theirs.events_named("profiler.LiveObject").collect();
        assert_eq!(live.len(), 1);
        assert_eq!(live[0].int("allocationSize"), Some(10_000));
        assert_eq!(live[0].text("objectClass"), class);
    }

    #[test]
    fn long_wait_has_its_points_in_each_second() {
        let mut builder = dwell_profile::text_art::builder("a.A.x");
        builder.info.start_ns = 0;
        builder.info.interval_ns = 10 * MS;
        let cause = builder.cause("park");
        builder.look(dwell_profile::Look {
            time_ns: 500 * MS,
            duration_ns: 10_000 * MS,
            cause,
            weight_ns: 20_000 * MS,
            count: 1000,
            ..dwell_profile::Look::default()
        });
        let theirs = theirs(&builder.finish());
        let waits = theirs.samples.iter();
        let waits = waits.filter(|it| it.kind == SampleKind::WallClock && it.time_ns > 0);
        let seconds: Vec<(u64, u64)> = waits
            .map(|it| {
                let wall = it.wall.and_then(|place| theirs.walls.get(place as usize));
                (it.time_ns / MS, wall.unwrap().count)
            })
            .collect();
        let expected: Vec<(u64, u64)> = (0..10).map(|at| (500 + 1000 * at, 200)).collect();
        assert_eq!(seconds, expected);
    }

    #[test]
    fn nothing_of_ours_is_in_it() {
        let theirs = theirs(&ours());
        let names: Vec<&str> = theirs.events.iter().map(|e| e.name.as_ref()).collect();
        assert!(
            names.iter().all(|name| !name.starts_with("dwell.")),
            "{names:?}"
        );
    }

    #[test]
    fn classes_are_written_as_in_class_files() {
        for (readable, internal) in [
            ("byte[]", "[B"),
            ("long[][]", "[[J"),
            ("java.lang.String", "java/lang/String"),
            ("java.lang.String[]", "[Ljava/lang/String;"),
            ("", ""),
        ] {
            assert_eq!(internal_class(readable), internal);
        }
    }

    proptest! {
        #[test]
        fn points_are_at_equal_distances(
            distance in 0..1000_u64,
            seed: u64,
            weights in prop::collection::vec(0..5000_u64, 0..50),
        ) {
            let mut points = Points::new(distance, seed);
            let count: u64 = weights.iter().map(|weight| points.within(*weight)).sum();
            let sum: u64 = weights.iter().sum();
            let distance = distance.max(1);
            prop_assert!(count >= sum / distance && count <= sum.div_ceil(distance));
        }
    }
}
