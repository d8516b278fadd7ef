//! Tests of pprof: decoded exports have the sums and names of the profile.

use super::*;
use crate::whole_profile::{drawn, hostile, whole};
use dwell_profile::{Builder, Loss, Sample as Ran, WallFilter, text_art};
use flate2::read::GzDecoder;
use proptest::prelude::*;
use std::io::Read;

/// A decoded export, with texts in place of their indexes.
struct Decoded(message::Profile);

fn read(profile: &Profile) -> Decoded {
    let program = Program {
        name: "app".to_owned(),
        ..Program::default()
    };
    let mut bytes = Vec::new();
    let count = pprof(profile, &program, &mut bytes).unwrap();
    let read = decoded(&bytes);
    assert_eq!(read.0.sample.len(), count);
    read
}

fn decoded(bytes: &[u8]) -> Decoded {
    let mut plain = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    let read = message::Profile::decode(&plain[..]).unwrap();
    assert_eq!(read.string_table[0], "");
    Decoded(read)
}

/// The files for Pyroscope, with at most so many samples each.
fn read_parts(profile: &Profile, most: usize) -> Vec<Decoded> {
    let parts = pyroscope::within(profile, &Program::default(), most).unwrap();
    parts.iter().map(|bytes| decoded(bytes)).collect()
}

impl Decoded {
    fn text(&self, place: i64) -> &str {
        &self.0.string_table[place as usize]
    }

    fn types(&self) -> Vec<String> {
        let types = self.0.sample_type.iter();
        let word = |it: &ValueType| format!("{}/{}", self.text(it.r#type), self.text(it.unit));
        types.map(word).collect()
    }

    fn sum(&self, name: &str) -> i64 {
        let place = self.0.sample_type.iter();
        let place = place
            .map(|it| self.text(it.r#type))
            .position(|it| it == name);
        let place = place.unwrap_or_else(|| panic!("no {name} in {:?}", self.types()));
        self.0.sample.iter().map(|sample| sample.value[place]).sum()
    }

    /// The functions of a sample, innermost first.
    fn stack(&self, sample: &Sample) -> Vec<&str> {
        let names = sample.location_id.iter().map(|id| {
            let location = self.0.location.iter().find(|it| it.id == *id).unwrap();
            let function = location.line[0].function_id;
            let function = self.0.function.iter().find(|it| it.id == function);
            self.text(function.unwrap().name)
        });
        names.collect()
    }

    fn labels(&self, sample: &Sample) -> Vec<String> {
        let labels = sample.label.iter();
        let word = |it: &Label| match it.num {
            0 => format!("{}={}", self.text(it.key), self.text(it.str)),
            num => format!("{}={num}", self.text(it.key)),
        };
        labels.map(word).collect()
    }

    fn comments(&self) -> Vec<&str> {
        let comments = self.0.comment.iter();
        comments.map(|it| self.text(*it)).collect()
    }
}

#[test]
fn sums_of_all_types_are_those_of_the_profile() {
    let profile = whole(100);
    let read = read(&profile);
    assert_eq!(
        read.types(),
        [
            "samples/count",
            "cpu/nanoseconds",
            "wall/nanoseconds",
            "alloc_objects/count",
            "alloc_space/bytes",
            "inuse_objects/count",
            "inuse_space/bytes",
            "contentions/count",
            "delay/nanoseconds",
        ]
    );
    let (cpu, wall) = (profile.total(), profile.wall_totals().0);
    assert_eq!((cpu.sum, wall.sum), (35, 1035));
    assert_eq!(read.sum("cpu"), 35);
    assert_eq!(read.sum("samples"), 3);
    assert_eq!(read.sum("wall"), 1035);
    assert_eq!(read.sum("alloc_space"), 10_000);
    // 10,000 bytes in objects of 24: rounding each of them would make it 400.
    assert_eq!(read.sum("alloc_objects"), 417);
    // A third of them has survived nothing.
    let alive = profile.live_of(&WallFilter::default()).count();
    assert_eq!((alive, read.sum("inuse_space")), (66, 6600));
    assert_eq!(read.sum("inuse_objects"), 275);
    assert_eq!((read.sum("contentions"), read.sum("delay")), (3, 900));
    assert_eq!(read.text(read.0.default_sample_type), "cpu");
}

#[test]
fn samples_of_one_stack_and_labels_are_one() {
    let read = read(&whole(0));
    let samples = &read.0.sample;
    let find = |label: &str| {
        let has = |it: &&Sample| read.labels(it).iter().any(|it| it == label);
        samples.iter().find(has).unwrap()
    };
    let ran = find("cause=running");
    assert_eq!((ran.value[0], ran.value[1], ran.value[2]), (2, 30, 30));
    assert_eq!(read.stack(ran), ["a.A.z", "a.A.x"]);
    assert_eq!(
        read.labels(ran),
        ["thread=main", "thread_id=1", "cause=running"]
    );
    let waited = find("cause=monitor");
    assert_eq!(
        read.labels(waited),
        [
            "thread=main",
            "thread_id=1",
            "endpoint=GET /x",
            "trace_id=000000000000000000000000000000ab",
            "span_id=00000000000000cd",
            "tenant=acme",
            "label.cause=theirs",
            "dwell.cause=mine",
            "cause=monitor",
            "detail=a.Lock",
            "owner=gc",
        ]
    );
    let lines = read.0.location.iter().map(|it| it.line[0].line);
    assert!(lines.into_iter().any(|line| line == 7));
    let libraries = read.0.mapping.iter().map(|it| read.text(it.filename));
    assert!(libraries.into_iter().any(|it| it == "vm.so"));
}

#[test]
fn types_are_those_that_the_recording_has() {
    let mut builder = text_art::builder("a.A.x");
    builder.unit = dwell_profile::Unit::Samples;
    let read = read(&builder.finish());
    assert_eq!(read.types(), ["samples/count"]);
    assert_eq!(read.sum("samples"), 1);
    assert_eq!(read.text(read.0.default_sample_type), "samples");
}

#[test]
fn samples_without_a_stack_are_visible() {
    let mut builder = Builder::default();
    let thread = builder.thread("main", 1, 1, false);
    let ran = Ran {
        time_ns: 0,
        thread,
        node: CallTree::ROOT,
        weight: 3,
        count: 1,
        failure: None,
        context: None,
    };
    builder.sample(ran);
    let read = read(&builder.finish());
    assert_eq!(read.stack(&read.0.sample[0]), [NO_STACK]);
}

#[test]
fn comments_name_the_program_and_lost_samples() {
    let mut builder = text_art::builder("a.A.x");
    builder.info.java_arguments = "app.jar --password=[redacted]".to_owned();
    builder.losses.push(Loss {
        cause: "no_slot".to_owned(),
        samples: 3,
        weight_ns: 30,
    });
    let read = read(&builder.finish());
    let comments = read.comments();
    assert!(
        comments.contains(&"program: app.jar --password=[redacted]"),
        "{comments:?}"
    );
    assert!(
        comments.contains(&"lost: no_slot: samples 3, 30 ns"),
        "{comments:?}"
    );
    assert_eq!(read.text(read.0.mapping[0].filename), "app");
}

#[test]
fn pprof_names_have_no_control_characters() {
    let read = read(&hostile());
    let sample = &read.0.sample[0];
    assert_eq!(read.stack(sample), ["a\u{fffd}b.c\u{fffd}d"]);
    assert_eq!(read.labels(sample)[0], "thread=t\u{fffd}[31m\u{fffd}");
}

#[test]
fn pyroscope_has_a_profile_for_each_kind() {
    let parts = read_parts(&whole(100), 1000);
    let types: Vec<_> = parts.iter().map(|it| it.types().join(" ")).collect();
    assert_eq!(
        types,
        [
            "cpu/nanoseconds samples/count",
            "wall/nanoseconds",
            "alloc_space/bytes alloc_objects/count inuse_space/bytes inuse_objects/count",
            "delay/nanoseconds contentions/count",
        ]
    );
    let periods = parts.iter().map(|it| {
        let period = it.0.period_type.as_ref().unwrap();
        (it.text(period.r#type), it.text(period.unit))
    });
    let expected = [
        ("cpu", "nanoseconds"),
        ("wall", "nanoseconds"),
        ("space", "bytes"),
        ("contentions", "count"),
    ];
    assert!(periods.eq(expected));
    assert_eq!((parts[0].sum("cpu"), parts[0].sum("samples")), (35, 3));
    assert_eq!(parts[1].sum("wall"), 1035);
    let objects = (parts[2].sum("alloc_space"), parts[2].sum("alloc_objects"));
    assert_eq!(objects, (10_000, 417));
    assert_eq!(parts[2].sum("inuse_space"), 6600);
    assert_eq!(
        (parts[3].sum("contentions"), parts[3].sum("delay")),
        (3, 900)
    );
}

#[test]
fn pyroscope_labels_have_few_values_and_plain_names() {
    let parts = read_parts(&whole(0), 1000);
    let labels = |part: &Decoded| -> Vec<_> {
        let samples = part.0.sample.iter();
        samples.map(|it| part.labels(it).join(" ")).collect()
    };
    assert_eq!(
        labels(&parts[0]),
        ["thread=main cause=running", "thread=gc cause=running"]
    );
    let waited = "thread=main endpoint=GET /x cause=monitor span_id=00000000000000cd tenant=acme \
                  label_cause=theirs dwell_cause=mine";
    assert!(
        labels(&parts[1]).contains(&waited.to_owned()),
        "{:?}",
        labels(&parts[1])
    );
}

#[test]
fn pyroscope_joins_samples_of_a_group_of_threads() {
    let mut builder = text_art::builder(
        "thread: pool-1-thread-1 pool-1-thread-22 other
         weight: 10 20 5
         a.A.x a.A.x a.A.x",
    );
    builder.info.measured = dwell_profile::Measured::Event("page-faults".to_owned());
    let parts = read_parts(&builder.finish(), 1000);
    assert_eq!(parts.len(), 1);
    assert_eq!(
        parts[0].types(),
        ["page_faults/nanoseconds", "samples/count"]
    );
    let samples = parts[0].0.sample.iter();
    let found: Vec<_> = samples
        .map(|it| (parts[0].labels(it), it.value.clone()))
        .collect();
    let thread = |name: &str| vec![format!("thread={name}"), "cause=running".to_owned()];
    assert_eq!(
        found,
        [
            (thread("other"), vec![5, 1]),
            (thread("pool-*-thread-*"), vec![30, 2])
        ]
    );
}

#[test]
fn pyroscope_splits_profiles_of_too_many_samples() {
    let samples: Vec<_> = (1..4).map(|depth| (depth, 0, 10)).collect();
    let parts = read_parts(&drawn(&samples), 2);
    let cpu = parts.iter().filter(|it| it.types()[0] == "cpu/nanoseconds");
    let cpu: Vec<_> = cpu.map(|it| (it.0.time_nanos, it.sum("cpu"))).collect();
    assert_eq!(cpu, [(0, 20), (1_000_000, 10)]);
}

proptest! {
    /// The same for Pyroscope, however many samples a profile may have.
    #[test]
    fn pyroscope_sums_are_exact(
        samples in prop::collection::vec((0..4u32, 0..3u32, 0..1u64 << 40), 0..200),
        most in 1..20usize,
    ) {
        let profile = drawn(&samples);
        let parts = read_parts(&profile, most);
        let sum = |name: &str| -> i64 {
            let has = |it: &&Decoded| it.types().iter().any(|it| it.starts_with(name));
            parts.iter().filter(has).map(|it| it.sum(name)).sum()
        };
        prop_assert_eq!(sum("cpu") as u64, profile.total().sum);
        prop_assert_eq!(sum("wall") as u64, profile.wall_totals().0.sum);
        prop_assert!(parts.iter().all(|it| (1..=most).contains(&it.0.sample.len())));
    }

    /// Each distribution of samples over stacks and threads keeps the total time.
    #[test]
    fn sums_are_exact(samples in prop::collection::vec((0..4u32, 0..3u32, 0..1u64 << 40), 0..200)) {
        let profile = drawn(&samples);
        let read = read(&profile);
        prop_assert_eq!(read.sum("cpu") as u64, profile.total().sum);
        prop_assert_eq!(read.sum("samples") as u64, profile.total().samples);
        if profile.has_wall() {
            prop_assert_eq!(read.sum("wall") as u64, profile.wall_totals().0.sum);
        }
    }
}
