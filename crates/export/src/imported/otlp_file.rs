//! OTLP's `ProfilesData`, of async-profiler, OpenTelemetry's collector, this crate and others.

use std::collections::HashMap;

use dwell_profile::{Context, ContextId, FrameId, FrameKind, NodeId, Profile, ThreadId};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::profiles::v1development as message;
use prost::Message as _;

use super::memory_and_locks::{Held, Pair};
use super::sums_and_threads::{Chosen, Facts, Model, Quantity};
use super::{DEPTH_MAX, Function, Refused, add_stack};

/// The format's name.
const FORMAT: &str = "OTLP";
/// The most functions at one place of code; more are a damaged file.
const INLINED_MAX: usize = 256;

/// The profile in a file; `None` if it is in another format.
pub fn read(bytes: &[u8]) -> Result<Option<Profile>, Refused> {
    let Ok(data) = message::ProfilesData::decode(bytes) else {
        return Ok(None);
    };
    let Some(tables) = data.dictionary.as_ref() else {
        return Ok(None);
    };
    if !tables.string_table.first().is_some_and(String::is_empty) {
        return Ok(None);
    }
    let tables = Tables(tables);
    let scopes = data
        .resource_profiles
        .iter()
        .flat_map(|it| &it.scope_profiles);
    let profiles: Vec<_> = scopes.flat_map(|it| &it.profiles).collect();
    let types = profiles.iter().map(|it| tables.words(it.sample_type));
    let types: Vec<_> = types.collect();
    let mut chosen = Chosen::of(FORMAT, &types)?;
    let mut scopes = data
        .resource_profiles
        .iter()
        .flat_map(|it| &it.scope_profiles);
    let is_ours = scopes.any(|it| {
        it.scope
            .as_ref()
            .is_some_and(|it| it.name == crate::otlp::SCOPE)
    });
    for pair in &mut chosen.held {
        pair.has_classes |= is_ours;
    }
    let mut reader = Reader {
        model: Model::new(&chosen),
        tables,
        stacks: HashMap::new(),
        locations: HashMap::new(),
        ran: HashMap::new(),
        has_causes: tables.has_key("dwell.cause"),
        has_times: false,
        end_ns: 0,
    };
    let counted = chosen.count.and_then(|place| types.get(place).copied());
    let typed = profiles.iter().copied().zip(types.iter().copied());
    let parts = typed.filter_map(|(profile, words)| {
        let quantity = Quantity::of(words.0, words.1)?;
        let is_used = match quantity {
            Quantity::Count => chosen.is_counted() && counted == Some(words),
            Quantity::Cpu(_) | Quantity::Wall(_) => true,
        };
        is_used.then_some((profile, quantity))
    });
    let mut parts: Vec<_> = parts.collect();
    // The running part of wall time is subtracted, so it has to be known before.
    parts.sort_by_key(|(_, quantity)| matches!(quantity, Quantity::Wall(_)));
    for (profile, quantity) in parts {
        reader.add(profile, &|reader, facts, value, _| {
            reader.point(facts, quantity, quantity.value(value));
        });
    }
    for pair in &chosen.held {
        if let Some(profile) = profiles.get(pair.sum) {
            reader.add(profile, &|reader, facts, value, class| {
                reader.held(facts, pair, pair.value(value), class);
            });
        }
    }
    let counted = counted.map_or("", |it| it.0);
    Ok(Some(reader.finish(&data, &chosen, counted)))
}

/// The dictionary of a file. Places outside of its tables are empty entries.
#[derive(Clone, Copy)]
struct Tables<'f>(&'f message::ProfilesDictionary);

/// The entry of a table. The first one stands for none.
fn at<T>(table: &[T], place: i32) -> Option<&T> {
    let place = usize::try_from(place).ok().filter(|place| *place > 0)?;
    table.get(place)
}

fn text_of(value: Option<&AnyValue>) -> &str {
    match value.and_then(|it| it.value.as_ref()) {
        Some(Value::StringValue(text)) => text,
        _ => "",
    }
}

fn number_of(value: Option<&AnyValue>) -> i64 {
    match value.and_then(|it| it.value.as_ref()) {
        Some(Value::IntValue(number)) => *number,
        Some(Value::StringValue(text)) => text.parse().unwrap_or(0),
        _ => 0,
    }
}

impl<'f> Tables<'f> {
    fn text(self, place: i32) -> &'f str {
        at(&self.0.string_table, place).map_or("", String::as_str)
    }

    /// A type's name and unit.
    fn words(self, of: Option<message::ValueType>) -> (&'f str, &'f str) {
        let of = of.unwrap_or_default();
        (self.text(of.type_strindex), self.text(of.unit_strindex))
    }

    fn has_key(self, key: &str) -> bool {
        let mut attributes = self.0.attribute_table.iter();
        attributes.any(|it| self.text(it.key_strindex) == key)
    }

    /// An attribute's value.
    fn attribute(self, places: &'f [i32], keys: &[&str]) -> Option<&'f AnyValue> {
        let mut attributes = places
            .iter()
            .filter_map(|place| at(&self.0.attribute_table, *place));
        let found = attributes.find(|it| keys.contains(&self.text(it.key_strindex)));
        found.and_then(|it| it.value.as_ref())
    }
}

/// A profile under construction.
struct Reader<'f> {
    model: Model,
    tables: Tables<'f>,
    stacks: HashMap<i32, NodeId>,
    /// The frames of locations, outermost first.
    locations: HashMap<i32, Vec<FrameId>>,
    /// CPU time that is still to be subtracted from wall time.
    ran: HashMap<(ThreadId, NodeId), u64>,
    /// Whether wall time says what of it is running.
    has_causes: bool,
    has_times: bool,
    end_ns: u64,
}

impl<'f> Reader<'f> {
    /// Calls `see` for each value of a profile, with its innermost function.
    fn add(
        &mut self,
        profile: &'f message::Profile,
        see: &dyn Fn(&mut Reader<'f>, &Facts<'f>, i64, &'f str),
    ) {
        self.interval(profile);
        self.extend(profile.time_unix_nano, profile.duration_nano);
        for sample in &profile.samples {
            let places = &sample.attribute_indices;
            let thread = self.thread(places);
            let attribute = |key| text_of(self.tables.attribute(places, &[key]));
            let (cause, detail) = (attribute("dwell.cause"), attribute("dwell.detail"));
            let context = self.context(sample);
            let node = self.stack(sample.stack_index);
            let mut facts = Facts {
                time_ns: profile.time_unix_nano,
                thread,
                node,
                context,
                cause,
                detail,
            };
            let times = &sample.timestamps_unix_nano;
            self.has_times |= !times.is_empty();
            // Without values, each time is one event.
            let points = sample.values.len().max(match sample.values.is_empty() {
                true => times.len(),
                false => 0,
            });
            for point in 0..points {
                if let Some(time_ns) = times.get(point) {
                    facts.time_ns = *time_ns;
                    self.extend(*time_ns, 0);
                }
                let value = sample.values.get(point).copied().unwrap_or(1);
                see(self, &facts, value, self.innermost(sample.stack_index));
            }
        }
    }

    /// Adds objects, or waits for a lock. The number of objects is in another profile, and stays
    /// unknown.
    fn held(&mut self, facts: &Facts<'f>, pair: &Pair, sum: u64, innermost: &str) {
        let held = Held {
            sum,
            number: 0,
            innermost,
            size: 0,
        };
        self.model.held(facts, pair, &held);
    }

    /// The name of the innermost function of a stack.
    fn innermost(&self, stack: i32) -> &'f str {
        let tables = self.tables.0;
        let location = at(&tables.stack_table, stack).and_then(|it| it.location_indices.first());
        let location = location.and_then(|place| at(&tables.location_table, *place));
        let line = location.and_then(|it| it.lines.first());
        let function = line.and_then(|it| at(&tables.function_table, it.function_index));
        function.map_or("", |it| self.tables.text(it.name_strindex))
    }

    /// Adds one value at one time.
    fn point(&mut self, facts: &Facts<'_>, quantity: Quantity, value: u64) {
        match quantity {
            _ if value == 0 => {}
            Quantity::Count => self.model.ran(facts, value, value),
            Quantity::Cpu(_) => {
                self.model.ran(facts, value, 1);
                if !self.has_causes {
                    let ran = self.ran.entry((facts.thread, facts.node)).or_default();
                    *ran = ran.saturating_add(value);
                }
            }
            Quantity::Wall(_) => {
                let ran = self.ran.get_mut(&(facts.thread, facts.node));
                let ran = ran.map_or(0, |ran| {
                    let part = value.min(*ran);
                    *ran -= part;
                    part
                });
                self.model.waited(facts, value - ran, 1);
            }
        }
    }

    /// The distance of samples, if it is CPU time.
    fn interval(&mut self, profile: &message::Profile) {
        let (name, unit) = self.tables.words(profile.period_type);
        if let Some(quantity @ Quantity::Cpu(_)) = Quantity::of(name, unit) {
            self.model.builder.info.interval_ns = quantity.value(profile.period);
        }
    }

    /// Makes the recording contain a time.
    fn extend(&mut self, start_ns: u64, duration_ns: u64) {
        if start_ns == 0 {
            return;
        }
        let info = &mut self.model.builder.info;
        info.start_ns = match info.start_ns {
            0 => start_ns,
            known => known.min(start_ns),
        };
        self.end_ns = self.end_ns.max(start_ns.saturating_add(duration_ns));
    }

    fn stack(&mut self, place: i32) -> NodeId {
        if let Some(known) = self.stacks.get(&place) {
            return *known;
        }
        let stack = at(&self.tables.0.stack_table, place);
        let mut frames = Vec::new();
        for location in stack.iter().flat_map(|it| &it.location_indices) {
            if !self.locations.contains_key(location) {
                let new = self.location(*location);
                self.locations.insert(*location, new);
            }
            let place = self.locations.get(location).into_iter().flatten();
            frames.extend(place.rev().copied());
            if frames.len() > DEPTH_MAX {
                break;
            }
        }
        let node = add_stack(&mut self.model.builder, frames);
        self.stacks.insert(place, node);
        node
    }

    fn location(&mut self, place: i32) -> Vec<FrameId> {
        let tables = self.tables;
        let Some(location) = at(&tables.0.location_table, place) else {
            return Vec::new();
        };
        let mapping = at(&tables.0.mapping_table, location.mapping_index);
        let library = mapping.map_or("", |it| tables.text(it.filename_strindex));
        let kind = tables.attribute(&location.attribute_indices, &["profile.frame.type"]);
        let kind = match text_of(kind) {
            "" => None,
            "kernel" => Some(FrameKind::Kernel),
            "native" => Some(FrameKind::Native),
            _ => Some(FrameKind::C2),
        };
        if location.lines.is_empty() {
            let unknown = Function {
                text: "[unknown]",
                library,
                kind: kind.or(Some(FrameKind::Native)),
                ..Function::default()
            };
            return vec![unknown.frame(&mut self.model.builder)];
        }
        let mut frames = Vec::new();
        // The last line is that of the function into which the others were compiled.
        for line in location.lines.iter().rev().take(INLINED_MAX) {
            let function = at(&tables.0.function_table, line.function_index);
            let text = function.map_or("", |it| tables.text(it.name_strindex));
            if text == crate::NO_STACK {
                continue;
            }
            let text = if text.is_empty() { "[unknown]" } else { text };
            let function = Function {
                text,
                library,
                source: function.map_or("", |it| tables.text(it.filename_strindex)),
                line: u32::try_from(line.line).unwrap_or(0),
                kind,
            };
            let is_inlined = !frames.is_empty();
            frames.push(function.inlined(is_inlined).frame(&mut self.model.builder));
        }
        frames
    }

    fn thread(&mut self, places: &'f [i32]) -> ThreadId {
        let name = text_of(self.tables.attribute(places, &["thread.name"]));
        let id = number_of(self.tables.attribute(places, &["thread.id"]));
        self.model.thread(name, id)
    }

    /// The request of a sample.
    fn context(&mut self, sample: &'f message::Sample) -> Option<ContextId> {
        let link = at(&self.tables.0.link_table, sample.link_index);
        let number = |bytes: &[u8]| {
            let bytes = bytes.iter().take(16);
            bytes.fold(0, |number: u128, byte| number << 8 | u128::from(*byte))
        };
        let trace_id = link.map_or(0, |it| number(&it.trace_id));
        let span_id = link.map_or(0, |it| number(&it.span_id));
        let keys = ["dwell.endpoint", "endpoint"];
        let endpoint = text_of(self.tables.attribute(&sample.attribute_indices, &keys));
        if trace_id == 0 && endpoint.is_empty() {
            return None;
        }
        let builder = &mut self.model.builder;
        let endpoint = (!endpoint.is_empty()).then(|| builder.name(endpoint));
        Some(builder.context(Context {
            trace_id,
            span_id: u64::try_from(span_id).unwrap_or(0),
            endpoint,
            ..Context::default()
        }))
    }

    fn finish(mut self, data: &message::ProfilesData, chosen: &Chosen, counted: &str) -> Profile {
        let resources = data.resource_profiles.iter();
        let resources = resources.filter_map(|it| it.resource.as_ref());
        let attributes: Vec<&KeyValue> = resources.flat_map(|it| &it.attributes).collect();
        let value = |key: &str| {
            let found = attributes.iter().find(|it| it.key == key);
            found.and_then(|it| it.value.as_ref())
        };
        let builder = &mut self.model.builder;
        let info = &mut builder.info;
        info.duration_ns = self.end_ns.saturating_sub(info.start_ns);
        info.pid = number_of(value("process.pid"));
        text_of(value("process.runtime.name")).clone_into(&mut info.jvm_name);
        text_of(value("process.runtime.version")).clone_into(&mut info.jvm_version);
        text_of(value("dwell.program")).clone_into(&mut info.java_arguments);
        let processes = data.resource_profiles.len();
        if processes > 1 {
            let warning = format!("the file has {processes} processes, which are added up");
            builder.warnings.push(warning);
        }
        self.model.finish(FORMAT, chosen, counted, self.has_times)
    }
}
