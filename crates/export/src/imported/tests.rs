//! Tests of profiles of other tools: sums, stacks and threads are those of the files.

use super::*;
use crate::whole_profile::{drawn, waits, whole};
use crate::{Program, pprof};
use dwell_profile::{NodeId, Unit, Wall, WallFilter};
use flate2::read::GzDecoder;
use proptest::prelude::*;
use prost::Message as _;
use std::collections::BTreeMap;
use std::io::Read;

/// Our own file of a profile, read again.
fn again(profile: &Profile) -> Profile {
    let mut bytes = Vec::new();
    pprof(profile, &Program::default(), &mut bytes).unwrap();
    let mut unpacked = Vec::new();
    GzDecoder::new(&bytes[..])
        .read_to_end(&mut unpacked)
        .unwrap();
    imported(&unpacked).unwrap().unwrap()
}

/// The names of a stack, outermost first, with lines.
fn stack(profile: &Profile, node: NodeId) -> Vec<String> {
    let frames = profile
        .tree()
        .stack(node)
        .map(|id| profile.frames()[id as usize]);
    let names = frames.map(|it| match it.line {
        0 => profile.method_name(it.method),
        line => format!("{}:{line}", profile.method_name(it.method)),
    });
    let mut names: Vec<String> = names.collect();
    names.reverse();
    names
}

/// Sums by thread and stack.
fn ran(profile: &Profile) -> BTreeMap<(String, Vec<String>), u64> {
    let mut sums = BTreeMap::new();
    for it in profile.samples().iter().filter(|it| it.weight > 0) {
        let thread = profile.thread_name(it.thread).to_owned();
        *sums.entry((thread, stack(profile, it.node))).or_default() += it.weight;
    }
    sums
}

/// Sums of waits by cause and stack, of all that the original counts as wall time.
fn waited(profile: &Profile) -> BTreeMap<(String, Vec<String>), u64> {
    let mut sums = BTreeMap::new();
    let filter = WallFilter::default();
    let is_wait = |it: &Wall<'_>| it.cause != dwell_profile::RUNNING && it.weight.sum > 0;
    for it in profile.wall(&filter).filter(is_wait) {
        let key = (it.cause.to_owned(), stack(profile, it.node));
        *sums.entry(key).or_default() += it.weight.sum;
    }
    sums
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pprof_of_ours_has_the_same_sums_again(
        samples in prop::collection::vec((0..4u32, 0..3u32, 0..1u64 << 40), 0..60),
        all in prop::collection::vec((0..3u32, 0..5usize, 0..1u64 << 40, Just(0),
                                      1..1u64 << 40, 0..4u32), 1..60)) {
        for profile in [drawn(&samples), waits(&all)] {
            let read = again(&profile);
            prop_assert_eq!(ran(&read), ran(&profile));
            prop_assert_eq!(read.total().samples > 0, profile.total().sum > 0);
            prop_assert_eq!(waited(&read), waited(&profile));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300),
                                     text in "[a-z;. 0-9\n\\[\\]]{0,80}") {
        let _ = (imported(&bytes), imported(text.as_bytes()));
    }
}

#[test]
fn requests_and_details_of_pprof_are_kept() {
    let read = again(&whole(9));
    let look = &read.looks()[0];
    let context = &read.contexts()[look.context.unwrap() as usize];
    assert_eq!((context.trace_id, context.span_id), (0xab, 0xcd));
    assert_eq!(read.endpoint(look.context.unwrap()), Some("GET /x"));
    assert_eq!(read.names().text(look.detail.unwrap()), "a.Lock");
    assert_eq!(
        read.warnings(),
        [
            "read from pprof, which has no times of samples, no safepoints \
                                 and no pauses"
        ]
    );
}

/// A file with columns of these types and units, and one sample with these values.
fn made(types: &[(&str, &str)], values: &[i64], functions: &[&str], library: &str) -> Vec<u8> {
    use crate::pprof::message as m;
    let mut texts = vec![String::new()];
    let mut text = |text: &str| {
        texts.push(text.to_owned());
        texts.len() as i64 - 1
    };
    let mut file = m::Profile {
        sample_type: types
            .iter()
            .map(|it| m::ValueType {
                r#type: text(it.0),
                unit: text(it.1),
            })
            .collect(),
        sample: vec![m::Sample {
            location_id: (1..=functions.len() as u64).collect(),
            value: values.to_vec(),
            label: vec![m::Label {
                key: text("thread name"),
                str: text("pool-1"),
                num: 0,
            }],
        }],
        mapping: vec![m::Mapping {
            id: 1,
            filename: text(library),
            ..m::Mapping::default()
        }],
        ..m::Profile::default()
    };
    for (place, name) in functions.iter().enumerate() {
        let id = place as u64 + 1;
        file.function.push(m::Function {
            id,
            name: text(name),
            system_name: 0,
        });
        let line = vec![m::Line {
            function_id: id,
            line: 7,
        }];
        file.location.push(m::Location {
            id,
            mapping_id: 1,
            line,
        });
    }
    file.string_table = texts;
    file.encode_to_vec()
}

#[test]
fn pprof_of_go_has_its_functions_and_units() {
    let types = [("samples", "count"), ("cpu", "microseconds")];
    let functions = [
        "net/http.(*conn).serve",
        "slices.Sort[go.shape.int]",
        "main.main",
    ];
    let read = imported(&made(&types, &[3, 30], &functions, "/app"))
        .unwrap()
        .unwrap();
    assert_eq!((read.total().sum, read.total().samples), (30_000, 3));
    assert_eq!(read.thread_name(read.samples()[0].thread), "pool-1");
    let names: Vec<_> = read
        .tree()
        .stack(read.samples()[0].node)
        .map(|id| read.method_of(id).unwrap().1)
        .map(|it| (read.names().text(it.class), read.names().text(it.name)))
        .collect();
    let expected = [
        ("net/http.(*conn)", "serve"),
        ("slices", "Sort[go.shape.int]"),
        ("main", "main"),
    ];
    assert_eq!(names, expected);
}

#[test]
fn pprof_without_cpu_time_counts_samples() {
    let types = [("sample", "count")];
    let read = imported(&made(&types, &[5], &["a.B.<init>"], ""))
        .unwrap()
        .unwrap();
    assert_eq!((read.unit(), read.total().sum), (Unit::Samples, 5));
    assert_eq!(stack(&read, read.samples()[0].node), ["a.B.<init>:7"]);
}

#[test]
fn wall_time_of_pprof_includes_running() {
    let types = [("cpu-time", "nanoseconds"), ("wall-time", "nanoseconds")];
    let read = imported(&made(&types, &[30, 100], &["read"], "libc.so.6"))
        .unwrap()
        .unwrap();
    assert_eq!((read.total().sum, read.looks()[0].weight_ns), (30, 70));
    assert_eq!(read.wall_totals().0.sum, 100);
    assert_eq!(stack(&read, read.looks()[0].node), ["libc.so.6.read:7"]);
}

#[test]
fn pprof_of_memory_only_is_refused_with_its_types() {
    let types = [("inuse_space", "bytes"), ("inuse_objects", "count")];
    let error = imported(&made(&types, &[5, 1], &["a.B.c"], "")).unwrap_err();
    assert_eq!(error.types, ["inuse_space", "inuse_objects"]);
    assert!(
        error
            .to_string()
            .contains("it has inuse_space, inuse_objects"),
        "{error}"
    );
}

#[test]
fn collapsed_stacks_have_threads_and_kinds() {
    let text = "[main tid=12];java/lang/Thread.run_[0];a/B.c_[j];a/B.<init>_[i] 3\n\
                [main tid=12];start_thread;JavaThread::run;do_syscall_64_[k] 2\n\n\
                a.B.d;libc.so.6.read;[unknown] 40\n";
    let read = imported(text.as_bytes()).unwrap().unwrap();
    assert_eq!((read.total().sum, read.total().samples), (45, 45));
    let threads: Vec<_> = read.threads().iter().map(|it| it.os_tid).collect();
    assert_eq!((threads, read.thread_name(0)), (vec![12, 0], "main"));
    let frames = |sample: usize| {
        let node = read.samples()[sample].node;
        let kinds = read
            .tree()
            .stack(node)
            .map(|id| read.frames()[id as usize].kind);
        let mut kinds: Vec<FrameKind> = kinds.collect();
        kinds.reverse();
        (stack(&read, node), kinds)
    };
    use FrameKind::{C2, Inlined, Interpreted, Kernel, Native};
    let (names, kinds) = frames(0);
    assert_eq!(names, ["java.lang.Thread.run", "a.B.c", "a.B.<init>"]);
    assert_eq!(kinds, [Interpreted, C2, Inlined]);
    let (names, kinds) = frames(1);
    assert_eq!(
        names,
        ["start_thread", "JavaThread::run", "[kernel].do_syscall_64"]
    );
    assert_eq!(kinds, [Native, Native, Kernel]);
    let (names, kinds) = frames(2);
    assert_eq!(names, ["a.B.d", "libc.so.6.read", "[unknown]"]);
    assert_eq!(kinds, [C2, Native, Native]);
}

#[test]
fn texts_that_are_no_stacks_are_not_imported() {
    assert!(imported(b"a.B.c 5").unwrap().is_some());
    for text in [
        "",
        "hello 5",
        "a;b",
        "a;b 5\nno number",
        "a;b -5",
        "{\"a\": 1}",
    ] {
        assert!(imported(text.as_bytes()).unwrap().is_none(), "{text}");
    }
}
