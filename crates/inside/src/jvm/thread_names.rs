//! A thread's present name, read from its object, because the JVM reports no renaming. A collector
//! may move the object during the reading, so it is read twice.

use super::vm::FieldIds;
use dwell_signal::{Live, ThreadRecord};
use dwell_walker::hotspot::continuation;
use dwell_walker::hotspot::layout::{ABSENT, Layout, present};
use dwell_walker::hotspot::objects::{self, ClassWord};
use dwell_walker::hotspot::strings::{self, StringFields};
use jvm_sys::Env;
use std::ffi::CStr;

/// A longer name stays as it was at the thread's start.
const UNITS_MAX: u32 = 256;

/// Offsets of the fields with threads' names.
#[derive(Clone, Copy, Debug)]
pub struct NameFields {
    /// `Thread.name`.
    name: u64,
    strings: StringFields,
}

impl NameFields {
    /// Unknown fields.
    pub const EMPTY: NameFields = NameFields {
        name: ABSENT,
        strings: StringFields::EMPTY,
    };

    /// Finds the fields, on an attached thread in the live phase.
    #[must_use]
    pub fn find(layout: &Layout, fields: FieldIds, env: Env) -> NameFields {
        let field = |class: &CStr, name: &CStr, kind: &CStr| {
            fields.offset(env, class, name, kind).unwrap_or(ABSENT)
        };
        let string = c"java/lang/String";
        let class_word = layout.extra.objects.class_word;
        // Without compressed class pointers, the array header depends on the version.
        if class_word == ClassWord::Wide {
            return NameFields::EMPTY;
        }
        let (length, elements) = strings::array(class_word, false);
        NameFields {
            name: field(c"java/lang/Thread", c"name", c"Ljava/lang/String;"),
            strings: StringFields {
                value: match field(string, c"value", c"[B") {
                    ABSENT => field(string, c"value", c"[C"),
                    at => at,
                },
                coder: field(string, c"coder", c"B"),
                length,
                elements,
            },
        }
    }

    /// The string object with the name of the thread with this object; `None`: unknown.
    #[must_use]
    pub fn string(&self, live: &Live, layout: &Layout, thread: u64) -> Option<u64> {
        if !present(self.name) || thread == 0 {
            return None;
        }
        let at = thread.wrapping_add(self.name);
        let string = continuation::reference(live, layout, at).ok()?;
        (string != 0).then_some(string)
    }

    /// The name of the thread with this object: empty if it is unnamed, `None` if it cannot be
    /// read.
    #[must_use]
    pub fn of(&self, live: &Live, layout: &Layout, thread: u64) -> Option<String> {
        let read = || {
            let string = self.string(live, layout, thread)?;
            let mut units = Vec::new();
            let add = |unit| units.push(unit);
            let fields = &self.strings;
            let whole = strings::for_each_unit(live, layout, fields, string, UNITS_MAX, add);
            (whole == Ok(true)).then_some(units)
        };
        let units = read()?;
        (read()? == units).then(|| String::from_utf16_lossy(&units))
    }

    /// The name of a platform thread, if its string is not `last_string`, which is updated.
    #[must_use]
    pub fn of_platform(
        &self,
        live: &Live,
        layout: &Layout,
        record: &ThreadRecord,
        last_string: &mut u64,
    ) -> Option<String> {
        let objects = &layout.extra.objects;
        let java_thread = record.managed_thread();
        let object = || match java_thread {
            0 => None,
            thread => objects::of_thread(live, layout, objects, thread).ok(),
        };
        let is_it = |thread| objects::java_thread(live, objects, thread) == Ok(java_thread);
        let thread = object().filter(|it| *it != 0 && is_it(*it))?;
        let string = self.string(live, layout, thread)?;
        if std::mem::replace(last_string, string) == string {
            return None;
        }
        let name = self.of(live, layout, thread)?;
        let thread = object()?;
        (is_it(thread) && record.managed_thread() == java_thread && !name.is_empty())
            .then_some(name)
    }
}
