//! Kinds of events for readers: their Rust types, and the words with which reports sum up and
//! describe stretches of time. The source is the table of events (`schema/events.rs`). Reports use
//! [`KINDS`] and need no knowledge of single kinds.

use crate::reader::{Cell, Form, GenericEvent, Recording, Told};
use crate::schema::events::table;

/// How reports speak of a kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// Head of its line in the text report.
    pub line: &'static str,
    /// One of them in a sentence; more of them have an `s`.
    pub one: &'static str,
    /// Head of its lane in the timeline.
    pub lane: &'static str,
    /// Title of an event without details of its own.
    pub title: &'static str,
    /// Explanation of the kind for the reader of a report.
    pub what: &'static str,
    /// Whether all threads are stopped during the event.
    pub all_stand: bool,
    /// Said where they take much of the time; empty: that is not remarkable.
    pub much: &'static str,
    /// The cause of waits whose colour it has.
    pub cause: &'static str,
}

/// A kind of event that lasts.
#[derive(Clone, Copy, Debug)]
pub struct StretchKind {
    /// Names of its events, ours first.
    pub names: &'static [&'static str],
    /// Labels of the fields other than the duration.
    pub labels: &'static [&'static str],
    /// The forms of the fields.
    pub forms: &'static [Form],
    /// How reports speak of it.
    pub words: Words,
    read: fn(&GenericEvent) -> Stretch,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// When it began, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// How long it lasted.
    pub duration_ns: u64,
    /// Values of the fields, in the order of [`StretchKind::labels`].
    pub cells: Vec<Cell>,
}

/// The labels of fields in tools, without the duration's.
pub(crate) trait Labelled: Told {
    const LABELS: &'static [&'static str];
}

impl StretchKind {
    /// A kind whose first field is how long it lasts.
    pub(crate) const fn of<T: Labelled>(words: Words) -> StretchKind {
        // The compiler checks it.
        assert!(matches!(T::FORMS, [Form::Nanos, ..]), "a stretch lasts");
        let forms = match T::FORMS {
            [_, forms @ ..] => forms,
            [] => &[],
        };
        StretchKind {
            names: T::NAMES,
            labels: T::LABELS,
            forms,
            words,
            read: |event| {
                let told = T::of(event);
                let mut cells = told.cells();
                let duration_ns = match cells.first() {
                    Some(Cell::Number(ns)) => *ns,
                    _ => 0,
                };
                cells.drain(..cells.len().min(1));
                Stretch {
                    time_ns: told.time_ns(),
                    duration_ns,
                    cells,
                }
            },
        }
    }

    /// Its place in [`KINDS`], if it is there: the kind that events are read from as `T`.
    #[must_use]
    pub fn place_of<T: Told>() -> Option<usize> {
        KINDS.iter().position(|kind| kind.names == T::NAMES)
    }

    /// Those of a recording, in the order of the file.
    pub fn stretches(&self, recording: &Recording) -> impl Iterator<Item = Stretch> {
        let (names, read) = (self.names, self.read);
        let is_it = move |event: &&GenericEvent| names.contains(&&*event.name);
        recording.events.iter().filter(is_it).map(read)
    }
}

macro_rules! kinds {
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
    )*
    others {$(
        #[doc = $other_doc:literal]
        $other:ident = $($other_name:literal)|+, $other_duration:ident $other_lasts:literal
        {
            $(
                #[doc = $of_doc:literal]
                $of:ident: $of_content:ident $of_name:literal $of_label:literal;
            )*
        }
        told { $($other_words:tt)* }
    )*}) => {
        /// Events as they are read: by the fields that a file says they have.
        pub mod told {
            $(
                $crate::told! {
                    #[doc = $doc]
                    pub struct $variant = $name $(| $also)* {
                        $(
                            #[doc = $lasts]
                            duration_ns: TickSpan "duration";
                        )?
                        $(
                            #[doc = $field_doc]
                            $field: $content $field_name;
                        )*
                    }
                }
            )*
            $(
                $crate::told! {
                    #[doc = $other_doc]
                    pub struct $other = $($other_name)|+ {
                        #[doc = $other_lasts]
                        $other_duration: TickSpan "duration";
                        $(
                            #[doc = $of_doc]
                            $of: $of_content $of_name;
                        )*
                    }
                }
            )*
        }

        $(impl Labelled for told::$variant {
            const LABELS: &'static [&'static str] = &[$($field_label),*];
        })*
        $(impl Labelled for told::$other {
            const LABELS: &'static [&'static str] = &[$($of_label),*];
        })*

        /// All kinds of stretches, in the order in which reports list them.
        pub const KINDS: &[StretchKind] = &[$($(
            StretchKind::of::<told::$variant>(Words { $($words)* }),
        )?)* $(
            StretchKind::of::<told::$other>(Words { $($other_words)* }),
        )*];
    };
}

table!(kinds);

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn kinds_have_distinct_names_and_words() {
        let names: Vec<_> = KINDS.iter().flat_map(|kind| kind.names).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for place in 0..4 {
            let word = |StretchKind { words: w, .. }: &StretchKind| {
                [w.line, w.one, w.lane, w.title][place]
            };
            let all: BTreeSet<_> = KINDS.iter().map(word).collect();
            assert_eq!(all.len(), KINDS.len());
            assert!(!all.contains(""));
        }
    }

    #[test]
    fn all_that_is_known_of_a_stretch_has_a_label() {
        for kind in KINDS {
            assert_eq!(kind.labels.len(), kind.forms.len(), "{}", kind.words.one);
        }
    }
}
