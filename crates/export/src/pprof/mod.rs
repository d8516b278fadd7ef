//! pprof: a gzipped `profile.proto` with a value of each type for each stack and its labels.
//!
//! Samples with the same stack, thread, request, cause, detail and owner are one. So all sums are
//! exact. Only times are left out, because pprof has no field for them.

pub(crate) mod message;
mod pyroscope;
mod sums;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::{self, Write};

use dwell_profile::{CallTree, FrameId, MethodId, NodeId, Profile, plain};
use flate2::Compression;
use flate2::write::GzEncoder;
use message::{Function, Label, Line, Location, Mapping, Sample, ValueType};
use prost::Message as _;
pub use pyroscope::pyroscope;
use sums::Sums;

use crate::comments::comments;
use crate::sample_facts::{Facts, UNNAMED, library};
use crate::typed_values::{Amount, Column, Key, Rounded};
use crate::{NO_STACK, Program};

/// Samples of a part, which is kept in memory until it is written.
const PART_SAMPLES: usize = 4096;
/// The keys of our labels. Another label with such a name gets a prefix.
const KEYS: [&str; 8] = [
    "thread",
    "thread_id",
    "endpoint",
    "trace_id",
    "span_id",
    "cause",
    "detail",
    "owner",
];

/// Writes a profile for pprof. Returns its number of samples.
///
/// # Errors
///
/// Only those of `out`.
pub fn pprof(profile: &Profile, program: &Program, out: &mut impl Write) -> io::Result<usize> {
    let types = Types::all(profile);
    let mut file = File::new(profile, GzEncoder::new(out, Compression::default()));
    file.head(&program.name, &types, profile.info().start_ns);
    let mut rounded = [Rounded::default(); Column::COUNT];
    let mut count = 0;
    for (key, sums) in sums::sums(profile) {
        let Some(value) = types.values(&sums, &mut rounded) else {
            continue;
        };
        let label = file.labels(&key);
        file.sample(key.node, value, label);
        count += 1;
        if file.part.sample.len() >= PART_SAMPLES {
            file.flush()?;
        }
    }
    file.flush()?;
    file.out.finish()?;
    Ok(count)
}

/// The types of values of a file.
struct Types {
    columns: Vec<Column>,
    /// Their names and units.
    words: Vec<(String, &'static str)>,
    /// The type that tools show first.
    shown: Column,
    /// Name and unit of the distance between samples.
    period: (String, &'static str),
}

impl Types {
    /// All types of a profile.
    fn all(profile: &Profile) -> Types {
        let shown = Column::first(profile);
        let (name, unit) = shown.words(&profile.info().measured);
        let period = (name.to_owned(), unit);
        Types::of(profile, Column::of(profile), shown, period)
    }

    fn of(
        profile: &Profile,
        columns: Vec<Column>,
        shown: Column,
        period: (String, &'static str),
    ) -> Types {
        let words = columns.iter().map(|column| {
            let (name, unit) = column.words(&profile.info().measured);
            (name.to_owned(), unit)
        });
        let words = words.collect();
        Types {
            columns,
            words,
            shown,
            period,
        }
    }

    /// The values of a sample. `None` if all are 0: such a sample is left out.
    fn values(&self, sums: &Sums, rounded: &mut [Rounded; Column::COUNT]) -> Option<Vec<i64>> {
        let values = self.columns.iter().map(|column| {
            let place = *column as usize;
            let sum = sums.get(place).copied().unwrap_or(Amount::Whole(0));
            rounded.get_mut(place).map_or(0, |it| it.value(sum))
        });
        let values: Vec<i64> = values.collect();
        values.iter().any(|value| *value != 0).then_some(values)
    }
}

/// The output.
struct File<'p, W: Write> {
    profile: &'p Profile,
    out: GzEncoder<W>,
    /// The part that is not written yet.
    part: message::Profile,
    texts: HashMap<String, i64>,
    /// The ids of written entries, by their indexes in the profile; 0: not written.
    locations: Vec<u64>,
    functions: Vec<u64>,
    mappings: HashMap<i64, u64>,
    last_location: u64,
    last_function: u64,
    /// The location of samples without a stack.
    no_stack: u64,
}

impl<'p, W: Write> File<'p, W> {
    fn new(profile: &'p Profile, out: GzEncoder<W>) -> File<'p, W> {
        File {
            profile,
            out,
            part: message::Profile::default(),
            texts: HashMap::new(),
            locations: vec![0; profile.frames().len()],
            functions: vec![0; profile.methods().len()],
            mappings: HashMap::new(),
            last_location: 0,
            last_function: 0,
            no_stack: 0,
        }
    }

    /// Writes everything except samples and their entries.
    fn head(&mut self, program: &str, types: &Types, time_ns: u64) {
        // The format requires this text as the first one.
        self.text("");
        let (profile, info) = (self.profile, self.profile.info());
        // Tools show the first mapping as the program.
        self.mapping(match program {
            "" => &info.jvm_name,
            name => name,
        });
        for (column, (name, unit)) in types.columns.iter().zip(&types.words) {
            let value_type = self.value_type(name, unit);
            if *column == types.shown {
                self.part.default_sample_type = value_type.r#type;
            }
            self.part.sample_type.push(value_type);
        }
        let (name, unit) = &types.period;
        self.part.period_type = Some(self.value_type(name, unit));
        let objects = profile.allocation_sampling();
        self.part.period = match types.shown {
            Column::Measured => signed(info.interval_ns),
            Column::Samples => 1,
            Column::AllocatedBytes => objects.map_or(0, |it| signed(it.interval_bytes)),
            _ => 0,
        };
        self.part.time_nanos = signed(time_ns);
        self.part.duration_nanos = signed(info.duration_ns);
        for comment in comments(profile) {
            let comment = self.text(&comment);
            self.part.comment.push(comment);
        }
    }

    fn value_type(&mut self, name: &str, unit: &str) -> ValueType {
        ValueType {
            r#type: self.text(name),
            unit: self.text(unit),
        }
    }

    fn sample(&mut self, node: NodeId, value: Vec<i64>, label: Vec<Label>) {
        let sample = Sample {
            location_id: self.stack(node),
            value,
            label,
        };
        self.part.sample.push(sample);
    }

    fn stack(&mut self, node: NodeId) -> Vec<u64> {
        if node == CallTree::ROOT {
            return vec![self.no_stack()];
        }
        let frames = self.profile.tree().stack(node);
        frames.map(|frame| self.location(frame)).collect()
    }

    fn no_stack(&mut self) -> u64 {
        if self.no_stack == 0 {
            let function = self.add_function(NO_STACK, NO_STACK);
            self.no_stack = self.add_location(1, function, 0);
        }
        self.no_stack
    }

    fn location(&mut self, frame: FrameId) -> u64 {
        let profile = self.profile;
        let known = self.locations.get(frame as usize).copied();
        let Some(it) = profile.frames().get(frame as usize) else {
            return self.no_stack();
        };
        if let Some(known @ 1..) = known {
            return known;
        }
        let mapping = match library(profile, it) {
            "" => 1,
            library => self.mapping(library),
        };
        let function = self.function(it.method);
        let id = self.add_location(mapping, function, i64::from(it.line));
        if let Some(known) = self.locations.get_mut(frame as usize) {
            *known = id;
        }
        id
    }

    fn function(&mut self, method: MethodId) -> u64 {
        if let Some(known @ 1..) = self.functions.get(method as usize).copied() {
            return known;
        }
        let profile = self.profile;
        let name = profile.method_name(method);
        let descriptor = profile.methods().get(method as usize);
        let descriptor = descriptor.map_or("", |it| profile.names().text(it.descriptor));
        let id = self.add_function(&name, &format!("{name}{descriptor}"));
        if let Some(known) = self.functions.get_mut(method as usize) {
            *known = id;
        }
        id
    }

    fn add_function(&mut self, name: &str, system_name: &str) -> u64 {
        self.last_function += 1;
        let function = Function {
            id: self.last_function,
            name: self.text(if name.is_empty() { UNNAMED } else { name }),
            system_name: self.text(system_name),
            ..Function::default()
        };
        self.part.function.push(function);
        function.id
    }

    fn add_location(&mut self, mapping_id: u64, function_id: u64, line: i64) -> u64 {
        self.last_location += 1;
        self.part.location.push(Location {
            id: self.last_location,
            mapping_id,
            line: vec![Line { function_id, line }],
        });
        self.last_location
    }

    /// For a mapping with this flag, tools do not search for symbols.
    fn mapping(&mut self, filename: &str) -> u64 {
        let filename = self.text(filename);
        let next = self.mappings.len() as u64 + 1;
        let id = *self.mappings.entry(filename).or_insert(next);
        if id == next {
            self.part.mapping.push(Mapping {
                id,
                filename,
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                has_inline_frames: true,
            });
        }
        id
    }

    fn labels(&mut self, key: &Key<'_>) -> Vec<Label> {
        let facts = Facts::of(self.profile, key);
        let mut labels = Vec::with_capacity(KEYS.len());
        self.label(&mut labels, "thread", facts.thread);
        if facts.thread_id != 0 {
            let (key, num) = (self.text("thread_id"), facts.thread_id);
            labels.push(Label { key, str: 0, num });
        }
        self.label(&mut labels, "endpoint", facts.endpoint);
        if facts.trace_id != 0 {
            self.label(&mut labels, "trace_id", &format!("{:032x}", facts.trace_id));
        }
        if facts.span_id != 0 {
            self.label(&mut labels, "span_id", &format!("{:016x}", facts.span_id));
        }
        for (name, value) in &facts.labels {
            match KEYS.contains(name) {
                true => self.label(&mut labels, &format!("label.{name}"), value),
                false => self.label(&mut labels, name, value),
            }
        }
        self.label(&mut labels, "cause", facts.cause);
        self.label(&mut labels, "detail", facts.detail);
        self.label(&mut labels, "owner", facts.owner);
        labels
    }

    fn label(&mut self, labels: &mut Vec<Label>, key: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        labels.push(Label {
            key: self.text(key),
            str: self.text(value),
            num: 0,
        });
    }

    /// The index of a text in the string table.
    fn text(&mut self, text: &str) -> i64 {
        if let Some(known) = self.texts.get(text) {
            return *known;
        }
        let place = self.texts.len() as i64;
        self.texts.insert(text.to_owned(), place);
        self.part.string_table.push(plain(text));
        place
    }

    fn flush(&mut self) -> io::Result<()> {
        let part = std::mem::take(&mut self.part);
        self.out.write_all(&part.encode_to_vec())
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
