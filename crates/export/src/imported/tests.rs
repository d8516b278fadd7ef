//! Tests of profiles of other tools: sums, stacks and threads are those of the files.

use super::*;
use crate::whole_profile::{drawn, waits, whole};
use crate::{Encoding, Program, otlp, pprof};
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

/// The same of OTLP.
fn again_otlp(profile: &Profile) -> Profile {
    let mut bytes = Vec::new();
    otlp(profile, &Program::default(), Encoding::Protobuf, &mut bytes).unwrap();
    imported(&bytes).unwrap().unwrap()
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

/// Sums by time.
fn times(profile: &Profile) -> BTreeMap<u64, u64> {
    let mut sums = BTreeMap::new();
    for it in profile.samples().iter().filter(|it| it.weight > 0) {
        *sums.entry(it.time_ns).or_default() += it.weight;
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
    fn files_of_ours_have_the_same_sums_again(
        samples in prop::collection::vec((0..4u32, 0..3u32, 0..1u64 << 40), 0..60),
        all in prop::collection::vec((0..3u32, 0..5usize, 0..1u64 << 40, Just(0),
                                      1..1u64 << 40, 0..4u32), 1..60)) {
        for profile in [drawn(&samples), waits(&all)] {
            let read = again(&profile);
            prop_assert_eq!(ran(&read), ran(&profile));
            prop_assert_eq!(read.total().samples > 0, profile.total().sum > 0);
            prop_assert_eq!(waited(&read), waited(&profile));
            let read = again_otlp(&profile);
            prop_assert_eq!(ran(&read), ran(&profile));
            prop_assert_eq!(times(&read), times(&profile));
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
fn requests_and_details_of_our_files_are_kept() {
    let profile = whole(9);
    let warnings = [
        "read from pprof, which has no times of samples, no safepoints and no pauses",
        "read from OTLP, which has no safepoints and no pauses",
    ];
    for (read, warning) in [again(&profile), again_otlp(&profile)].iter().zip(warnings) {
        let look = &read.looks()[0];
        let context = &read.contexts()[look.context.unwrap() as usize];
        assert_eq!((context.trace_id, context.span_id), (0xab, 0xcd));
        assert_eq!(read.endpoint(look.context.unwrap()), Some("GET /x"));
        assert_eq!(read.names().text(look.detail.unwrap()), "a.Lock");
        assert_eq!(read.warnings(), [warning]);
    }
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
            ..m::Function::default()
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
fn pprof_of_other_types_is_refused_with_their_names() {
    let types = [("sent", "bytes"), ("packets", "frames")];
    let error = imported(&made(&types, &[5, 1], &["a.B.c"], "")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "has no time, samples, memory or locks (pprof), only sent, packets"
    );
}

/// A heap profile of Go: 20 objects of 3072 bytes were allocated, and 3 are in use.
fn heap_of_go() -> Vec<u8> {
    let types = [
        ("alloc_objects", "count"),
        ("alloc_space", "bytes"),
        ("inuse_objects", "count"),
        ("inuse_space", "bytes"),
    ];
    let functions = ["main.drop", "main.main", "runtime.main"];
    let file = made(&types, &[20, 61_447, 3, 9_216], &functions, "/app");
    let mut file = crate::pprof::message::Profile::decode(&file[..]).unwrap();
    file.string_table.push("bytes".to_owned());
    let bytes = file.string_table.len() as i64 - 1;
    file.sample[0].label = vec![crate::pprof::message::Label {
        key: bytes,
        str: 0,
        num: 3072,
    }];
    file.period_type = Some(file.sample_type[1]);
    file.period = 512 << 10;
    file.time_nanos = 1_000;
    file.encode_to_vec()
}

#[test]
fn heap_of_go_has_its_bytes_and_objects() {
    let read = imported(&heap_of_go()).unwrap().unwrap();
    assert!(read.samples().is_empty() && !read.has_wall() && !read.has_locks());
    let classes = read.allocated_classes();
    assert_eq!(classes.len(), 1);
    assert_eq!(classes[0].name, "[objects of 3072 bytes]");
    assert_eq!((classes[0].bytes.sum, classes[0].objects), (61_447, 20.0));
    let alive = read.alive();
    assert_eq!((alive.bytes.sum, alive.objects), (9_216, 3.0));
    assert!(read.followed_ns().is_empty() && alive.young.sum == 0);
    let frames = &read.alive_stacks()[0].frames;
    assert_eq!(frames[1..], ["main.drop", "main.main", "runtime.main"]);
    let sampling = read.allocation_sampling().unwrap();
    assert_eq!(sampling.interval_bytes, 512 << 10);
    let missing = "read from pprof, which has no times of samples, no threads, no CPU time, no \
                   wall time, no locks, no classes, no safepoints and no pauses";
    assert_eq!(read.warnings(), [missing]);
}

#[test]
fn heap_of_go_is_written_as_it_was() {
    let read = imported(&heap_of_go()).unwrap().unwrap();
    let mut packed = Vec::new();
    pprof(&read, &Program::default(), &mut packed).unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
    let file = crate::pprof::message::Profile::decode(&bytes[..]).unwrap();
    let text = |place: i64| file.string_table[place as usize].as_str();
    let types: Vec<_> = file.sample_type.iter().map(|it| text(it.r#type)).collect();
    let expected = [
        "alloc_objects",
        "alloc_space",
        "inuse_objects",
        "inuse_space",
    ];
    assert_eq!(types, expected);
    assert_eq!(text(file.default_sample_type), "inuse_space");
    let sums = |place: usize| file.sample.iter().map(|it| it.value[place]).sum::<i64>();
    assert_eq!([0, 1, 2, 3].map(sums), [20, 61_447, 3, 9_216]);
    // No frame stands for the class, which is not known.
    assert_eq!(file.sample[0].location_id.len(), 3);
}

#[test]
fn waits_of_go_have_their_function_as_lock() {
    let types = [("contentions", "count"), ("delay", "microseconds")];
    let functions = ["sync.(*Mutex).Lock", "main.contend"];
    let read = imported(&made(&types, &[79, 687_360], &functions, "/app"));
    let read = read.unwrap().unwrap();
    let locks = read.lock_classes();
    assert_eq!(locks[0].name, "sync.(*Mutex).Lock");
    assert_eq!((locks[0].blocked.sum, locks[0].waits), (687_360_000, 79.0));
    assert!(read.samples().is_empty() && !read.has_live() && !read.has_allocations());
    let again = again(&read);
    assert_eq!(again.lock_classes()[0].blocked.sum, 687_360_000);
    let missing = "no allocations, no objects in use, no classes, no safepoints";
    assert!(
        read.warnings()[0].contains(missing),
        "{:?}",
        read.warnings()
    );
}

#[test]
fn many_sampled_events_are_put_together() {
    let types = [("contentions", "count"), ("delay", "nanoseconds")];
    let file = made(&types, &[50_000_000, 1 << 50], &["sync.(*Mutex).Lock"], "");
    let mut file = crate::pprof::message::Profile::decode(&file[..]).unwrap();
    file.period_type = Some(file.sample_type[0]);
    file.period = 1;
    let read = imported(&file.encode_to_vec()).unwrap().unwrap();
    assert!(read.monitor_waits().len() < 1 << 19);
    let lock = &read.lock_classes()[0];
    assert_eq!((lock.blocked.sum, lock.waits.round()), (1 << 50, 50e6));
}

/// Bytes of objects that were allocated and that are in use, and time in locks, by class.
fn held(profile: &Profile) -> [BTreeMap<String, u64>; 3] {
    let mut sums = <[BTreeMap<String, u64>; 3]>::default();
    let classes = profile.allocated_classes().into_iter();
    sums[0].extend(classes.map(|it| (it.name, it.bytes.sum)));
    let classes = profile.alive_classes().into_iter();
    sums[1].extend(classes.map(|it| (it.name, it.alive.bytes.sum)));
    let classes = profile.lock_classes().into_iter();
    sums[2].extend(classes.map(|it| (it.name, it.blocked.sum)));
    sums
}

#[test]
fn memory_and_locks_of_our_files_are_read_again() {
    let profile = whole(9);
    let sums = held(&profile);
    assert!(sums.iter().all(|it| it["byte[]"] > 0));
    for read in [again(&profile), again_otlp(&profile)] {
        assert_eq!(held(&read), sums);
        let node = profile.tree().parent(profile.allocations()[0].node);
        let parent = read.tree().parent(read.allocations()[0].node);
        assert_eq!(stack(&read, parent), stack(&profile, node));
    }
    let objects = |of: &Profile| of.allocated_classes()[0].objects.round();
    assert_eq!(objects(&again(&profile)), objects(&profile));
}

#[test]
fn memory_of_async_profiler_has_classes() {
    let file = made(
        &[("alloc", "bytes")],
        &[96],
        &["java/lang/String_[i]", "a/B.c"],
        "",
    );
    let read = imported(&file).unwrap().unwrap();
    let classes = read.allocated_classes();
    assert_eq!(
        (&*classes[0].name, classes[0].bytes.sum),
        ("java.lang.String", 96)
    );
    assert_eq!(classes[0].objects, 0.0, "their number is not known");
    let parent = read.tree().parent(read.allocations()[0].node);
    assert_eq!(stack(&read, parent), ["a.B.c:7"]);
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

#[test]
fn numbers_of_other_events_are_no_cpu_time() {
    for (types, event) in [
        (&[("cpu", "count")][..], "the pprof type cpu"),
        (&[("goroutine", "count")], "the pprof type goroutine"),
        (&[("allocations", "count")], "the pprof type allocations"),
    ] {
        let read = imported(&made(types, &[5], &["a.B.c"], "")).unwrap();
        let read = read.unwrap();
        let measured = dwell_profile::Measured::Event(event.to_owned());
        assert_eq!(read.info().measured, measured);
        assert_eq!((read.unit(), read.total().samples), (Unit::Samples, 5));
    }
}

#[test]
fn pprof_of_async_profiler_has_threads_and_java_names() {
    let mut file = made(&[("cpu", "count")], &[5], &["java/lang/A.b"], "");
    let mut decoded = crate::pprof::message::Profile::decode(&file[..]).unwrap();
    let name = decoded.string_table.iter().position(|it| it == "pool-1");
    decoded.string_table[name.unwrap()] = "[C2 Compiler tid=42]".to_owned();
    file = decoded.encode_to_vec();
    let read = imported(&file).unwrap().unwrap();
    assert_eq!(stack(&read, read.samples()[0].node), ["java.lang.A.b:7"]);
    let thread = &read.threads()[0];
    assert_eq!((thread.os_tid, read.thread_name(0)), (42, "C2 Compiler"));
}

#[test]
fn sums_of_damaged_files_do_not_overflow() {
    let types = [
        ("samples", "count"),
        ("cpu", "seconds"),
        ("wall", "seconds"),
    ];
    let one = made(&types, &[i64::MAX; 3], &["a.B.c"], "");
    let mut file = crate::pprof::message::Profile::decode(&one[..]).unwrap();
    file.sample = vec![file.sample[0].clone(); 9];
    let read = imported(&file.encode_to_vec()).unwrap().unwrap();
    assert_eq!(read.total().sum, 1 << 62);
    assert!(read.warnings()[1].contains("too large to add up"));
    let text = format!("a;b {}\na;c {}\n", u64::MAX, u64::MAX);
    let read = imported(text.as_bytes()).unwrap().unwrap();
    assert_eq!(read.total().samples, 1 << 50);
    assert!(read.warnings()[1].contains("too large to add up"));
}

#[test]
fn number_of_many_samples_is_not_cut() {
    let read = imported(b"a;b 5052029532\na;c 3\n").unwrap().unwrap();
    let total = read.total();
    assert_eq!((total.sum, total.samples), (5_052_029_535, 5_052_029_535));
}

#[test]
fn deep_stack_keeps_its_innermost_frames() {
    let text = (0..5000).map(|it| format!("f{it}")).collect::<Vec<_>>();
    let read = imported(format!("{} 1", text.join(";")).as_bytes());
    let names = {
        let read = read.unwrap().unwrap();
        stack(&read, read.samples()[0].node)
    };
    assert_eq!((names.len(), &*names[0]), (DEPTH_MAX + 1, "[truncated]"));
    assert_eq!((&*names[1], &*names[DEPTH_MAX]), ("f904", "f4999"));
}

#[test]
fn collapsed_stacks_of_python_have_files_lines_and_threads() {
    let text = "thread (7): w\u{f6}rker;Thread.run (lib/threading.py:98);w (b.py:5) 3\n\
                thread (8): w\u{f6}rker;<module> (b.py:7) 2\n";
    let read = imported(text.as_bytes()).unwrap().unwrap();
    let threads: Vec<_> = read.threads().iter().map(|it| it.os_tid).collect();
    assert_eq!((threads, read.thread_name(1)), (vec![7, 8], "w\u{f6}rker"));
    assert_eq!(
        stack(&read, read.samples()[0].node),
        ["Thread.run:98", "w:5"]
    );
    assert_eq!(stack(&read, read.samples()[1].node), ["<module>:7"]);
}

#[test]
fn signatures_and_packages_are_those_of_the_language() {
    let text = "java/lang/Integer.toString(I[B)Ljava/lang/String|_[i];\
                net/http.(*conn).serve;Thread::run(unsigned int);a/B.c:12 1\n";
    let read = imported(text.as_bytes()).unwrap().unwrap();
    let names = stack(&read, read.samples()[0].node);
    let expected = [
        "java.lang.Integer.toString",
        "net/http.(*conn).serve",
        "Thread::run(unsigned int)",
        "a.B.c:12",
    ];
    assert_eq!(names, expected);
    let descriptors = read.methods().iter();
    let mut descriptors = descriptors.map(|it| read.names().text(it.descriptor));
    assert!(descriptors.any(|it| it == "(I[B)Ljava/lang/String;"));
}

#[test]
fn collapsed_stacks_that_were_cut_off_are_read() {
    let read = imported(b"a;b 3\na;c 4\na;ccc").unwrap().unwrap();
    assert_eq!(read.total().samples, 7);
    assert_eq!(read.warnings()[0], "the last line is cut off");
}

/// An OTLP file of a type, with one stack of `A.run` and these samples.
fn made_otlp(types: &[(&str, &str)], samples: &[(&[i64], &[u64])]) -> Vec<u8> {
    use opentelemetry_proto::tonic::profiles::v1development as m;
    let mut texts = vec![String::new(), "A.run".to_owned()];
    let mut text = |text: &str| {
        texts.push(text.to_owned());
        texts.len() as i32 - 1
    };
    let samples = samples.iter().map(|(values, times)| m::Sample {
        stack_index: 1,
        values: values.to_vec(),
        timestamps_unix_nano: times.to_vec(),
        ..m::Sample::default()
    });
    let samples: Vec<_> = samples.collect();
    let profiles = types.iter().map(|(name, unit)| m::Profile {
        sample_type: Some(m::ValueType {
            type_strindex: text(name),
            unit_strindex: text(unit),
        }),
        samples: samples.clone(),
        time_unix_nano: 1_000,
        duration_nano: 50,
        ..m::Profile::default()
    });
    let scope = m::ScopeProfiles {
        profiles: profiles.collect(),
        ..m::ScopeProfiles::default()
    };
    let line = m::Line {
        function_index: 1,
        line: 7,
        ..m::Line::default()
    };
    let location = m::Location {
        lines: vec![line],
        ..m::Location::default()
    };
    let function = m::Function {
        name_strindex: 1,
        ..m::Function::default()
    };
    let stack = m::Stack {
        location_indices: vec![1],
    };
    let dictionary = m::ProfilesDictionary {
        location_table: vec![m::Location::default(), location],
        function_table: vec![m::Function::default(), function],
        stack_table: vec![m::Stack::default(), stack],
        string_table: texts,
        ..m::ProfilesDictionary::default()
    };
    let data = m::ProfilesData {
        resource_profiles: vec![m::ResourceProfiles {
            scope_profiles: vec![scope],
            ..m::ResourceProfiles::default()
        }],
        dictionary: Some(dictionary),
    };
    data.encode_to_vec()
}

#[test]
fn damaged_messages_are_refused() {
    let files = [
        made(&[("cpu", "count")], &[5], &["a.B.c"], ""),
        made_otlp(&[("cpu", "count")], &[(&[4], &[])]),
    ];
    for file in files {
        let cut = &file[..file.len() - 3];
        assert_eq!(imported(cut).unwrap_err(), Refused::Damaged);
    }
    assert!(imported(b"\nno number\n").unwrap().is_none());
}

#[test]
fn location_with_many_functions_is_bounded() {
    let one = made(&[("cpu", "count")], &[5], &["a.B.c"], "");
    let mut file = crate::pprof::message::Profile::decode(&one[..]).unwrap();
    let line = file.location[0].line[0];
    file.location[0].line = vec![line; 10_000];
    file.sample[0].location_id = vec![1; 100_000];
    let read = imported(&file.encode_to_vec()).unwrap().unwrap();
    let names = stack(&read, read.samples()[0].node);
    assert_eq!((names.len(), &*names[0]), (DEPTH_MAX + 1, "[truncated]"));
}

#[test]
fn otlp_without_values_counts_its_times() {
    let samples: [(&[i64], &[u64]); 2] = [(&[], &[1_010, 1_020]), (&[4], &[])];
    let read = imported(&made_otlp(&[("ctimer", "count")], &samples));
    let read = read.unwrap().unwrap();
    let times: Vec<_> = read
        .samples()
        .iter()
        .map(|it| (it.time_ns, it.weight))
        .collect();
    assert_eq!(times, [(1_010, 1), (1_020, 1), (1_000, 4)]);
    assert_eq!(stack(&read, read.samples()[0].node), ["A.run:7"]);
    assert_eq!((read.info().start_ns, read.info().duration_ns), (1_000, 50));
    assert!(!read.info().measured.is_of_processors());
}

#[test]
fn otlp_of_other_types_is_refused_with_their_names() {
    let error = imported(&made_otlp(&[("sent", "bytes")], &[])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "has no time, samples, memory or locks (OTLP), only sent"
    );
}

#[test]
fn wall_time_of_otlp_includes_running() {
    let types = [("wall", "nanoseconds"), ("cpu", "nanoseconds")];
    let read = imported(&made_otlp(&types, &[(&[30], &[1_010])]))
        .unwrap()
        .unwrap();
    assert_eq!((read.total().sum, read.looks().len()), (30, 0));
}

#[test]
fn stubs_of_the_jvm_are_no_methods() {
    assert_eq!(kind_of("[stub].libmLog", "", ""), FrameKind::Stub);
    assert_eq!(kind_of("a.B.c", "", ""), FrameKind::C2);
}
