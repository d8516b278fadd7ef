//! The macro that makes events of the table in [`super::events`], and the encoding of values. It
//! knows no kind of event.
//!
//! ```text
//! /// What it is; tools show it, too
//! Variant = ID "name" | "name in recordings of others" CATEGORY, "Label",
//!     duration_ticks "What lasts so long"       (only of what has a duration)
//! {
//!     /// What the field is
//!     field: type as it is written = Content "name in the file" "Label";
//! }
//! told { fields of Words }                      (only of stretches that all reports tell)
//! ```
//!
//! At its end, `others { ... }` has stretches in recordings of others, which we never write: they
//! have no id, category, label and types of fields as they are written, and last nanoseconds.
//!
//! The types that entries are read as, and the words for them, come from the same table, through a
//! second macro in `kinds`. A single macro would put both into one module, and the modules of the
//! writer and the reader would use each other in a circle.

use super::{Content, FieldDef, id};
use crate::ids::{StackId, ThreadId};
use crate::wire::{put_text, put_varint};

#[allow(
    non_upper_case_globals,
    reason = "named like the other kinds in the table"
)]
impl Content {
    /// A thread of the chunk.
    pub(super) const Thread: Content = Content::Pooled(id::THREAD);
    /// A stack of the chunk.
    pub(super) const Stack: Content = Content::Pooled(id::STACK_TRACE);
}

pub(super) const PROFILER: &[&str] = &["Profiler"];
pub(super) const JVM: &[&str] = &["Java Virtual Machine"];
pub(super) const OS: &[&str] = &["Operating System"];
pub(super) const PROCESSOR: &[&str] = &["Operating System", "Processor"];
pub(super) const RECORDER: &[&str] = &["Flight Recorder"];

pub(super) const START_TIME: FieldDef = FieldDef {
    name: "startTime",
    content: Content::Ticks,
    label: "Start Time",
    description: "",
};

/// A value that can stand in an event.
pub(super) trait Put {
    fn put(self, out: &mut Vec<u8>);
}

impl Put for &str {
    fn put(self, out: &mut Vec<u8>) {
        put_text(out, self);
    }
}

impl Put for u64 {
    fn put(self, out: &mut Vec<u8>) {
        put_varint(out, self);
    }
}

impl Put for ThreadId {
    fn put(self, out: &mut Vec<u8>) {
        put_varint(out, self.index());
    }
}

impl Put for StackId {
    fn put(self, out: &mut Vec<u8>) {
        put_varint(out, self.index());
    }
}

impl Put for u32 {
    fn put(self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self));
    }
}

/// Takes the leading blank that a doc comment leaves.
pub(super) const fn description(doc: &'static str) -> &'static str {
    match doc.as_bytes() {
        [b' ', ..] => doc.split_at(1).1,
        _ => doc,
    }
}

macro_rules! events {
    ($(
        #[doc = $doc:literal]
        $variant:ident = $id:literal $name:literal $(| $also:literal)*
        $category:ident, $label:literal
        $(, $duration:ident $lasts:literal)?
        {
            $(
                #[doc = $field_doc:literal]
                $field:ident: $value:ty = $content:ident $field_name:literal $field_label:literal;
            )*
        }
        $(told { $($words:tt)* })?
    )* others { $($others:tt)* }) => {
        /// An event other than a sample. `ticks` is on the clock of the chunk.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum Event<'a> {
            $(
                #[doc = $doc]
                $variant {
                    /// When, in ticks of the chunk's clock.
                    ticks: u64,
                    $(
                        #[doc = $lasts]
                        $duration: u64,
                    )?
                    $(
                        #[doc = $field_doc]
                        $field: $value,
                    )*
                },
            )*
        }

        /// The types of [`Event`]'s variants.
        pub(crate) static TYPES: &[TypeDef] = &[$(
            TypeDef {
                id: $id,
                name: $name,
                kind: TypeKind::Event($category),
                label: $label,
                description: description($doc),
                fields: &[
                    START_TIME,
                    $(FieldDef {
                        name: "duration",
                        content: Content::TickSpan,
                        label: "Duration",
                        description: $lasts,
                    },)?
                    $(FieldDef {
                        name: $field_name,
                        content: Content::$content,
                        label: $field_label,
                        description: description($field_doc),
                    },)*
                ],
            },
        )*];

        impl Event<'_> {
            /// When, in ticks of the chunk's clock.
            pub fn ticks(&self) -> u64 {
                match *self {
                    $(Self::$variant { ticks, .. } => ticks,)*
                }
            }

            /// When it was over, in ticks of the chunk's clock.
            pub fn end_ticks(&self) -> u64 {
                match *self {
                    $(Self::$variant { ticks, $($duration,)? .. } => {
                        ticks$(.saturating_add($duration))?
                    })*
                }
            }

            /// Appends the type id and the fields.
            pub(crate) fn encode(&self, out: &mut Vec<u8>) {
                match *self {
                    $(Self::$variant { ticks, $($duration,)? $($field),* } => {
                        put_varint(out, $id);
                        put_varint(out, ticks);
                        $(put_varint(out, $duration);)?
                        $($field.put(out);)*
                    })*
                }
            }
        }
    };
}
pub(super) use events;
