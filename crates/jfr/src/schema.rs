//! The shape of every type the writer puts into a file, as data. No encoding here: the metadata
//! event is generated from these tables, and the event encoders come from the same macro.

pub(crate) mod constants;
pub(crate) mod details;
pub(crate) mod events;
pub(crate) mod samples;
mod table;

/// Type ids in our files. All are below 128, so that each takes one byte.
pub(crate) mod id {
    pub(crate) const METADATA: u8 = 0;
    pub(crate) const CHECKPOINT: u8 = 1;
    pub(crate) const LONG: u8 = 4;
    pub(crate) const INT: u8 = 5;
    pub(crate) const SHORT: u8 = 6;
    pub(crate) const BYTE: u8 = 7;
    pub(crate) const DOUBLE: u8 = 8;
    pub(crate) const FLOAT: u8 = 9;
    pub(crate) const BOOLEAN: u8 = 10;
    pub(crate) const CHAR: u8 = 11;
    pub(crate) const STRING: u8 = 20;
    pub(crate) const THREAD: u8 = 21;
    pub(crate) const THREAD_GROUP: u8 = 22;
    pub(crate) const CLASS: u8 = 23;
    pub(crate) const CLASS_LOADER: u8 = 24;
    pub(crate) const METHOD: u8 = 25;
    pub(crate) const SYMBOL: u8 = 26;
    pub(crate) const THREAD_STATE: u8 = 27;
    pub(crate) const MODULE: u8 = 28;
    pub(crate) const PACKAGE: u8 = 29;
    pub(crate) const STACK_TRACE: u8 = 30;
    pub(crate) const STACK_FRAME: u8 = 31;
    pub(crate) const FRAME_TYPE: u8 = 32;
    pub(crate) const LABEL: u8 = 40;
    pub(crate) const DESCRIPTION: u8 = 41;
    pub(crate) const CATEGORY: u8 = 42;
    pub(crate) const CONTENT_TYPE: u8 = 43;
    pub(crate) const TIMESTAMP: u8 = 44;
    pub(crate) const TIMESPAN: u8 = 45;
    pub(crate) const DATA_AMOUNT: u8 = 46;
    pub(crate) const UNSIGNED: u8 = 47;
    pub(crate) const SAMPLE_DETAIL: u8 = 90;
    pub(crate) const ALLOCATION_DETAIL: u8 = 91;
    pub(crate) const MONITOR_DETAIL: u8 = 92;
    pub(crate) const THREAD_CONTEXT: u8 = 93;
    pub(crate) const EXECUTION_SAMPLE: u8 = 100;
    pub(crate) const WALL_SAMPLE: u8 = 101;
    pub(crate) const ALLOCATION_SAMPLE: u8 = 102;
    pub(crate) const WALL_CLOCK_SAMPLE: u8 = 95;
    pub(crate) const LIVE_OBJECT: u8 = 98;
    pub(crate) const COMMON_LIVE_OBJECT: u8 = 94;
    pub(crate) const MONITOR_ENTER: u8 = 96;
}

/// The purpose of a type, which decides its super type and attributes in the metadata.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeKind {
    /// `int`, `java.lang.String`, ...
    Primitive,
    /// An annotation; `true`: it says what a value means (`jdk.jfr.ContentType`).
    Annotation(bool),
    /// A structure, in a constant pool or inside another one.
    Structure,
    /// A structure of one field that stands for that field wherever it is shown.
    Simple,
    /// An event; its category, outermost first.
    Event(&'static [&'static str]),
}

/// One type of the metadata.
pub(crate) struct TypeDef {
    pub(crate) id: u8,
    pub(crate) name: &'static str,
    pub(crate) kind: TypeKind,
    /// Shown by tools; empty: none.
    pub(crate) label: &'static str,
    /// Shown by tools; empty: none.
    pub(crate) description: &'static str,
    pub(crate) fields: &'static [FieldDef],
}

/// One field of a type.
pub(crate) struct FieldDef {
    pub(crate) name: &'static str,
    pub(crate) content: Content,
    /// Shown by tools; empty: none.
    pub(crate) label: &'static str,
    /// Shown by tools; empty: none.
    pub(crate) description: &'static str,
}

/// Type, storage and meaning of a field.
#[derive(Clone, Copy)]
pub(crate) enum Content {
    /// `java.lang.String`, encoded in place (may refer to the string pool).
    Text,
    /// Several strings; only in annotations.
    TextArray,
    /// A signed `long`.
    Long,
    /// A `long` that counts something.
    Count,
    /// An `int`.
    Int,
    /// A `boolean`.
    Bool,
    /// A `long`: a duration in nanoseconds.
    Nanos,
    /// A `long`: a duration in ticks of the chunk.
    TickSpan,
    /// A `long`: a point in time in ticks of the chunk.
    Ticks,
    /// A `long`: milliseconds since the epoch.
    EpochMs,
    /// A `long`: bytes.
    Bytes,
    /// A key into the constant pool of that type.
    Pooled(u8),
    /// A count and that many structures of that type in place.
    Array(u8),
}

impl Content {
    /// The id of the field's type.
    pub(crate) const fn type_id(self) -> u8 {
        match self {
            Self::Text | Self::TextArray => id::STRING,
            Self::Int => id::INT,
            Self::Bool => id::BOOLEAN,
            Self::Pooled(type_id) | Self::Array(type_id) => type_id,
            Self::Long
            | Self::Count
            | Self::Nanos
            | Self::TickSpan
            | Self::Ticks
            | Self::EpochMs
            | Self::Bytes => id::LONG,
        }
    }

    /// The annotation that gives the value its meaning, with the annotation's value if it has one.
    pub(crate) const fn annotation(self) -> Option<(u8, Option<&'static str>)> {
        match self {
            Self::Ticks => Some((id::TIMESTAMP, Some("TICKS"))),
            Self::EpochMs => Some((id::TIMESTAMP, Some("MILLISECONDS_SINCE_EPOCH"))),
            Self::Nanos => Some((id::TIMESPAN, Some("NANOSECONDS"))),
            Self::TickSpan => Some((id::TIMESPAN, Some("TICKS"))),
            Self::Bytes => Some((id::DATA_AMOUNT, Some("BYTES"))),
            Self::Count => Some((id::UNSIGNED, None)),
            _ => None,
        }
    }
}

/// Every type of our files.
pub(crate) fn all_types() -> impl Iterator<Item = &'static TypeDef> {
    constants::TYPES
        .iter()
        .chain([
            &samples::EXECUTION_SAMPLE,
            &samples::WALL_SAMPLE,
            &samples::ALLOCATION_SAMPLE,
            &samples::LIVE_OBJECT,
            &samples::MONITOR_ENTER,
        ])
        .chain(details::TYPES)
        .chain(events::TYPES)
}

/// Every type of plain files, which also have events of other profilers.
pub(crate) fn plain_types() -> impl Iterator<Item = &'static TypeDef> {
    all_types().chain([&samples::WALL_CLOCK_SAMPLE, &samples::COMMON_LIVE_OBJECT])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_are_unique_and_every_reference_is_defined() {
        let ids: HashSet<u8> = plain_types().map(|t| t.id).collect();
        assert_eq!(ids.len(), all_types().count() + 2);
        assert!(ids.iter().all(|&id| id > id::CHECKPOINT && id < 128));
        for field in plain_types().flat_map(|t| t.fields) {
            assert!(ids.contains(&field.content.type_id()), "{}", field.name);
            let annotation = field.content.annotation();
            assert!(
                annotation.is_none_or(|(id, _)| ids.contains(&id)),
                "{}",
                field.name
            );
        }
    }

    #[test]
    fn events_start_with_their_time_and_then_the_duration_if_any() {
        for event in all_types().filter(|t| matches!(t.kind, TypeKind::Event(_))) {
            assert_eq!(event.fields[0].name, "startTime");
            let duration = event.fields.iter().position(|f| f.name == "duration");
            assert!(duration.is_none_or(|place| place == 1), "{}", event.name);
            assert!(!event.label.is_empty());
        }
    }
}
