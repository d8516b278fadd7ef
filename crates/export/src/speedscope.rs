//! speedscope's own format: a profile for each thread, whose samples are in the order of time.
//!
//! Adjacent samples of one stack are one, because the format has the whole stack of each sample.
//! The innermost frame of a wait is its cause.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};

use dwell_profile::{CallTree, FrameId, NodeId, Profile, Seeds};

use crate::json_writer::JsonWriter;
use crate::sample_facts::{function_name, library};
use crate::timeline::categories::{Categories, StateId};
use crate::timeline::sample_rows::SampleRows;
use crate::timeline::tracks::Tracks;
use crate::{NO_STACK, Program};

/// Readers recognise the format by this text.
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// A frame of the file.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Frame(FrameId),
    Cause(StateId),
    NoStack,
}

/// Stacks and frames that are in the file.
struct Tables<'p> {
    profile: &'p Profile,
    stacks: Vec<(NodeId, StateId)>,
    stack_ids: HashMap<(NodeId, StateId), u32, Seeds>,
    frames: Vec<Place>,
    frame_ids: HashMap<Place, u32, Seeds>,
}

impl Tables<'_> {
    fn stack(&mut self, node: NodeId, state: StateId) -> u32 {
        let next = self.stacks.len() as u32;
        let id = *self.stack_ids.entry((node, state)).or_insert(next);
        if id == next {
            self.stacks.push((node, state));
        }
        id
    }

    fn frame(&mut self, place: Place) -> u32 {
        let next = self.frames.len() as u32;
        let id = *self.frame_ids.entry(place).or_insert(next);
        if id == next {
            self.frames.push(place);
        }
        id
    }

    /// The frames of a stack, outermost first.
    fn frames(&mut self, stack: u32, categories: &Categories) -> Vec<u32> {
        let known = self.stacks.get(stack as usize).copied();
        let (node, state) = known.unwrap_or_default();
        let profile = self.profile;
        let cause = categories.cause(state).map(|_| Place::Cause(state));
        let none = (node == CallTree::ROOT).then_some(Place::NoStack);
        let inner = cause.into_iter().chain(none);
        let places = inner.chain(profile.tree().stack(node).map(Place::Frame));
        let mut frames: Vec<u32> = places.map(|place| self.frame(place)).collect();
        frames.reverse();
        frames
    }

    /// Writes a frame: its name, its jar or library, and its line.
    fn write<W: Write>(
        &self,
        place: Place,
        categories: &Categories,
        json: &mut JsonWriter<W>,
    ) -> io::Result<()> {
        let frame = match place {
            Place::Frame(id) => self.profile.frames().get(id as usize),
            Place::Cause(_) | Place::NoStack => None,
        };
        let name = match (place, frame) {
            (Place::Cause(state), _) => format!("[{}]", categories.cause(state).unwrap_or("")),
            (_, Some(frame)) => function_name(self.profile, frame.method),
            (_, None) => NO_STACK.to_owned(),
        };
        json.object(|json| {
            json.key("name")?;
            json.text(&name)?;
            let Some(frame) = frame else {
                return Ok(());
            };
            let library = library(self.profile, frame);
            if !library.is_empty() {
                json.key("file")?;
                json.text(library)?;
            }
            if frame.line > 0 {
                json.key("line")?;
                json.number(frame.line)?;
            }
            Ok(())
        })
    }
}

/// Writes a profile for speedscope. Returns its number of samples.
///
/// # Errors
///
/// Only those of `out`.
pub fn speedscope(profile: &Profile, program: &Program, out: &mut impl Write) -> io::Result<usize> {
    let (categories, tracks) = (Categories::new(profile), Tracks::new(profile));
    let rows = SampleRows::new(profile, &categories, &tracks);
    let mut tables = Tables {
        profile,
        stacks: Vec::new(),
        stack_ids: HashMap::default(),
        frames: Vec::new(),
        frame_ids: HashMap::default(),
    };
    let mut count = 0;
    let mut json = JsonWriter::new(BufWriter::new(out));
    json.object(|json| {
        for (key, text) in [
            ("$schema", SCHEMA),
            ("exporter", concat!("dwell ", env!("CARGO_PKG_VERSION"))),
            ("name", &program.shown_name(profile)),
        ] {
            json.key(key)?;
            json.text(text)?;
        }
        json.key("profiles")?;
        json.array(|json| {
            for (place, track) in tracks.list.iter().enumerate() {
                let samples = samples(&rows, place, &mut tables);
                if !samples.is_empty() {
                    count += samples.len();
                    let unit = if rows.are_times() {
                        "nanoseconds"
                    } else {
                        "none"
                    };
                    thread(
                        [&track.name, unit],
                        &samples,
                        &mut tables,
                        &categories,
                        json,
                    )?;
                }
            }
            Ok(())
        })?;
        json.key("shared")?;
        json.object(|json| {
            json.column("frames", &tables.frames, |json, it| {
                tables.write(*it, &categories, json)
            })
        })
    })?;
    json.into_inner().flush()?;
    Ok(count)
}

/// The stacks of a thread's samples with their weights.
fn samples<'p>(rows: &SampleRows<'p>, place: usize, tables: &mut Tables<'p>) -> Vec<(u32, u64)> {
    let mut samples: Vec<(u32, u64)> = Vec::new();
    for row in rows.of(place, |node, state| tables.stack(node, state)) {
        match samples.last_mut().filter(|last| last.0 == row.stack) {
            Some(last) => last.1 = last.1.saturating_add(row.weight),
            None => samples.push((row.stack, row.weight)),
        }
    }
    samples
}

/// Writes the profile of a thread.
fn thread<W: Write>(
    [name, unit]: [&str; 2],
    samples: &[(u32, u64)],
    tables: &mut Tables<'_>,
    categories: &Categories,
    json: &mut JsonWriter<W>,
) -> io::Result<()> {
    json.object(|json| {
        for (key, text) in [("type", "sampled"), ("name", name), ("unit", unit)] {
            json.key(key)?;
            json.text(text)?;
        }
        let sum = samples
            .iter()
            .fold(0u64, |sum, it| sum.saturating_add(it.1));
        for (key, value) in [("startValue", 0), ("endValue", sum)] {
            json.key(key)?;
            json.number(value)?;
        }
        json.column("samples", samples, |json, it| {
            let frames = tables.frames(it.0, categories);
            json.array(|json| frames.into_iter().try_for_each(|it| json.number(it)))
        })?;
        json.column("weights", samples, |json, it| json.number(it.1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whole_profile::{Sums, hostile, sums, waits};
    use dwell_profile::{RUNNING, Unit, text_art};
    use proptest::prelude::*;
    use serde_json::Value;

    fn read(profile: &Profile) -> Value {
        let mut bytes = Vec::new();
        let count = speedscope(profile, &Program::default(), &mut bytes).unwrap();
        let json: Value = serde_json::from_slice(&bytes).unwrap();
        let samples = list(&json["profiles"])
            .iter()
            .map(|it| list(&it["samples"]));
        assert_eq!(samples.map(<[Value]>::len).sum::<usize>(), count);
        json
    }

    fn list(value: &Value) -> &[Value] {
        value.as_array().unwrap_or_else(|| panic!("{value}"))
    }

    /// The names of a sample's frames, outermost first.
    fn names<'v>(json: &'v Value, sample: &Value) -> Vec<&'v str> {
        let frames = list(&json["shared"]["frames"]);
        let names = list(sample).iter().map(|it| it.as_u64().unwrap() as usize);
        names
            .map(|it| frames[it]["name"].as_str().unwrap())
            .collect()
    }

    /// The sums of weights by thread and innermost frame.
    fn read_sums(json: &Value) -> Sums {
        let mut read = Sums::new();
        for (place, thread) in list(&json["profiles"]).iter().enumerate() {
            let (samples, weights) = (list(&thread["samples"]), list(&thread["weights"]));
            assert_eq!(samples.len(), weights.len());
            assert!(samples.windows(2).all(|it| it[0] != it[1]));
            let weights = weights.iter().map(|it| it.as_u64().unwrap());
            assert_eq!(thread["endValue"], weights.clone().sum::<u64>());
            for (sample, weight) in samples.iter().zip(weights) {
                let innermost = names(json, sample).pop().unwrap();
                let cause = innermost
                    .strip_prefix('[')
                    .filter(|_| innermost != NO_STACK);
                let cause = cause.and_then(|it| it.strip_suffix(']')).unwrap_or(RUNNING);
                *read.entry((place + 1, cause.to_owned())).or_default() += weight;
            }
        }
        read
    }

    proptest! {
        #[test]
        fn speedscope_sums_by_thread_and_cause_are_exact(all in prop::collection::vec(
            (0..3u32, 0..6usize, 0..1u64 << 40, prop_oneof![Just(0), 0..1u64 << 36],
             0..1u64 << 40, 0..4u32), 0..60)) {
            let profile = waits(&all);
            prop_assert_eq!(read_sums(&read(&profile)), sums(&profile));
        }
    }

    #[test]
    fn adjacent_samples_of_a_stack_are_one_with_its_cause() {
        let second = 1_000_000_000;
        let profile = waits(&[
            (1, 0, 0, 10 * second, 10 * second, 2),
            (1, 1, 1 << 41, 0, 5, 0),
        ]);
        let json = read(&profile);
        let thread = &json["profiles"][1];
        assert_eq!(list(&thread["weights"]), [10 * second, 7, 5]);
        let stacks: Vec<_> = list(&thread["samples"])
            .iter()
            .map(|it| names(&json, it))
            .collect();
        assert_eq!(stacks[0], ["a.A$B.x", "a.A$B.x", "[monitor]"]);
        assert_eq!(stacks[1], ["a.A$B.x", "a.A$B.x"]);
        assert_eq!(stacks[2], [NO_STACK, "[park]"]);
        let line = &json["shared"]["frames"][0]["line"];
        assert_eq!((line, &thread["unit"]), (&2.into(), &"nanoseconds".into()));
    }

    #[test]
    fn speedscope_counts_samples_without_time() {
        let mut builder = text_art::builder("a.A.x vm.so.y[vm]");
        builder.unit = Unit::Samples;
        let json = read(&builder.finish());
        let thread = &json["profiles"][0];
        assert_eq!(
            (&thread["unit"], &thread["endValue"]),
            (&"none".into(), &2.into())
        );
        assert_eq!(json["shared"]["frames"][1]["file"], "vm.so");
        assert_eq!(json["$schema"], SCHEMA);
    }

    #[test]
    fn speedscope_names_have_no_control_characters() {
        let json = read(&hostile());
        assert_eq!(json["profiles"][0]["name"], "t\u{fffd}[31m\u{fffd}");
        assert_eq!(json["shared"]["frames"][0]["name"], "a\u{fffd}b.c\u{fffd}d");
    }
}
