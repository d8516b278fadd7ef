//! pprof's `profile.proto`, of Go, async-profiler, Datadog, this crate and others.

use std::collections::HashMap;

use dwell_profile::{Context, ContextId, FrameId, FrameKind, NodeId, Profile};
use prost::Message as _;

use super::memory_and_locks::{Held, Pair};
use super::sums_and_threads::{Chosen, Facts, Model, Quantity};
use super::{DEPTH_MAX, Function, Refused, add_stack};
use crate::pprof::message;

/// The format's name.
const FORMAT: &str = "pprof";
/// Labels with a meaning in reports.
const THREAD: [&str; 3] = ["thread", "thread name", "thread_name"];
const THREAD_ID: [&str; 3] = ["thread_id", "thread id", "tid"];
const ENDPOINT: [&str; 2] = ["endpoint", "trace endpoint"];
/// The most functions at one place of code; more are a damaged file.
const INLINED_MAX: usize = 256;

/// The profile in a file; `None` if it is in another format.
pub fn read(bytes: &[u8]) -> Result<Option<Profile>, Refused> {
    let Ok(file) = message::Profile::decode(bytes) else {
        return Ok(None);
    };
    let is_pprof = file.string_table.first().is_some_and(String::is_empty);
    if !is_pprof || file.sample_type.is_empty() {
        return Ok(None);
    }
    let file = File::new(&file);
    let types = file.file.sample_type.iter();
    let types: Vec<_> = types
        .map(|it| (file.text(it.r#type), file.text(it.unit)))
        .collect();
    let mut chosen = Chosen::of(FORMAT, &types)?;
    for pair in &mut chosen.held {
        file.measure(pair);
    }
    let counted = chosen.count.and_then(|place| types.get(place));
    let counted = counted.map_or("", |it| it.0).to_owned();
    let mut reader = Reader {
        model: Model::new(&chosen),
        file,
        stacks: HashMap::new(),
        locations: HashMap::new(),
    };
    for sample in &reader.file.file.sample {
        reader.add(sample, &chosen);
    }
    Ok(Some(reader.finish(&chosen, &counted)))
}

/// A decoded file with its tables by id.
struct File<'f> {
    file: &'f message::Profile,
    locations: HashMap<u64, &'f message::Location>,
    functions: HashMap<u64, &'f message::Function>,
    mappings: HashMap<u64, &'f message::Mapping>,
}

impl<'f> File<'f> {
    fn new(file: &'f message::Profile) -> File<'f> {
        File {
            file,
            locations: file.location.iter().map(|it| (it.id, it)).collect(),
            functions: file.function.iter().map(|it| (it.id, it)).collect(),
            mappings: file.mapping.iter().map(|it| (it.id, it)).collect(),
        }
    }

    fn text(&self, place: i64) -> &'f str {
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        self.file.string_table.get(place).map_or("", String::as_str)
    }

    fn label(&self, sample: &'f message::Sample, keys: &[&str]) -> Option<&'f message::Label> {
        let mut labels = sample.label.iter();
        labels.find(|it| keys.contains(&self.text(it.key)))
    }

    /// Finds out how a kind of events was sampled.
    fn measure(&self, pair: &mut Pair) {
        let period = self.file.period_type.filter(|it| {
            let (name, unit) = (self.text(it.r#type), self.text(it.unit));
            pair.is_of_period(name, unit)
        });
        let number = |value: i64| u64::try_from(value).unwrap_or(0);
        pair.period = period.map_or(0, |_| number(self.file.period));
        let all = self.file.sample.iter().fold(0u64, |all, sample| {
            let (sum, number) = sums(sample, pair);
            all.saturating_add(pair.sampled(sum, number))
        });
        pair.put_together(all);
        pair.has_classes |= self.is_ours();
    }

    /// Whether this crate has written it: objects and locks have their class as innermost frame.
    fn is_ours(&self) -> bool {
        let mut comments = self.file.comment.iter().map(|it| self.text(*it));
        comments.any(|it| it == crate::comments::CLASSES)
    }

    /// The name of the innermost function of a sample.
    fn innermost(&self, sample: &message::Sample) -> &'f str {
        let location = sample.location_id.first();
        let location = location.and_then(|id| self.locations.get(id));
        let line = location.and_then(|it| it.line.first());
        let function = line.and_then(|it| self.functions.get(&it.function_id));
        function.map_or("", |it| self.text(it.name))
    }

    /// A label's text; empty without one.
    fn label_text(&self, sample: &'f message::Sample, keys: &[&str]) -> &'f str {
        let label = self.label(sample, keys);
        label.map_or("", |it| self.text(it.str))
    }
}

/// The sum and the number of a sample's events.
fn sums(sample: &message::Sample, pair: &Pair) -> (u64, u64) {
    let value = |place: usize| sample.value.get(place).copied().unwrap_or(0);
    let number = pair.number.map_or(0, value);
    (
        pair.value(value(pair.sum)),
        u64::try_from(number).unwrap_or(0),
    )
}

/// A profile under construction.
struct Reader<'f> {
    model: Model,
    file: File<'f>,
    stacks: HashMap<&'f [u64], NodeId>,
    /// The frames of locations, outermost first.
    locations: HashMap<u64, Vec<FrameId>>,
}

impl<'f> Reader<'f> {
    fn add(&mut self, sample: &'f message::Sample, chosen: &Chosen) {
        let value = |place: usize| sample.value.get(place).copied().unwrap_or(0);
        let time = |of: Option<(usize, Quantity)>| of.map(|(place, it)| it.value(value(place)));
        let (cpu, wall) = (time(chosen.cpu), time(chosen.wall));
        let samples = chosen
            .count
            .map_or(1, |place| Quantity::Count.value(value(place)));
        let facts = Facts {
            time_ns: u64::try_from(self.file.file.time_nanos).unwrap_or(0),
            thread: self.thread(sample),
            node: self.stack(&sample.location_id),
            context: self.context(sample),
            cause: self.file.label_text(sample, &["cause"]),
            detail: self.file.label_text(sample, &["detail"]),
        };
        // Without times, samples are counted.
        let ran = match chosen.is_counted() {
            true => samples,
            false => cpu.unwrap_or(0),
        };
        if ran > 0 {
            self.model.ran(&facts, ran, samples);
        }
        // Running is a part of wall time.
        let waited = wall.map_or(0, |wall| wall.saturating_sub(ran));
        self.model.waited(&facts, waited, samples);
        for pair in &chosen.held {
            self.held(&facts, sample, pair);
        }
    }

    /// Adds objects, or waits for a lock.
    fn held(&mut self, facts: &Facts<'_>, sample: &'f message::Sample, pair: &Pair) {
        let (sum, number) = sums(sample, pair);
        if sum == 0 {
            return;
        }
        let size = self.file.label(sample, &["bytes"]);
        let held = Held {
            sum,
            number,
            innermost: self.file.innermost(sample),
            size: size.map_or(0, |it| it.num),
        };
        self.model.held(facts, pair, &held);
    }

    fn stack(&mut self, locations: &'f [u64]) -> NodeId {
        if let Some(known) = self.stacks.get(locations) {
            return *known;
        }
        let mut frames = Vec::new();
        for id in locations {
            if !self.locations.contains_key(id) {
                let new = self.location(*id);
                self.locations.insert(*id, new);
            }
            let place = self.locations.get(id).into_iter().flatten();
            frames.extend(place.rev().copied());
            if frames.len() > DEPTH_MAX {
                break;
            }
        }
        let node = add_stack(&mut self.model.builder, frames);
        self.stacks.insert(locations, node);
        node
    }

    fn location(&mut self, id: u64) -> Vec<FrameId> {
        let file = &self.file;
        let Some(location) = file.locations.get(&id).copied() else {
            return Vec::new();
        };
        let mapping = file.mappings.get(&location.mapping_id);
        let library = mapping.map_or("", |it| file.text(it.filename));
        if location.line.is_empty() {
            let unknown = Function {
                text: "[unknown]",
                library,
                kind: Some(FrameKind::Native),
                ..Function::default()
            };
            return vec![unknown.frame(&mut self.model.builder)];
        }
        let mut frames = Vec::new();
        // The last line is that of the function into which the others were compiled.
        for line in location.line.iter().rev().take(INLINED_MAX) {
            let function = file.functions.get(&line.function_id);
            let text = function.map_or("", |it| file.text(it.name));
            if text == crate::NO_STACK {
                continue;
            }
            let text = if text.is_empty() { "[unknown]" } else { text };
            let function = Function {
                text,
                library,
                source: function.map_or("", |it| file.text(it.filename)),
                line: u32::try_from(line.line).unwrap_or(0),
                kind: None,
            };
            let is_inlined = !frames.is_empty();
            frames.push(function.inlined(is_inlined).frame(&mut self.model.builder));
        }
        frames
    }

    fn thread(&mut self, sample: &'f message::Sample) -> u32 {
        let name = self.file.label_text(sample, &THREAD);
        let id = self.file.label(sample, &THREAD_ID);
        let id = id.map_or(0, |it| match it.num {
            0 => self.file.text(it.str).parse().unwrap_or(0),
            num => num,
        });
        self.model.thread(name, id)
    }

    /// The request of a sample.
    fn context(&mut self, sample: &'f message::Sample) -> Option<ContextId> {
        let hex = |key| u128::from_str_radix(self.file.label_text(sample, &[key]), 16).ok();
        let (trace_id, span_id) = (hex("trace_id"), hex("span_id"));
        let endpoint = self.file.label_text(sample, &ENDPOINT);
        if trace_id.is_none() && endpoint.is_empty() {
            return None;
        }
        let builder = &mut self.model.builder;
        let endpoint = (!endpoint.is_empty()).then(|| builder.name(endpoint));
        Some(builder.context(Context {
            trace_id: trace_id.unwrap_or(0),
            span_id: u64::try_from(span_id.unwrap_or(0)).unwrap_or(0),
            endpoint,
            ..Context::default()
        }))
    }

    fn finish(mut self, chosen: &Chosen, counted: &str) -> Profile {
        let (texts, file) = (&self.file, self.file.file);
        let number = |value: i64| u64::try_from(value).unwrap_or(0);
        let info = &mut self.model.builder.info;
        info.start_ns = number(file.time_nanos);
        info.duration_ns = number(file.duration_nanos);
        let is_cpu =
            |it: &message::ValueType| Quantity::is_cpu(texts.text(it.r#type), texts.text(it.unit));
        if let Some(period) = file.period_type.filter(is_cpu) {
            let scale = Quantity::of(texts.text(period.r#type), texts.text(period.unit));
            info.interval_ns = scale.map_or(0, |it| it.value(file.period));
        }
        let comments = file.comment.iter().map(|it| texts.text(*it));
        let program = comments
            .filter_map(|it| it.strip_prefix("program: "))
            .next();
        info.java_arguments = program.unwrap_or("").to_owned();
        self.model.finish(FORMAT, chosen, counted, false)
    }
}
