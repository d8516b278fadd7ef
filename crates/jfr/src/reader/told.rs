//! Events as types: the named fields of a file become the fields of a struct, only here. Knows no
//! kind of event. The types of dwell's events are in [`crate::schema::events`], those of others in
//! the modules that read them.

use super::model::{GenericEvent, Recording, Value};
use std::sync::Arc;

/// A type that events of some names are read as. [`told!`](crate::told) makes them.
pub trait Told: Sized {
    /// The events' names, ours first.
    const NAMES: &'static [&'static str];
    /// The forms of its fields, in their order.
    const FORMS: &'static [Form];

    /// Reads an event, whatever its name is: fields that it does not have are 0, empty or `None`.
    fn of(event: &GenericEvent) -> Self;

    /// When, in nanoseconds since the epoch.
    fn time_ns(&self) -> u64;

    /// The values of the fields, in their order.
    fn cells(&self) -> Vec<Cell>;
}

/// Two views of the same events: those of the first.
impl<A: Told, B: Told> Told for (A, B) {
    const NAMES: &'static [&'static str] = A::NAMES;
    const FORMS: &'static [Form] = A::FORMS;

    fn of(event: &GenericEvent) -> Self {
        (A::of(event), B::of(event))
    }

    fn time_ns(&self) -> u64 {
        self.0.time_ns()
    }

    fn cells(&self) -> Vec<Cell> {
        self.0.cells()
    }
}

/// The kind of a field's value, for callers that show fields without knowing them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A text.
    Text,
    /// A number of something.
    Number,
    /// A duration in nanoseconds.
    Nanos,
    /// A thread.
    Thread,
    /// Nothing to show.
    Other,
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// A text.
    Text(Arc<str>),
    /// A number.
    Number(u64),
    /// Place in [`Recording::threads`].
    Thread(Option<u32>),
    /// Nothing to show.
    Other,
}

impl Recording {
    /// The events of one kind, as what they are read as.
    pub fn told<T: Told>(&self) -> impl Iterator<Item = T> {
        let is_it = |event: &&GenericEvent| T::NAMES.contains(&&*event.name);
        self.events.iter().filter(is_it).map(T::of)
    }
}

/// Takes fields one after the other.
#[derive(Debug)]
pub struct Fields<'e> {
    event: &'e GenericEvent,
    next: usize,
}

impl<'e> Fields<'e> {
    /// Those of an event.
    #[must_use]
    pub fn of(event: &'e GenericEvent) -> Fields<'e> {
        // The first one is the start time.
        Fields { event, next: 1 }
    }

    /// A field.
    pub fn take<S: stored::Stored>(&mut self, name: &str) -> S::Told {
        // In files of ours they are in the order in which they are asked for.
        let at = self.event.fields.get(self.next);
        let at = at.filter(|(field, _)| &**field == name);
        self.next += 1;
        S::told(at.map_or_else(|| self.event.get(name), |(_, value)| Some(value)))
    }
}

pub mod stored {
    //! How fields are read, by what they contain: the names are those of [`Content`].
    //!
    //! [`Content`]: crate::schema::Content

    use super::{Arc, Cell, Form, Value};

    /// The content of a field.
    pub trait Stored {
        /// The Rust type of the value.
        type Told;
        /// The kind of the value for reports.
        const FORM: Form;
        /// Reads it.
        fn told(value: Option<&Value>) -> Self::Told;
        /// The value for reports.
        fn cell(told: &Self::Told) -> Cell;
    }

    /// A number that cannot be negative in a recording that makes sense.
    fn number(value: &Value) -> Option<u64> {
        match *value {
            Value::Int(value) | Value::DurationNs(value) => Some(u64::try_from(value).unwrap_or(0)),
            Value::TimeNs(value) => Some(value),
            _ => None,
        }
    }

    macro_rules! stored {
        ($(
            $(#[$meta:meta])*
            $name:ident -> $told:ty, $form:ident: $read:expr, $cell:expr;
        )*) => {$(
            $(#[$meta])*
            #[derive(Clone, Copy, Debug)]
            pub struct $name;

            impl Stored for $name {
                type Told = $told;
                const FORM: Form = Form::$form;

                fn told(value: Option<&Value>) -> $told {
                    let read: fn(Option<&Value>) -> $told = $read;
                    read(value)
                }

                fn cell(told: &$told) -> Cell {
                    let cell: fn(&$told) -> Cell = $cell;
                    cell(told)
                }
            }
        )*};
    }

    fn count(value: Option<&Value>) -> u64 {
        value.and_then(number).unwrap_or(0)
    }

    fn counted(told: &u64) -> Cell {
        Cell::Number(*told)
    }

    stored! {
        /// A text; empty if it is not there.
        Text -> Arc<str>, Text: |value| match value {
            Some(Value::Text(text)) => Arc::clone(text),
            _ => Arc::default(),
        }, |told| Cell::Text(Arc::clone(told));
        /// A number; 0 if it is not there, or negative.
        Long -> u64, Number: count, counted;
        /// As [`Long`].
        Int -> u64, Number: count, counted;
        /// As [`Long`].
        Count -> u64, Number: count, counted;
        /// As [`Long`].
        Bytes -> u64, Number: count, counted;
        /// In nanoseconds; 0 if it is not there, or negative.
        Nanos -> u64, Nanos: count, counted;
        /// In nanoseconds, whatever it is in the file; 0 if it is not there, or negative.
        TickSpan -> u64, Nanos: count, counted;
        /// In milliseconds since the epoch; 0 if it is not there.
        EpochMs -> u64, Number: |value| count(value) / 1_000_000, counted;
        /// Place in the recording's threads.
        Thread -> Option<u32>, Thread: |value| match value {
            Some(Value::Thread(place)) => Some(*place),
            _ => None,
        }, |told| Cell::Thread(*told);
        /// Place in the recording's stacks.
        Stack -> Option<u32>, Other: |value| match value {
            Some(Value::Stack(place)) => Some(*place),
            _ => None,
        }, |_| Cell::Other;
        /// Place in the recording's methods.
        Method -> Option<u32>, Other: |value| match value {
            Some(Value::Method(place)) => Some(*place),
            _ => None,
        }, |_| Cell::Other;
        /// The name of a class loader, or its class if it is nameless.
        Loader -> Arc<str>, Text: |value| match value {
            Some(Value::Struct(fields)) => {
                let text = |wanted: &str| fields.iter().find_map(|(name, value)| match value {
                    Value::Text(text) if &**name == wanted && !text.is_empty() => Some(text),
                    _ => None,
                });
                text("name").or_else(|| text("type")).cloned().unwrap_or_default()
            }
            other => Text::told(other),
        }, Text::cell;
        /// The class of an object that a structure describes.
        ObjectType -> Arc<str>, Text: |value| match value {
            Some(Value::Struct(fields)) => {
                let named = fields.iter().find(|(name, _)| &**name == "type");
                Text::told(named.map(|(_, value)| value))
            }
            other => Text::told(other),
        }, Text::cell;
        /// A text that may not be there.
        MaybeText -> Option<Arc<str>>, Other: |value| match value {
            Some(Value::Text(text)) => Some(Arc::clone(text)),
            _ => None,
        }, |_| Cell::Other;
        /// A number that may not be there.
        MaybeCount -> Option<u64>, Other: |value| value.and_then(number), |_| Cell::Other;
        /// A duration of which the file says that it is one, in nanoseconds.
        MaybeSpan -> Option<u64>, Other: |value| match value {
            Some(Value::DurationNs(ns)) => u64::try_from(*ns).ok(),
            _ => None,
        }, |_| Cell::Other;
        /// 64 bits that are a name; 0 if it is not there.
        Id -> u64, Other: |value| match value {
            Some(Value::Int(bits)) => bits.cast_unsigned(),
            _ => 0,
        }, |_| Cell::Other;
    }
}

/// Makes types that events are read as:
///
/// ```
/// dwell_jfr::told! {
///     /// Work that was done.
///     pub struct Work = "com.acme.Work" | "com.acme.OldWork" {
///         /// How long it took.
///         duration_ns: TickSpan "duration";
///         /// What it was.
///         what: Text "what";
///     }
/// }
/// let recording = dwell_jfr::reader::Recording::default();
/// assert_eq!(recording.told::<Work>().map(|it| it.duration_ns).sum::<u64>(), 0);
/// ```
///
/// Contents are those of [`stored`](crate::reader::stored).
#[macro_export]
macro_rules! told {
    ($(
        $(#[$meta:meta])*
        $vis:vis struct $kind:ident = $($name:literal)|* {
            $(
                $(#[$field_meta:meta])*
                $field:ident: $content:ident $field_name:literal;
            )*
        }
    )*) => {$(
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $kind {
            /// When, in nanoseconds since the epoch.
            pub time_ns: u64,
            $(
                $(#[$field_meta])*
                pub $field: <$crate::reader::stored::$content as
                    $crate::reader::stored::Stored>::Told,
            )*
        }

        impl $crate::reader::Told for $kind {
            const NAMES: &'static [&'static str] = &[$($name),*];
            const FORMS: &'static [$crate::reader::Form] = &[$(
                <$crate::reader::stored::$content as $crate::reader::stored::Stored>::FORM
            ),*];

            fn of(event: &$crate::reader::GenericEvent) -> Self {
                let mut fields = $crate::reader::Fields::of(event);
                Self {
                    time_ns: event.time_ns,
                    $(
                        $field: fields.take::<$crate::reader::stored::$content>($field_name),
                    )*
                }
            }

            fn time_ns(&self) -> u64 {
                self.time_ns
            }

            fn cells(&self) -> ::std::vec::Vec<$crate::reader::Cell> {
                ::std::vec![$(
                    <$crate::reader::stored::$content as $crate::reader::stored::Stored>::cell(
                        &self.$field
                    )
                ),*]
            }
        }
    )*};
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::told! {
        /// An event for these tests.
        struct Work = "a.Work" | "b.Work" {
            duration_ns: TickSpan "duration";
            what: Text "what";
            who: Thread "who";
            how_often: MaybeCount "howOften";
            id: Id "id";
            began_ms: EpochMs "began";
        }
    }

    fn event(name: &str, fields: &[(&str, Value)]) -> GenericEvent {
        let fields = fields.iter();
        GenericEvent {
            name: name.into(),
            time_ns: 5,
            fields: fields
                .map(|(name, value)| ((*name).into(), value.clone()))
                .collect(),
        }
    }

    fn told(fields: &[(&str, Value)]) -> Work {
        Work::of(&event("a.Work", fields))
    }

    #[test]
    fn fields_are_found_in_any_order() {
        let start = ("startTime", Value::TimeNs(5));
        let duration = ("duration", Value::DurationNs(7));
        let (what, who) = (("what", Value::Text("x".into())), ("who", Value::Thread(3)));
        let expected = told(&[start.clone(), duration.clone(), what.clone(), who.clone()]);
        assert_eq!(
            (expected.time_ns, expected.duration_ns, &*expected.what),
            (5, 7, "x")
        );
        assert_eq!((expected.who, expected.how_often), (Some(3), None));
        assert_eq!(told(&[who, what, duration, start]), expected);
    }

    #[test]
    fn absent_or_senseless_field_reads_as_none() {
        let nothing = told(&[]);
        assert_eq!((nothing.duration_ns, &*nothing.what), (0, ""));
        assert_eq!((nothing.who, nothing.id), (None, 0));
        let nonsense = told(&[
            ("duration", Value::DurationNs(-1)),
            ("what", Value::Null),
            ("who", Value::Int(7)),
            ("howOften", Value::Int(-3)),
        ]);
        assert_eq!((nonsense.duration_ns, &*nonsense.what), (0, ""));
        assert_eq!((nonsense.who, nonsense.how_often), (None, Some(0)));
    }

    #[test]
    fn units_are_those_of_the_names() {
        let work = told(&[("id", Value::Int(-1)), ("began", Value::TimeNs(12_000_000))]);
        assert_eq!((work.id, work.began_ms), (u64::MAX, 12));
    }

    #[test]
    fn class_loaders_are_called_by_their_names_or_their_classes() {
        use super::stored::{Loader, Stored};
        let loader = |fields: &[(&str, &str)]| {
            let fields = fields.iter().map(|(name, value)| {
                let name: Arc<str> = (*name).into();
                (name, Value::Text((*value).into()))
            });
            Loader::told(Some(&Value::Struct(fields.collect())))
        };
        assert_eq!(&*loader(&[("type", "a.Loader"), ("name", "app")]), "app");
        assert_eq!(&*loader(&[("type", "a.Loader"), ("name", "")]), "a.Loader");
        assert_eq!(&*loader(&[]), "");
        assert_eq!(&*Loader::told(None), "");
    }

    #[test]
    fn events_of_all_names_are_taken_and_no_others() {
        let names = ["a.Work", "a.Worked", "b.Work"];
        let recording = Recording {
            events: names.map(|name| event(name, &[])).to_vec(),
            ..Recording::default()
        };
        assert_eq!(recording.told::<Work>().count(), 2);
        assert_eq!(recording.told::<(Work, Work)>().count(), 2);
    }
}
