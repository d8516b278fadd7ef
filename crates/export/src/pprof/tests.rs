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
    let mut plain = Vec::new();
    GzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap();
    let read = message::Profile::decode(&plain[..]).unwrap();
    assert_eq!(read.sample.len(), count);
    assert_eq!(read.string_table[0], "");
    Decoded(read)
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

proptest! {
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
