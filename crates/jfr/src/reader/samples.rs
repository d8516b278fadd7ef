//! Decodes samples along a plan made once per event type: no allocation, no string compare and no
//! search for fields on the way.

use super::constant_pools::skip_field;
use super::cursor::{Cursor, RawText};
use super::error::Error;
use super::metadata::{Class, Field, Known, Types, Unit, Wire};
use super::model::{Context, Sample, SampleKind, Wall};
use super::resolve::Resolver;
use crate::ThreadState;

/// The treatment of the fields of a sample, in their order.
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
    /// The weight, multiplied by its unit; ticks are converted by the clock.
    Weight(Unit),
    Failure,
    Failed,
    Biased,
    Duration(Unit),
    Cause,
    Detail,
    Count,
    Choices,
    Owner(usize),
    OwnerStack(usize),
    Id(Id, bool),
    Endpoint,
    Labels,
    Skip(&'a Field),
}

/// The ids of a context.
#[derive(Clone, Copy)]
enum Id {
    Trace,
    Span,
    LocalRoot,
}

impl<'a> SamplePlan<'a> {
    /// The plan for a type, if it is one of the sample types.
    pub(crate) fn new(types: &Types, class: &'a Class) -> Option<Self> {
        let kind = SampleKind::from_event_name(&class.name)?;
        let steps = class
            .fields
            .iter()
            .map(|field| match kind.counts_ticks() {
                true => tick_step(types, field),
                false => step(types, field),
            })
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
        let (mut wall, mut context) = (Wall::default(), Context::default());
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
                Step::Failure => failure = resolver.failure(cursor)?,
                Step::Failed => {
                    let has_failed = cursor.byte()? != 0;
                    failure = failure.or(has_failed.then(|| resolver.failed()));
                }
                Step::Biased => biased = cursor.byte()? != 0,
                Step::Duration(unit) => {
                    wall.duration_ns = weight(resolver, unit, cursor.varint()?);
                }
                Step::Cause => wall.cause = resolver.told(cursor)?,
                Step::Detail => wall.detail = resolver.told(cursor)?,
                Step::Count => wall.count = cursor.varint()?,
                Step::Choices => wall.choices = cursor.varint()?,
                Step::Owner(class) => {
                    let key = cursor.varint()?;
                    wall.owner = (key != 0).then(|| resolver.thread(class, key));
                }
                Step::OwnerStack(class) => {
                    let key = cursor.varint()?;
                    wall.owner_stack = (key != 0).then(|| resolver.stack(class, key));
                }
                Step::Id(..) | Step::Endpoint | Step::Labels => {
                    read_context(step, &mut context, resolver, cursor)?;
                }
                Step::Skip(field) => skip_field(resolver.types, field, cursor)?,
            }
        }
        let context =
            (context != Context::default()).then(|| resolver.tables.contexts.place(context));
        let has_wall = self.kind == SampleKind::Wall || self.kind.counts_ticks();
        let wall = has_wall.then(|| resolver.tables.wall(wall));
        Ok(Sample {
            time_ns: resolver.info.time_ns(ticks),
            count: 1,
            weight_ns,
            thread: thread.unwrap_or_else(|| resolver.thread(usize::MAX, 0)),
            carrier,
            stack: stack.unwrap_or_else(|| resolver.stack(usize::MAX, 0)),
            failure,
            state,
            kind: self.kind,
            biased,
            wall,
            context,
        })
    }
}

/// Reads a field of a context.
fn read_context<'a>(
    step: &Step<'a>,
    context: &mut Context,
    resolver: &mut Resolver<'a>,
    cursor: &mut Cursor<'a>,
) -> Result<(), Error> {
    match *step {
        Step::Id(which, in_hex) => {
            let id = if in_hex {
                hex(resolver, cursor)?
            } else {
                u128::from(cursor.varint()?)
            };
            match which {
                Id::Trace => context.trace_id = id,
                Id::Span => context.span_id = id as u64,
                Id::LocalRoot => context.local_root_span_id = id as u64,
            }
        }
        Step::Endpoint => context.endpoint = resolver.told(cursor)?,
        Step::Labels => context.labels = resolver.told(cursor)?,
        _ => {}
    }
    Ok(())
}

/// A number in hexadecimal digits; 0 if it is none.
fn hex<'a>(resolver: &mut Resolver<'a>, cursor: &mut Cursor<'a>) -> Result<u128, Error> {
    Ok(match cursor.text()? {
        RawText::Null => 0,
        RawText::Text(text) => hex_number(&text),
        RawText::Pooled(key) => {
            let class = resolver.types.string_place();
            let text = class.and_then(|class| resolver.text(class, key));
            text.map_or(0, |text| hex_number(&text))
        }
    })
}

/// The same of a text. Many events may have one that is long and no number.
pub(super) fn hex_number(text: &str) -> u128 {
    const DIGITS_MAX: usize = 64;
    let digits = (text.len() <= DIGITS_MAX).then_some(text);
    digits.map_or(0, |digits| u128::from_str_radix(digits, 16).unwrap_or(0))
}

/// The step of a field of samples that count ticks: their weight is a number of ticks.
fn tick_step<'a>(types: &Types, field: &'a Field) -> Step<'a> {
    match (&*field.name, field.wire) {
        ("weight" | "samples", Wire::Long | Wire::Int) if !field.array => Step::Count,
        _ => step(types, field),
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
        ("duration", Wire::Long, _) => Step::Duration(field.unit),
        ("cause", Wire::Text, _) => Step::Cause,
        ("detail", Wire::Text, _) => Step::Detail,
        ("count", Wire::Long, _) => Step::Count,
        ("choices", Wire::Long, _) => Step::Choices,
        ("owner", Wire::Pooled(class), Some(Known::Thread)) => Step::Owner(class),
        ("ownerStackTrace", Wire::Pooled(class), Some(Known::Stack)) => Step::OwnerStack(class),
        ("traceId", Wire::Text, _) => Step::Id(Id::Trace, true),
        ("spanId", wire @ (Wire::Text | Wire::Long), _) => Step::Id(Id::Span, is_text(wire)),
        ("localRootSpanId", wire @ (Wire::Text | Wire::Long), _) => {
            Step::Id(Id::LocalRoot, is_text(wire))
        }
        ("endpoint", Wire::Text, _) => Step::Endpoint,
        ("labels", Wire::Text, _) => Step::Labels,
        _ => Step::Skip(field),
    }
}

/// Other profilers write ids as numbers.
fn is_text(wire: Wire) -> bool {
    matches!(wire, Wire::Text)
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

#[cfg(test)]
mod tests {
    use super::super::constant_pools::Pools;
    use super::super::header::ChunkInfo;
    use super::super::metadata::Types;
    use super::super::tables::Tables;
    use super::*;
    use crate::writer::{ChunkClock, ChunkWriter};

    /// In a chunk whose clock has three ticks a second.
    #[test]
    fn weights_of_any_unit_become_nanoseconds() {
        let clock = ChunkClock {
            epoch_ns: 0,
            start_ticks: 0,
            ticks_per_second: 3,
        };
        let file = ChunkWriter::new(clock).flush(0);
        let info = ChunkInfo::read(&file, 0).unwrap();
        let mut metadata = Cursor::new(&file, info.metadata, info.end());
        metadata.varint().unwrap();
        metadata.varint().unwrap();
        let types = Types::read(metadata).unwrap();
        let (pools, mut tables) = (Pools::default(), Tables::default());
        let resolver = Resolver::new(&file, &info, &types, &pools, &mut tables);
        let of = |unit, value| weight(&resolver, unit, value);
        assert_eq!(of(Unit::SpanTicks, 6), 2_000_000_000);
        assert_eq!(of(Unit::SpanTicks, u64::MAX), 0, "less than nothing");
        assert_eq!(of(Unit::Span(1000), 6), 6000);
        assert_eq!(of(Unit::None, 6), 6);
    }
}
