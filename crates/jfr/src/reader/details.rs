//! Completes the JDK's events from detail events of dwell. A detail holds for all later events of
//! its kind and thread in the chunk: see `writer::details`. The reader adds its fields to those
//! events, as if the events had them, like events of older recordings.

use super::constant_pools::skip_field;
use super::cursor::Cursor;
use super::error::Error;
use super::metadata::{Class, Types};
use super::model::{Context, GenericEvent, Sample, Value};
use super::resolve::Resolver;
use super::samples::hex_number;
use super::shared::Links;
use crate::hash::Seeds;
use std::collections::HashMap;
use std::sync::Arc;

/// Fields that are taken over; others, which a file of somebody else could have, are left.
const FIELDS: [&str; 9] = [
    "weight",
    "objectSize",
    "failure",
    "carrier",
    "traceId",
    "spanId",
    "localRootSpanId",
    "endpoint",
    "labels",
];

/// The events that a detail completes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Of {
    Execution,
    Allocation,
    Wait,
    /// Only what its thread works for.
    Wall,
}

/// The role of an event: it completes others, or is completed.
#[derive(Clone, Copy)]
enum Role {
    Detail(Of),
    Context,
    Subject(Of),
}

/// Which part an event of some type has in this.
pub(super) struct Part {
    role: Role,
    /// How many fields stand before the thread.
    before: usize,
}

impl Part {
    /// The part of events of a type, if they have one.
    pub(super) fn of(class: &Class) -> Option<Part> {
        let role = match &*class.name {
            "dwell.SampleDetail" => Role::Detail(Of::Execution),
            "dwell.AllocationDetail" => Role::Detail(Of::Allocation),
            "dwell.MonitorDetail" => Role::Detail(Of::Wait),
            "dwell.ThreadContext" => Role::Context,
            "jdk.ExecutionSample" => Role::Subject(Of::Execution),
            "jdk.ObjectAllocationSample" => Role::Subject(Of::Allocation),
            "jdk.JavaMonitorEnter" => Role::Subject(Of::Wait),
            "dwell.WallSample" => Role::Subject(Of::Wall),
            _ => return None,
        };
        let is_thread = |name: &str| matches!(name, "sampledThread" | "eventThread");
        let mut fields = class.fields.iter();
        let before = fields.position(|field| is_thread(&field.name))?;
        Some(Part { role, before })
    }

    /// Whether events of the type complete others.
    pub(super) fn tells(&self) -> bool {
        !matches!(self.role, Role::Subject(_))
    }

    /// The key of the event's thread in the chunk's pool, which may have no such constant if the
    /// chunk was cut off. The cursor has passed the type.
    pub(super) fn thread(
        &self,
        resolver: &Resolver<'_>,
        class: &Class,
        cursor: Cursor<'_>,
    ) -> Result<u64, Error> {
        self.thread_of(resolver.types, class, cursor)
    }

    /// The same of types without their constants.
    pub(super) fn thread_of(
        &self,
        types: &Types,
        class: &Class,
        mut cursor: Cursor<'_>,
    ) -> Result<u64, Error> {
        for field in class.fields.iter().take(self.before) {
            skip_field(types, field, &mut cursor)?;
        }
        cursor.varint()
    }
}

type Fields = Vec<(Arc<str>, Value)>;

/// The detail of CPU samples of a thread.
#[derive(Clone, Copy, Default)]
struct SampleDetail {
    weight_ns: Option<u64>,
    failure: Option<u32>,
    carrier: Option<u32>,
}

/// The place of a text, which is looked for once: to hash a long one for each event that has it
/// would take long.
fn place(links: &mut Links, text: &Arc<str>, find: impl FnOnce(Arc<str>) -> u32) -> u32 {
    let place = (links.get(text)).unwrap_or_else(|| find(Arc::clone(text)));
    links.keep(text, place);
    place
}

/// The details in force, by the keys of their threads.
#[derive(Default)]
pub(super) struct Details {
    samples: HashMap<u64, SampleDetail, Seeds>,
    others: HashMap<(Of, u64), Fields, Seeds>,
    contexts: HashMap<u64, (Option<u32>, Fields), Seeds>,
    failures: Links,
    texts: Links,
    /// Whether any of these has anything.
    has_any: bool,
}

impl Details {
    /// Whether there are no details, so that events need no look-up.
    pub(super) fn is_empty(&self) -> bool {
        !self.has_any
    }

    /// Keeps the detail `event` for the later events of the thread.
    pub(super) fn take(
        &mut self,
        part: &Part,
        thread: u64,
        event: &GenericEvent,
        resolver: &mut Resolver<'_>,
    ) {
        self.has_any = true;
        let taken = |(name, value): &&(Arc<str>, Value)| {
            let is_scalar = !matches!(value, Value::Null | Value::Array(_) | Value::Struct(_));
            is_scalar && FIELDS.contains(&&**name)
        };
        let mut fields: Fields = Vec::new();
        for (name, value) in event.fields.iter().filter(taken) {
            // Once each: all later events read them.
            if fields.iter().all(|(known, _)| known != name) {
                fields.push((Arc::clone(name), value.clone()));
            }
        }
        match part.role {
            Role::Detail(Of::Execution) => {
                let failure = text(event, "failure").filter(|text| !text.is_empty());
                let detail = SampleDetail {
                    weight_ns: event.int("weight").map(i64::cast_unsigned),
                    failure: failure.map(|text| {
                        let failures = &mut resolver.tables.failures;
                        place(&mut self.failures, text, |text| failures.place(text))
                    }),
                    carrier: match event.get("carrier") {
                        Some(Value::Thread(place)) => Some(*place),
                        _ => None,
                    },
                };
                self.samples.insert(thread, detail);
            }
            Role::Detail(of) => {
                self.others.insert((of, thread), fields);
            }
            Role::Context => {
                let place = self.context(event, resolver);
                self.contexts.insert(thread, (place, fields));
            }
            Role::Subject(_) => {}
        }
    }

    /// The place of what a thread works for; `None`: nothing.
    fn context(&mut self, event: &GenericEvent, resolver: &mut Resolver<'_>) -> Option<u32> {
        let id = |name| text(event, name).map_or(0, |digits| hex_number(digits));
        let texts = &mut resolver.tables.texts;
        let mut place_of = |name| {
            let text = text(event, name)?;
            Some(place(&mut self.texts, text, |text| texts.place(text)))
        };
        let context = Context {
            trace_id: id("traceId"),
            span_id: id("spanId") as u64,
            local_root_span_id: id("localRootSpanId") as u64,
            endpoint: place_of("endpoint"),
            labels: place_of("labels"),
        };
        (context != Context::default()).then(|| resolver.tables.contexts.place(context))
    }

    /// Adds what is known of a sample of the thread.
    pub(super) fn complete_sample(&self, part: &Part, thread: u64, sample: &mut Sample) {
        if let (Role::Subject(Of::Execution), Some(detail)) = (part.role, self.samples.get(&thread))
        {
            sample.weight_ns = detail.weight_ns.or(sample.weight_ns);
            sample.failure = detail.failure.or(sample.failure);
            sample.carrier = detail.carrier.or(sample.carrier);
        }
        if let Some((place, _)) = self.contexts.get(&thread) {
            sample.context = place.or(sample.context);
        }
    }

    /// The same of another event.
    pub(super) fn complete(&self, part: &Part, thread: u64, event: &mut GenericEvent) {
        let Role::Subject(of) = part.role else { return };
        let detail = self.others.get(&(of, thread));
        let context = self.contexts.get(&thread).map(|(_, fields)| fields);
        for (name, value) in detail.into_iter().chain(context).flatten() {
            if event.get(name).is_none() {
                event.fields.push((Arc::clone(name), value.clone()));
            }
        }
    }
}

/// The text in a field.
fn text<'e>(event: &'e GenericEvent, name: &str) -> Option<&'e Arc<str>> {
    match event.get(name) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}
