//! Decodes samples along a plan made once per event type: no allocation, no string compare and no
//! search for fields on the way.

use super::cursor::Cursor;
use super::error::Error;
use super::metadata::{Class, Field, Known, Types, Unit, Wire};
use super::model::{Sample, SampleKind};
use super::pools::skip_field;
use super::resolve::Resolver;
use crate::ThreadState;

/// What to do with the fields of a sample, in their order.
pub(crate) struct SamplePlan<'a> {
    kind: SampleKind,
    steps: Vec<Step<'a>>,
}

enum Step<'a> {
    Time,
    Thread(usize),
    Carrier(usize),
    Stack(usize),
    State(usize),
    /// The weight; ticks have to be converted, the rest is multiplied.
    Weight(Unit),
    Failure,
    Failed,
    Biased,
    Skip(&'a Field),
}

impl<'a> SamplePlan<'a> {
    /// The plan for a type, if it is one of the sample types.
    pub(crate) fn new(types: &Types, class: &'a Class) -> Option<Self> {
        let kind = SampleKind::from_event_name(&class.name)?;
        let steps = class
            .fields
            .iter()
            .map(|field| step(types, field))
            .collect();
        Some(Self { kind, steps })
    }

    /// Reads the fields of a sample; the cursor has passed the type.
    pub(crate) fn read(
        &self,
        resolver: &mut Resolver<'a>,
        mut cursor: Cursor<'a>,
    ) -> Result<Sample, Error> {
        let cursor = &mut cursor;
        let mut ticks = resolver.info.start_ticks;
        let (mut thread, mut stack, mut carrier, mut failure) = (None, None, None, None);
        let (mut state, mut weight_ns, mut biased) = (ThreadState::Runnable, None, false);
        for step in &self.steps {
            match *step {
                Step::Time => ticks = cursor.varint()?,
                Step::Thread(class) => thread = Some(resolver.thread(class, cursor.varint()?)),
                Step::Stack(class) => stack = Some(resolver.stack(class, cursor.varint()?)),
                Step::State(class) => state = resolver.state(class, cursor.varint()?),
                Step::Carrier(class) => {
                    let key = cursor.varint()?;
                    carrier = (key != 0).then(|| resolver.thread(class, key));
                }
                Step::Weight(unit) => weight_ns = Some(weight(resolver, unit, cursor.varint()?)),
                Step::Failure => {
                    let text = resolver.read_string(cursor)?;
                    failure = text.map(|text| resolver.tables.failures.place(text));
                }
                Step::Failed => {
                    if cursor.byte()? != 0 {
                        failure = Some(resolver.tables.failures.place("failed".into()));
                    }
                }
                Step::Biased => biased = cursor.byte()? != 0,
                Step::Skip(field) => skip_field(resolver.types, field, cursor)?,
            }
        }
        Ok(Sample {
            time_ns: resolver.info.time_ns(ticks),
            weight_ns,
            thread: thread.unwrap_or_else(|| resolver.thread(usize::MAX, 0)),
            carrier,
            stack: stack.unwrap_or_else(|| resolver.stack(usize::MAX, 0)),
            failure,
            state,
            kind: self.kind,
            biased,
        })
    }
}

fn step<'a>(types: &Types, field: &'a Field) -> Step<'a> {
    let known = match field.wire {
        Wire::Pooled(class) => types.class(class).map(|class| (class.known, class)),
        _ => None,
    };
    match (&*field.name, field.wire, known.map(|(known, _)| known)) {
        _ if field.array => Step::Skip(field),
        ("startTime", Wire::Long, _) => Step::Time,
        ("sampledThread" | "eventThread", Wire::Pooled(class), Some(Known::Thread)) => {
            Step::Thread(class)
        }
        ("carrier", Wire::Pooled(class), Some(Known::Thread)) => Step::Carrier(class),
        ("stackTrace", Wire::Pooled(class), Some(Known::Stack)) => Step::Stack(class),
        ("state", Wire::Pooled(class), _) => Step::State(class),
        ("weight" | "samplingPeriod", Wire::Long, _) => Step::Weight(field.unit),
        ("failure", Wire::Text, _) => Step::Failure,
        ("failed", Wire::Bool, _) => Step::Failed,
        ("biased", Wire::Bool, _) => Step::Biased,
        _ => Step::Skip(field),
    }
}

fn weight(resolver: &Resolver<'_>, unit: Unit, value: u64) -> u64 {
    match unit {
        Unit::SpanTicks => {
            let ns = resolver.info.span_ns(value.cast_signed());
            u64::try_from(ns).unwrap_or_default()
        }
        Unit::Span(nanos) => value.saturating_mul(nanos.unsigned_abs()),
        _ => value,
    }
}
