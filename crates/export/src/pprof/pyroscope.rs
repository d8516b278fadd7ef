//! Profiles for Pyroscope: one for each of its kinds of profiles, within the limits of its server.
//!
//! The server makes the kind of a profile from its first types of values, and a series of each
//! combination of labels. So a profile has the types of one kind, and labels have few values: the
//! group of the thread, the endpoint, the cause, and those of the program. The span makes no series
//! there. Numbers of threads, traces, details and owners are left out.

use std::collections::{BTreeMap, HashMap};
use std::io;

use dwell_profile::{NodeId, Profile, Seeds, group_of};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::{File, PART_SAMPLES, Types, sums};
use crate::Program;
use crate::sample_facts::Facts;
use crate::typed_values::{Amount, Column, Key, Rounded};

/// The most samples of a profile: `validation.max-profile-stacktrace-samples` of the server.
const SAMPLES_MAX: usize = 16_000;
/// The most labels of a sample. The server takes 30 of a series, of which it adds some itself.
const LABELS_MAX: usize = 16;
/// The most bytes of a label's value; the server refuses more than 2,048.
const VALUE_MAX: usize = 1024;
/// Names of labels that have a meaning for the server.
const RESERVED: [&str; 9] = [
    "thread",
    "endpoint",
    "cause",
    "span_id",
    "trace_id",
    "profile_id",
    "service_name",
    "app_name",
    "pyroscope_spy",
];
/// A kind of profile. Its words are those of Go's profiles, by which the server knows the kind.
struct Kind {
    /// Its types of values, the one that is shown first in front.
    types: &'static [Column],
    /// Name and unit of its period; those of the first type if empty.
    period: (&'static str, &'static str),
}

const KINDS: [Kind; 4] = [
    Kind {
        types: &[Column::Measured, Column::Samples],
        period: ("", ""),
    },
    Kind {
        types: &[Column::Wall],
        period: ("", ""),
    },
    Kind {
        types: &[
            Column::AllocatedBytes,
            Column::AllocatedObjects,
            Column::LiveBytes,
            Column::LiveObjects,
        ],
        period: ("space", "bytes"),
    },
    Kind {
        types: &[Column::Blocked, Column::Waits],
        period: ("contentions", "count"),
    },
];

type Labels = Vec<(String, String)>;

/// A profile for each kind of profile that Pyroscope has, as gzipped pprof. Several if there are
/// more samples than the server takes at once.
///
/// # Errors
///
/// None are expected, because the output is in memory.
pub fn pyroscope(profile: &Profile, program: &Program) -> io::Result<Vec<Vec<u8>>> {
    within(profile, program, SAMPLES_MAX)
}

pub(super) fn within(
    profile: &Profile,
    program: &Program,
    most: usize,
) -> io::Result<Vec<Vec<u8>>> {
    let (sums, present) = (merged(profile), Column::of(profile));
    let mut files = Vec::new();
    for kind in KINDS {
        let Some(types) = types(profile, &kind, &present) else {
            continue;
        };
        let mut rounded = [Rounded::default(); Column::COUNT];
        let samples = sums.iter().filter_map(|((node, labels), sums)| {
            let values = types.values(sums, &mut rounded)?;
            Some((*node, labels, values))
        });
        let samples: Vec<_> = samples.collect();
        for (place, part) in samples.chunks(most).enumerate() {
            // The server may drop a second profile of one series and millisecond.
            let time_ns = profile.info().start_ns + 1_000_000 * place as u64;
            let mut file = File::new(profile, GzEncoder::new(Vec::new(), Compression::default()));
            file.head(&program.name, &types, time_ns);
            for (node, labels, values) in part {
                let mut label = Vec::with_capacity(labels.len());
                for (name, value) in *labels {
                    file.label(&mut label, name, value);
                }
                file.sample(*node, values.clone(), label);
                if file.part.sample.len() >= PART_SAMPLES {
                    file.flush()?;
                }
            }
            file.flush()?;
            files.push(file.out.finish()?);
        }
    }
    Ok(files)
}

/// The types of a kind of profile that are present.
fn types(profile: &Profile, kind: &Kind, present: &[Column]) -> Option<Types> {
    let columns = kind.types.iter().copied();
    let columns: Vec<Column> = columns.filter(|it| present.contains(it)).collect();
    let shown = *columns.first()?;
    let (name, unit) = match kind.period {
        ("", _) => shown.words(&profile.info().measured),
        period => period,
    };
    let mut types = Types::of(profile, columns, shown, (name.to_owned(), unit));
    // The server refuses a type with a hyphen (`page-faults`).
    types.period.0 = types.period.0.replace('-', "_");
    for (name, _) in &mut types.words {
        *name = name.replace('-', "_");
    }
    Some(types)
}

/// All samples with their sums, by stack and labels.
fn merged(profile: &Profile) -> BTreeMap<(NodeId, Labels), sums::Sums> {
    let mut known: HashMap<Key<'_>, Labels, Seeds> = HashMap::default();
    let mut merged: BTreeMap<(NodeId, Labels), sums::Sums> = BTreeMap::new();
    for (key, sums) in sums::sums(profile) {
        let of_labels = Key {
            node: NodeId::default(),
            detail: None,
            owner: None,
            ..key
        };
        let labels = known.entry(of_labels);
        let labels = labels
            .or_insert_with(|| labels_of(profile, &of_labels))
            .clone();
        let sum = merged.entry((key.node, labels));
        let sum = sum.or_insert([Amount::Whole(0); Column::COUNT]);
        for (all, more) in sum.iter_mut().zip(sums) {
            *all = all.plus(more);
        }
    }
    merged
}

fn labels_of(profile: &Profile, key: &Key<'_>) -> Labels {
    let facts = Facts::of(profile, key);
    let mut labels = Labels::new();
    let mut add = |name: String, value: &str| {
        let is_new = labels.iter().all(|(known, _)| *known != name);
        if !value.is_empty() && is_new && labels.len() < LABELS_MAX {
            labels.push((
                name,
                value[..value.floor_char_boundary(VALUE_MAX)].to_owned(),
            ));
        }
    };
    add("thread".to_owned(), &group_of(facts.thread));
    add("endpoint".to_owned(), facts.endpoint);
    add("cause".to_owned(), facts.cause);
    if facts.span_id != 0 {
        add("span_id".to_owned(), &format!("{:016x}", facts.span_id));
    }
    for (name, value) in &facts.labels {
        add(label_name(name), value);
    }
    labels
}

/// The name of a label that the program set, in the form that all versions of the server take.
fn label_name(name: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let plain: String = name.chars().map(kept).collect();
    let is_plain = plain.starts_with(|c: char| c.is_ascii_alphabetic());
    match is_plain && !RESERVED.contains(&plain.as_str()) {
        true => plain,
        false => format!("label_{}", plain.trim_start_matches('_')),
    }
}
