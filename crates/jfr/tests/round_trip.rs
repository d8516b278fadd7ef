//! The reader gets the data that the writer wrote, for any names, any order of flushes and any
//! place at which the file breaks off.

mod common;

use common::{DEMO_EVENTS, Demo, START_TICKS, WEIGHT_NS, append, clock};
use dwell_jfr::reader::{self, EventFilter, Options, Recording, SampleKind, Value};
use dwell_jfr::writer::{
    AllocationSample, ChunkClock, ChunkWriter, Context, FrameRef, LiveObject, MethodInfo,
    MonitorEnter, Origin, Sample, ThreadInfo,
};
use dwell_jfr::{FrameKind, ThreadState};
use proptest::prelude::*;

/// The expected content, in the words of the model.
#[derive(Debug, Clone)]
struct Wanted {
    thread: (String, i64, Option<String>, i64, Option<String>, bool),
    frames: Vec<(String, String, i32, i32, FrameKind)>,
    truncated: bool,
    state: ThreadState,
    weight_ns: u64,
    ticks_after_start: u64,
    failure: Option<&'static str>,
    has_carrier: bool,
    flush_after: bool,
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-c]{1,3}",
        "(java|com)/[a-c]{1,2}/[A-C]{1,2}",
        "\\PC{0,12}",
        proptest::collection::vec(any::<char>(), 0..12).prop_map(|c| c.into_iter().collect()),
        "[\\[();/L.]{1,6}",
        "é{200,300}",
    ]
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let kinds = proptest::sample::select(FrameKind::ALL.as_slice());
    // Mostly short numbers, which are read four at once.
    let number = || prop_oneof![3 => -1..100i32, 1 => any::<i32>()];
    let frame = (names(), names(), number(), number(), kinds);
    let option = |strategy| proptest::option::of(strategy);
    let thread = (
        names(),
        any::<i64>(),
        option(names()),
        any::<i64>(),
        option(names()),
        any::<bool>(),
    );
    (
        (
            thread,
            proptest::collection::vec(frame, 0..8),
            any::<bool>(),
        ),
        proptest::sample::select(ThreadState::ALL.as_slice()),
        (any::<u64>(), 0..1_u64 << 40),
        proptest::option::of(proptest::sample::select(
            ["no frame pointer", "timeout"].as_slice(),
        )),
        (any::<bool>(), any::<bool>()),
    )
        .prop_map(
            |((thread, frames, truncated), state, times, failure, flags)| Wanted {
                thread,
                frames,
                truncated,
                state,
                weight_ns: times.0,
                ticks_after_start: times.1,
                failure,
                has_carrier: flags.0,
                flush_after: flags.1,
            },
        )
}

fn write(wanted: &[Wanted], chunks: usize) -> Vec<u8> {
    let mut file = Vec::new();
    for part in wanted.chunks(wanted.len().div_ceil(chunks).max(1)) {
        let start = file.len();
        let mut writer = ChunkWriter::new(clock());
        for (place, want) in part.iter().enumerate() {
            add(&mut writer, place as u64, want);
            if want.flush_after {
                append(&mut file, start, &mut writer, START_TICKS);
            }
        }
        append(&mut file, start, &mut writer, START_TICKS);
    }
    file
}

fn add(writer: &mut ChunkWriter, place: u64, want: &Wanted) {
    let (os_name, os_tid, java_name, java_tid, group, is_virtual) = &want.thread;
    let info = ThreadInfo {
        os_name,
        os_tid: *os_tid,
        java_name: java_name.as_deref(),
        java_tid: *java_tid,
        group: group.as_deref(),
        is_virtual: *is_virtual,
    };
    let thread = writer.thread(place, &info);
    let frames: Vec<_> = want
        .frames
        .iter()
        .enumerate()
        .map(|(depth, (class, name, line, bci, kind))| {
            let info = MethodInfo {
                class,
                name,
                descriptor: "(I)V",
                modifiers: 1,
                hidden: false,
                origin: origin(class, name),
            };
            let method = writer.method(place << 8 | depth as u64, &info);
            FrameRef {
                method,
                line: *line,
                bci: *bci,
                kind: *kind,
            }
        })
        .collect();
    let stack = writer.stack(&frames, want.truncated);
    let (endpoint, labels) = texts(want);
    writer.execution_sample(&Sample {
        ticks: START_TICKS + want.ticks_after_start,
        thread,
        carrier: want.has_carrier.then_some(thread),
        stack,
        state: want.state,
        weight_ns: want.weight_ns,
        failure: want.failure,
        context: context(want, &endpoint, labels).as_ref(),
    });
}

fn texts(want: &Wanted) -> (String, &'static str) {
    let labels = if want.weight_ns & 2 == 0 {
        ""
    } else {
        "a=b,c=%2C"
    };
    (format!("GET /{}", want.weight_ns % 5), labels)
}

/// All kinds of contexts, as the weight wants it.
fn context<'a>(want: &Wanted, endpoint: &'a str, labels: &'a str) -> Option<Context<'a>> {
    let number = want.weight_ns;
    (number & 1 == 1).then_some(Context {
        trace_id: u128::from(number) << 64 | u128::from(want.ticks_after_start),
        span_id: number,
        local_root_span_id: number >> 1,
        endpoint: if number & 4 == 0 { endpoint } else { "" },
        labels,
    })
}

fn compare(recording: &Recording, wanted: &[Wanted]) {
    assert_eq!(recording.warnings, [""; 0]);
    assert_eq!(recording.samples.len(), wanted.len());
    for (sample, want) in recording.samples.iter().zip(wanted) {
        assert_eq!(sample.time_ns, common::EPOCH_NS + want.ticks_after_start);
        assert_eq!(sample.weight_ns, Some(want.weight_ns));
        assert_eq!(sample.state, want.state);
        assert_eq!(recording.failure(sample), want.failure);
        let (endpoint, labels) = texts(want);
        let found = recording.context(sample).map(|found| Context {
            trace_id: found.trace_id,
            span_id: found.span_id,
            local_root_span_id: found.local_root_span_id,
            endpoint: recording.text(found.endpoint).unwrap_or(""),
            labels: recording.text(found.labels).unwrap_or(""),
        });
        assert_eq!(found, context(want, &endpoint, labels));
        assert_eq!(sample.carrier, want.has_carrier.then_some(sample.thread));
        assert_eq!((sample.kind, sample.biased), (SampleKind::Execution, false));
        let thread = recording.thread(sample).unwrap();
        let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_owned);
        let found = (
            thread.os_name.to_string(),
            thread.os_tid,
            text(&thread.java_name),
            thread.java_tid,
            text(&thread.group),
            thread.is_virtual,
        );
        assert_eq!(found, want.thread);
        let stack = recording.stack(sample).unwrap();
        assert_eq!(stack.truncated, want.truncated);
        assert_eq!(stack.frames.len(), want.frames.len());
        for (frame, (class, name, line, bci, kind)) in stack.frames.iter().zip(&want.frames) {
            let method = recording.method(frame).unwrap();
            assert_eq!((&*method.class, &**name), (&*shown(class), &*method.name));
            assert_eq!(&*method.descriptor, "(I)V");
            let origin = origin(class, name).unwrap_or_default();
            let found = (&*method.module, &*method.location);
            assert_eq!(found, (origin.module, origin.location));
            // Native code has neither; less than nothing is not written.
            let least = match kind {
                FrameKind::Interpreted | FrameKind::C1 | FrameKind::C2 => i32::MIN,
                FrameKind::Inlined | FrameKind::Ahead => i32::MIN,
                _ => 0,
            };
            let place = ((*line).max(least), (*bci).max(least));
            assert_eq!(((frame.line, frame.bci), frame.kind), (place, *kind));
        }
    }
}

/// Of some classes it is known where they are from, of some a part of that.
fn origin<'a>(class: &'a str, name: &'a str) -> Option<Origin<'a>> {
    let location = class;
    match (class.len() + name.len()) % 3 {
        0 => None,
        1 => Some(Origin {
            module: name,
            location,
        }),
        _ => Some(Origin {
            module: "",
            location,
        }),
    }
}

/// A class name as the reader gives it. Of names that begin with a bracket, only those that
/// also end in one are kept.
fn shown(class: &str) -> String {
    let inner = class
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let inner = inner.or(class
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')')));
    match (inner, class.strip_prefix('[')) {
        (Some(inner), _) => format!("[{inner}]"),
        (None, Some(rest)) => shown(&format!("({rest}")),
        (None, None) if class.starts_with('/') => class.to_owned(),
        (None, None) => class.replace('/', "."),
    }
}

fn assert_distinct<T: PartialEq + std::fmt::Debug>(items: &[T]) {
    for (place, item) in items.iter().enumerate() {
        assert!(!items[..place].contains(item), "twice: {item:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_names_in_any_flushes_and_chunks_come_back(
        wanted in proptest::collection::vec(wanted(), 0..24),
        chunks in 1_usize..4,
    ) {
        let recording = reader::parse(&write(&wanted, chunks));
        if wanted.is_empty() {
            prop_assert!(recording.is_err()); // no chunk was written at all
        } else {
            let recording = recording.unwrap();
            compare(&recording, &wanted);
            assert_distinct(&recording.threads);
            assert_distinct(&recording.methods);
            assert_distinct(&recording.stacks.iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_changed_byte_never_panics(place in any::<prop::sample::Index>(), value in any::<u8>()) {
        let mut file = demo_flushes(3).pop().unwrap();
        let place = place.index(file.len());
        file[place] = value;
        let _ = reader::parse(&file);
    }

    /// Wherever a file of several chunks is cut, the reader gets all data before the cut and
    /// reports the missing bytes exactly. Only a cut between two chunks cannot be detected.
    #[test]
    fn cut_inside_chunk_is_reported(
        rounds in prop::collection::vec(1usize..5, 1..4),
        cut in any::<prop::sample::Index>(),
        threads in 0usize..4,
    ) {
        let chunks: Vec<Vec<u8>> = rounds.iter().map(|&rounds| demo_flushes(rounds).pop().unwrap())
            .collect();
        let file = chunks.concat();
        let whole = reader::parse(&file).unwrap();
        prop_assert!(whole.unread.is_nothing() && whole.unread.is_at_end);
        let cut = cut.index(file.len() + 1);
        let ends = chunks.iter().scan(0, |end, chunk| {
            *end += chunk.len();
            Some(*end)
        });
        let ends: Vec<usize> = ends.collect();
        let last = ends.iter().copied().filter(|&end| end <= cut).max().unwrap_or(0);
        let options = Options { threads, ..Options::default() };
        let read = reader::parse_from(&mut std::io::Cursor::new(&file[..cut]), &options);
        let Ok(read) = read else {
            // Nothing can be read without what describes the first chunk.
            prop_assert_eq!(last, 0);
            return Ok(());
        };
        let unread = read.unread;
        let is_told = !unread.is_nothing() && unread.is_at_end;
        prop_assert!(is_told != ends.contains(&cut), "{unread:?} at {cut}, ends {ends:?}");
        prop_assert!(unread.bytes <= (cut - last) as u64, "{unread:?} at {cut}");
        if unread.chunks > 0 {
            let end = ends.iter().copied().find(|&end| end > cut).unwrap();
            prop_assert_eq!((unread.chunks, unread.absent), (1, (end - cut) as u64));
        }
        prop_assert!(read.samples.len() <= whole.samples.len());
        for (sample, wanted) in read.samples.iter().zip(&whole.samples) {
            prop_assert_eq!((sample.time_ns, sample.weight_ns), (wanted.time_ns, wanted.weight_ns));
        }
        let full = chunks.iter().zip(&ends).filter(|(_, end)| **end <= cut);
        let full: usize = full.map(|(chunk, _)| reader::parse(chunk).unwrap().samples.len()).sum();
        prop_assert!(read.samples.len() >= full, "{} of {full}", read.samples.len());
    }

    /// For any damage to a file, reading it chunk by chunk, on one thread or on several, gives the
    /// result of reading it at once.
    #[test]
    fn chunk_by_chunk_is_as_at_once(
        place in any::<prop::sample::Index>(),
        value in any::<u8>(),
        cut in any::<prop::sample::Index>(),
        garbage in 0usize..40,
        damage in 0u8..4,
        threads in 0usize..4,
        samples_max in prop::option::of(1usize..20),
    ) {
        let chunk = demo_flushes(2).pop().unwrap();
        let longer = demo_flushes(5).pop().unwrap();
        let mut file = [&chunk[..], &[value; 40][..garbage * usize::from(damage == 3)], &longer[..],
            &chunk[..]].concat();
        match damage {
            1 => {
                let place = place.index(file.len());
                file[place] = value;
            }
            2 => file.truncate(cut.index(file.len())),
            _ => {}
        }
        let options = Options { threads, samples_max, ..Options::default() };
        let at_once = reader::parse_with(&file, &options);
        let by_chunk = reader::parse_from(&mut std::io::Cursor::new(&file), &options);
        match at_once {
            Ok(recording) => prop_assert_eq!(recording, by_chunk.unwrap()),
            Err(error) => prop_assert_eq!(error.to_string(), by_chunk.unwrap_err().to_string()),
        }
    }
}

/// The file as it is after each of `count` flushes.
fn demo_flushes(count: usize) -> Vec<Vec<u8>> {
    let mut demo = Demo::new(clock());
    let mut file = Vec::new();
    let mut states = Vec::new();
    for round in 0..count {
        for place in 0..=round % 4 {
            demo.sample(place);
        }
        let now = demo.now();
        append(&mut file, 0, demo.writer(), now);
        states.push(file.clone());
    }
    states
}

#[test]
fn every_flush_leaves_a_whole_file() {
    let mut samples = 0;
    for (round, file) in demo_flushes(6).iter().enumerate() {
        samples += round % 4 + 1;
        let recording = reader::parse(file).unwrap();
        assert_eq!(recording.warnings, [""; 0]);
        assert_eq!(recording.samples.len(), samples);
        assert_eq!(recording.events.len(), DEMO_EVENTS);
        assert!(recording.chunks[0].complete);
        assert_eq!(recording.chunks[0].size, file.len() as u64);
    }
}

#[test]
fn a_file_cut_at_any_byte_gives_all_samples_before_the_cut() {
    let states = demo_flushes(4);
    let whole = reader::parse(&states[3]).unwrap();
    // Inside header and metadata one cut is like the other.
    let events = states[0].len() - 2000;
    for cut in (0..events).step_by(61).chain(events..states[3].len()) {
        let torn = reader::parse(&states[3][..cut]);
        let flushed = states.iter().filter(|state| state.len() <= cut).count();
        let Ok(torn) = torn else {
            assert_eq!(flushed, 0, "nothing at {cut}");
            continue;
        };
        assert!(!torn.warnings.is_empty(), "silent at {cut}");
        let absent = (states[3].len() - cut) as u64;
        assert_eq!((torn.unread.chunks, torn.unread.absent), (1, absent));
        assert!(torn.unread.is_at_end, "{:?} at {cut}", torn.unread);
        // It lasts as long as what is there of it.
        let times = torn.samples.iter().map(|sample| sample.time_ns);
        let times = times.chain(torn.events.iter().map(|event| event.time_ns));
        let lasted = times.max().unwrap_or(0).saturating_sub(common::EPOCH_NS);
        assert_eq!(torn.chunks[0].duration_ns, lasted, "at {cut}");
        assert!(lasted <= whole.chunks[0].duration_ns, "at {cut}");
        let expected = flushed.checked_sub(1).map_or(0, |last| {
            reader::parse(&states[last]).unwrap().samples.len()
        });
        assert!(
            torn.samples.len() >= expected,
            "{} samples at {cut}",
            torn.samples.len()
        );
        for (sample, wanted) in torn.samples.iter().zip(&whole.samples).take(expected) {
            assert_eq!(
                torn.stack(sample).map(|s| s.frames.len()),
                whole.stack(wanted).map(|s| s.frames.len())
            );
            assert_eq!(sample.time_ns, wanted.time_ns);
        }
    }
}

#[test]
fn bytes_that_no_header_covers_are_skipped_with_a_warning() {
    let states = demo_flushes(2);
    let before = reader::parse(&states[0]).unwrap();
    for end in states[0].len() + 1..=states[1].len() {
        let mut file = states[1][..end].to_vec();
        file[..68].copy_from_slice(&states[0][..68]); // died before the header was written
        let recording = reader::parse(&file).unwrap();
        assert_eq!(recording.samples, before.samples);
        assert_eq!(recording.warnings.len(), 1, "{:?}", recording.warnings);
        let beyond = (end - states[0].len()) as u64;
        let unread = recording.unread;
        assert_eq!(
            (unread.bytes, unread.absent, unread.is_at_end),
            (beyond, 0, true)
        );
        file.extend_from_slice(&states[0]); // and was started again on the same file
        let recording = reader::parse(&file).unwrap();
        assert_eq!(recording.samples.len(), 2 * before.samples.len());
        assert_eq!(recording.chunks.len(), 2);
        let unread = recording.unread;
        assert_eq!((unread.bytes, unread.is_at_end), (beyond, false));
    }
}

/// Where each event of a chunk begins.
fn events_of(chunk: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 68;
    while at < chunk.len() {
        found.push(at);
        let bytes = chunk[at..].iter().enumerate();
        let end = chunk[at..].iter().position(|byte| *byte < 0x80).unwrap();
        at += bytes.take(end + 1).fold(0, |size, (place, byte)| {
            size | usize::from(byte & 0x7f) << (7 * place)
        });
    }
    found
}

#[test]
fn a_damaged_chunk_lasts_no_longer_than_its_header_says() {
    let mut file = demo_flushes(2).pop().unwrap();
    let last = *events_of(&file).last().unwrap();
    file[40..48].copy_from_slice(&7_u64.to_be_bytes());
    file[last] = 0; // no event is of no bytes
    let recording = reader::parse(&file).unwrap();
    assert_eq!(recording.unread.bytes, (file.len() - last) as u64);
    assert_eq!(recording.chunks[0].duration_ns, 7);
}

#[test]
fn events_of_types_that_are_not_described_are_counted() {
    let mut file = demo_flushes(1).pop().unwrap();
    assert_eq!(reader::parse(&file).unwrap().warnings, Vec::<String>::new());
    // A size of four bytes, the type 8191 and one byte more: twice.
    file.extend_from_slice(&[4, 0xff, 0x3f, 0, 4, 0xff, 0x3f, 0]);
    let size = file.len() as u64;
    file[8..16].copy_from_slice(&size.to_be_bytes());
    let warnings = reader::parse(&file).unwrap().warnings;
    assert_eq!(
        warnings,
        ["events of types that the file does not describe: 2"]
    );
}

#[test]
fn chunks_share_threads_methods_and_stacks() {
    let one = demo_flushes(4).pop().unwrap();
    let single = reader::parse(&one).unwrap();
    let double = reader::parse(&[one.as_slice(), one.as_slice()].concat()).unwrap();
    assert_eq!(double.chunks.len(), 2);
    assert_eq!(double.samples.len(), 2 * single.samples.len());
    assert_eq!(double.threads, single.threads);
    assert_eq!(double.methods, single.methods);
    assert_eq!(double.stacks, single.stacks);
    assert_eq!(double.failures, single.failures);
    assert_eq!(
        double.counts["jdk.ExecutionSample"],
        2 * single.counts["jdk.ExecutionSample"]
    );
}

#[test]
fn events_come_back_with_their_units() {
    let file = demo_flushes(1).pop().unwrap();
    let recording = reader::parse(&file).unwrap();
    let event = |name| recording.events_named(name).next().unwrap();
    let gap = event("dwell.Gap");
    assert_eq!(gap.time_ns, common::EPOCH_NS);
    assert_eq!(gap.get("duration"), Some(&Value::DurationNs(1_500_000_000)));
    assert_eq!(gap.text("cause"), Some("disk full"));
    assert_eq!(gap.int("lostSamples"), Some(150));
    let start = Some(&Value::TimeNs(common::EPOCH_NS - 1_000_000_000));
    assert_eq!(event("jdk.JVMInformation").get("jvmStartTime"), start);
    assert_eq!(event("jdk.JVMInformation").text("jvmFlags"), Some(""));
    assert_eq!(event("jdk.CPUInformation").int("hwThreads"), Some(8));
    assert_eq!(
        event("dwell.Recording").int("cpuInterval"),
        Some(10_000_000)
    );
    let only = |names: &[&str]| {
        let options = Options {
            events: EventFilter::Only(names),
            ..Options::default()
        };
        reader::parse_with(&file, &options).unwrap()
    };
    assert_eq!(only(&["dwell."]).events.len(), 6);
    assert_eq!(only(&["dwell.Gap", "jdk.OSInformation"]).events.len(), 2);
    let none = only(&[]);
    assert_eq!(
        (none.events.len(), none.samples.len()),
        (0, recording.samples.len())
    );
    assert_eq!(none.counts, recording.counts);
    let count = |name: &str| none.counts.get(name).copied();
    let samples = recording.samples.len() as u64;
    assert_eq!(count("jdk.ExecutionSample"), Some(samples));
    assert_eq!(
        (count("dwell.Gap"), count("jdk.GarbageCollection")),
        (Some(1), None)
    );
}

/// Their start may be before that of their chunk.
#[test]
fn live_objects_come_back_with_their_ages() {
    let mut demo = Demo::new(clock());
    let context = common::CONTEXT;
    let writer = demo.writer();
    let thread = writer.thread(77, &ThreadInfo::default());
    let class = writer.object_class("[B");
    writer.live_object(&LiveObject {
        allocated: AllocationSample {
            ticks: START_TICKS - 5,
            thread,
            class,
            weight_bytes: 524_296,
            size_bytes: 16,
            context: Some(&context),
            ..AllocationSample::default()
        },
        age_ns: 12_345,
        collections: 3,
        snapshot: 2,
    });
    let bytes = demo.flush();
    let recording = reader::parse(&bytes).unwrap();
    let all: Vec<_> = recording.events_named("dwell.LiveObject").collect();
    let [object] = all[..] else {
        panic!("{all:?}");
    };
    assert!(object.time_ns < recording.chunks[0].start_ns);
    assert_eq!(object.text("objectClass"), Some("[B"));
    for (field, value) in [
        ("weight", 524_296),
        ("objectSize", 16),
        ("age", 12_345),
        ("collections", 3),
        ("snapshot", 2),
    ] {
        assert_eq!(object.int(field), Some(value), "{field}");
    }
    assert_eq!(object.text("endpoint"), Some(context.endpoint));
    assert_eq!(object.text("failure"), None);
}

#[test]
fn allocations_come_back_with_their_classes() {
    let mut demo = Demo::new(clock());
    let context = common::CONTEXT;
    let writer = demo.writer();
    let thread = writer.thread(77, &ThreadInfo::default());
    let method = MethodInfo {
        class: "a/A",
        name: "make",
        descriptor: "()V",
        ..MethodInfo::default()
    };
    let frame = FrameRef {
        method: writer.method(77, &method),
        line: 7,
        bci: 3,
        kind: FrameKind::C2,
    };
    let stack = writer.stack(&[frame], false);
    let classes = ["[B", "java/lang/String", "[[La/B;", "[other classes]"];
    for (place, name) in classes.into_iter().enumerate() {
        let class = writer.object_class(name);
        assert_eq!(writer.object_class(name), class);
        writer.allocation_sample(&AllocationSample {
            ticks: START_TICKS + 5,
            thread,
            carrier: None,
            stack,
            class,
            weight_bytes: 524_296,
            size_bytes: 16,
            failure: (place == 3).then_some("timeout"),
            context: (place == 0).then_some(&context),
        });
    }
    let bytes = demo.flush();
    let recording = reader::parse(&bytes).unwrap();
    let samples: Vec<_> = recording
        .events_named("jdk.ObjectAllocationSample")
        .collect();
    let told = samples.iter().map(|it| it.text("objectClass").unwrap());
    let told: Vec<_> = told.collect();
    assert_eq!(
        told,
        ["[B", "java.lang.String", "[[La.B;", "[other classes]"]
    );
    assert_eq!(samples[0].int("weight"), Some(524_296));
    assert_eq!(samples[0].int("objectSize"), Some(16));
    assert_eq!(samples[0].text("endpoint"), Some(context.endpoint));
    assert_eq!(samples[0].text("spanId"), Some("b7ad6b7169203331"));
    assert_eq!(samples[3].text("failure"), Some("timeout"));
    let Some(Value::Stack(stack)) = samples[0].get("stackTrace") else {
        panic!("{:?}", samples[0]);
    };
    let frame = recording.stacks.get(*stack).unwrap().frames[0];
    assert_eq!(&*recording.method(&frame).unwrap().name, "make");
    assert!(matches!(
        samples[0].get("eventThread"),
        Some(Value::Thread(_))
    ));
}

#[test]
fn waits_for_monitors_come_back_with_class_and_owner() {
    let mut demo = Demo::new(clock());
    let context = common::CONTEXT;
    let writer = demo.writer();
    let [thread, owner] = [77, 78].map(|os_tid| {
        let info = ThreadInfo {
            os_tid,
            ..ThreadInfo::default()
        };
        writer.thread(os_tid as u64, &info)
    });
    let class = writer.object_class("app/Ledger");
    for (owner, weight_ns) in [(Some(owner), 1_000_000), (None, 5_000_000)] {
        writer.monitor_enter(&MonitorEnter {
            ticks: START_TICKS + 5,
            duration_ticks: 10,
            thread,
            class,
            owner,
            address: 0x7fcd_2800_1a30,
            weight_ns,
            context: Some(&context),
            ..MonitorEnter::default()
        });
    }
    let bytes = demo.flush();
    let recording = reader::parse(&bytes).unwrap();
    let waits: Vec<_> = recording.events_named("jdk.JavaMonitorEnter").collect();
    assert_eq!(waits.len(), 2);
    assert_eq!(waits[0].text("monitorClass"), Some("app.Ledger"));
    assert_eq!(waits[0].int("address"), Some(0x7fcd_2800_1a30));
    assert_eq!(waits[0].int("weight"), Some(1_000_000));
    assert_eq!(waits[0].text("endpoint"), Some(context.endpoint));
    let (waiter, had) = (waits[0].get("eventThread"), waits[0].get("previousOwner"));
    assert!(matches!(had, Some(Value::Thread(_))) && waiter != had);
    assert!(!matches!(
        waits[1].get("previousOwner"),
        Some(Value::Thread(_))
    ));
}

#[test]
fn clocks_of_any_rate_give_the_right_time_and_gap() {
    for ticks_per_second in [3, 1000, 24_000_000, 999_999_937, 2_999_999_999] {
        let mut demo = Demo::new(ChunkClock {
            ticks_per_second,
            ..clock()
        });
        let ticks = START_TICKS + 10 * ticks_per_second;
        demo.writer().execution_sample(&Sample {
            ticks,
            ..Sample::default()
        });
        let before = START_TICKS - ticks_per_second;
        demo.writer().execution_sample(&Sample {
            ticks: before,
            ..Sample::default()
        });
        let recording = reader::parse(&demo.flush()).unwrap();
        let times: Vec<_> = recording
            .samples
            .iter()
            .map(|sample| sample.time_ns)
            .collect();
        assert_eq!(
            times,
            [
                common::EPOCH_NS + 10_000_000_000,
                common::EPOCH_NS - 1_000_000_000
            ]
        );
    }
}

#[test]
fn a_renamed_thread_keeps_its_old_name_in_old_samples() {
    let mut writer = ChunkWriter::new(clock());
    let named = |name| ThreadInfo {
        os_name: name,
        os_tid: 5,
        ..ThreadInfo::default()
    };
    let mut ids = vec![writer.thread(5, &named("old"))];
    ids.push(writer.thread(5, &named("ignored")));
    ids.push(writer.update_thread(5, &named("new")));
    ids.push(writer.thread_id(5).unwrap());
    for thread in ids {
        writer.execution_sample(&Sample {
            thread,
            weight_ns: WEIGHT_NS,
            ..Sample::default()
        });
    }
    let recording = reader::parse(&writer.flush(START_TICKS)).unwrap();
    let names: Vec<_> = recording
        .samples
        .iter()
        .map(|s| &*recording.thread(s).unwrap().os_name)
        .collect();
    assert_eq!(names, ["old", "old", "new", "new"]);
}

#[test]
fn non_recording_is_refused_with_its_reason() {
    for bytes in [b"".as_slice(), b"FLR", b"FLR\0", b"\x1f\x8bgzip", &[0; 100]] {
        let error = reader::parse(bytes).unwrap_err().to_string();
        assert!(error.contains("offset"), "{error}");
    }
}
