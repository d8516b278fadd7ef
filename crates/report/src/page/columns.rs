//! The columns of a page: numbers as planes of bytes, which compress far better than whole words.
//!
//! A column of n numbers of k bytes is k planes of n bytes: first all lowest bytes, then all second
//! ones, and so on. A column may hold differences instead of values: each value minus the one
//! before it (the first one minus 0), modulo 2^(8k).

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;
use std::io::{self, Write};

use dwell_explain::own_methods;
use dwell_profile::{ContextId, Frame, Look, Method, NameId, Profile, Sample};
use serde_json::Value;

use super::calls::Calls;
use super::entries::Entries;
use super::requests::Requests;
use super::spans::Spans;

/// Weights and times are cut to 48 bits: 3.2 days in nanoseconds, exact in a double.
pub(super) const U48_MAX: u64 = (1 << 48) - 1;

/// Rows by which it is found out which form of a column compresses better.
const TRIED: usize = 1 << 16;

/// Numbers as whole ones. For each key their sum is that of the numbers, rounded. The rounded
/// numbers may have another sum.
pub(super) fn whole<K: Eq + Hash>(numbers: impl Iterator<Item = (K, f64)>) -> Vec<u64> {
    let mut sums: HashMap<K, (f64, u64)> = HashMap::new();
    let whole = numbers.map(|(key, number)| {
        let (sum, given) = sums.entry(key).or_default();
        *sum += number;
        let next = (sum.round() as u64).saturating_sub(*given).min(U48_MAX);
        *given = given.saturating_add(next);
        next
    });
    whole.collect()
}

/// One column.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) rows: usize,
    /// Bytes a number; 1 for raw bytes.
    pub(super) width: usize,
    /// Whether the numbers are differences.
    pub(super) delta: bool,
    planes: Vec<u8>,
}

/// How the numbers of a column are written.
#[derive(Clone, Copy)]
pub(super) struct Form {
    width: usize,
    delta: bool,
}

pub(super) const U8: Form = Form {
    width: 1,
    delta: false,
};
pub(super) const U16: Form = Form {
    width: 2,
    delta: false,
};
pub(super) const U32: Form = Form {
    width: 4,
    delta: false,
};
pub(super) const U48: Form = Form {
    width: 6,
    delta: false,
};

impl Form {
    pub(super) const fn differences(self) -> Form {
        Form {
            delta: true,
            ..self
        }
    }
}

impl Column {
    pub(super) fn new<T>(
        name: &'static str,
        form: Form,
        items: &[T],
        value: impl Fn(&T) -> u64,
    ) -> Self {
        let Form { width, delta } = form;
        let rows = items.len();
        let mut planes = vec![0u8; rows * width];
        let mut before = 0u64;
        for (row, item) in items.iter().enumerate() {
            let value = value(item);
            let stored = if delta {
                value.wrapping_sub(before)
            } else {
                value
            };
            before = value;
            for (plane, byte) in stored.to_le_bytes().into_iter().take(width).enumerate() {
                planes[plane * rows + row] = byte;
            }
        }
        Column {
            name,
            rows,
            width,
            delta,
            planes,
        }
    }

    /// A column of numbers or of differences, whichever compresses better in its first rows.
    fn either<T>(name: &'static str, form: Form, items: &[T], value: impl Fn(&T) -> u64) -> Self {
        let first = items.get(..TRIED).unwrap_or(items);
        let tried = [form, form.differences()].map(|form| {
            let column = Column::new(name, form, first, &value);
            (compressed(&column.planes), form)
        });
        let best = tried.into_iter().min_by_key(|(bytes, _)| *bytes);
        Column::new(name, best.map_or(form, |(_, form)| form), items, value)
    }

    /// The numbers as they are stored.
    #[cfg(test)]
    pub(super) fn numbers(&self) -> Vec<u64> {
        let plane = |plane: usize, row: usize| {
            u64::from(self.planes[plane * self.rows + row]) << (8 * plane)
        };
        (0..self.rows)
            .map(|row| (0..self.width).map(|p| plane(p, row)).sum())
            .collect()
    }

    /// Bytes in the file.
    pub(super) fn bytes(&self) -> usize {
        self.planes.len()
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.planes)
    }
}

/// How many bytes are left of some, about.
fn compressed(bytes: &[u8]) -> u64 {
    let mut zip = flate2::write::DeflateEncoder::new(std::io::sink(), flate2::Compression::fast());
    // Nothing that is written to nowhere fails.
    let _ = zip.write_all(bytes);
    let _ = zip.try_finish();
    zip.total_out()
}

/// The causes of failures that occur, in the order of the numbers in `sample.cause` (from 1).
pub(super) fn causes(profile: &Profile) -> Vec<u32> {
    let mut causes: Vec<u32> = profile.samples().iter().filter_map(|s| s.failure).collect();
    causes.sort_unstable();
    causes.dedup();
    causes
}

/// Data of the profile that the page lacks.
pub(super) struct Less {
    /// The bins of time within which samples are put together; 0: they are not.
    pub(super) bin_ns: u64,
    /// Report on removed frames.
    pub(super) left_out: Option<Value>,
}

/// All columns of a profile, and the data that they lack.
pub(super) fn columns(profile: &Profile, all_frames: bool) -> (Vec<Column>, Less) {
    let requests = Requests::of(profile);
    let calls = match all_frames {
        true => Calls::whole(profile.tree()),
        false => Calls::of(profile),
    };
    let entries = Entries::of(profile, &calls, &requests.work(profile));
    let mut columns = tables(profile, &calls);
    columns.extend(samples(profile, &calls, &entries));
    if profile.has_wall() {
        columns.extend(waits(profile, &calls, &entries));
    }
    columns.extend(requests.columns(profile, &entries));
    columns.extend(Spans::of(profile, &requests).columns(&entries));
    if profile.has_allocations() {
        columns.extend(super::allocations::columns(profile, &calls, &requests));
    }
    if profile.has_live() {
        columns.extend(super::alive::columns(profile, &calls, &requests));
    }
    if profile.has_locks() {
        columns.extend(super::locks::columns(profile, &calls, &requests));
        columns.extend(super::held::columns(profile, &calls));
    }
    columns.extend(super::events::columns(profile, &calls));
    let less = Less {
        bin_ns: entries.bin_ns,
        left_out: calls.header(),
    };
    (columns, less)
}

/// Names that numbers stand for, in the order of these (from 1; 0: none), which occur.
fn distinct(names: impl Iterator<Item = NameId>) -> Vec<NameId> {
    let mut names: Vec<NameId> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Objects of waits, in the order of the numbers in `look.cause` (from 1).
pub(super) fn waited_for(profile: &Profile) -> Vec<NameId> {
    distinct(profile.looks().iter().map(|look| look.cause))
}

/// Endpoints, in the order of the numbers in `sample.endpoint` and `look.endpoint` (from 1).
pub(super) fn endpoints(profile: &Profile) -> Vec<NameId> {
    let contexts = profile.contexts().iter().filter_map(|it| it.endpoint);
    distinct(contexts.chain(profile.requests().iter().filter_map(|it| it.endpoint)))
}

/// The number of an endpoint; 0: none.
pub(super) fn place_of(endpoints: &[NameId], name: Option<NameId>) -> u64 {
    let place = name.and_then(|name| endpoints.binary_search(&name).ok());
    place.map_or(0, |place| place as u64 + 1)
}

/// The number of a context's endpoint.
pub(super) fn endpoint(profile: &Profile, endpoints: &[NameId], context: Option<ContextId>) -> u64 {
    let context = context.and_then(|context| profile.contexts().get(context as usize));
    place_of(endpoints, context.and_then(|context| context.endpoint))
}

/// Looks at threads that did not run, and which of the samples are part of the wall time, too.
fn waits(profile: &Profile, calls: &Calls<'_>, entries: &Entries<'_>) -> Vec<Column> {
    let (looks, start) = (&*entries.looks, profile.info().start_ns);
    let (causes, endpoints) = (waited_for(profile), endpoints(profile));
    let cause = |look: &Look| {
        let place = causes.binary_search(&look.cause).ok();
        place.map_or(0, |place| place as u64 + 1)
    };
    let time = |look: &Look| {
        entries
            .rounded(look.time_ns.saturating_sub(start))
            .min(U48_MAX)
    };
    let of = |context| endpoint(profile, &endpoints, context);
    vec![
        Column::new("sample.running", U8, &entries.running, |&is| is.into()),
        Column::new("look.time", U48.differences(), looks, time),
        Column::new("look.thread", U32, looks, |look| look.thread.into()),
        Column::new("look.node", node_form(entries), looks, |look| {
            calls.of_node(look.node).into()
        }),
        Column::new("look.weight", U48, looks, |l| l.weight_ns.min(U48_MAX)),
        Column::new("look.count", U32, looks, |look| {
            look.count.min(u64::from(u32::MAX))
        }),
        Column::new("look.choices", U32, looks, |look| {
            look.as_choices().min(u64::from(u32::MAX))
        }),
        Column::new("look.cause", U8, looks, cause),
        Column::new("look.endpoint", U16, looks, |look| of(look.context)),
        Column::new("look.duration", U48, looks, |l| l.duration_ns.min(U48_MAX)),
        Column::new("look.detail", U32, looks, |look| numbered(look.detail)),
        Column::new("look.owner", U32, looks, |look| numbered(look.owner)),
        Column::new("look.owner_node", U32, looks, |l| {
            numbered(l.owner_node.map(|node| calls.of_node(node)))
        }),
    ]
}

/// Binned entries are sorted by stack within a bin, so differences are small.
fn node_form(entries: &Entries<'_>) -> Form {
    match entries.bin_ns {
        0 => U32,
        _ => U32.differences(),
    }
}

fn tables(profile: &Profile, calls: &Calls<'_>) -> Vec<Column> {
    let (mut methods, mut frames) = (profile.methods().to_vec(), profile.frames().to_vec());
    let threads = profile.threads();
    let mut names: Vec<&str> = profile.names().iter().collect();
    if let Some((text, kind)) = calls.marker() {
        let none = names.len() as u32;
        names.extend(["", text]);
        frames.push(Frame {
            method: methods.len() as u32,
            line: 0,
            kind,
        });
        methods.push(Method {
            class: none,
            name: none + 1,
            descriptor: none,
            library: None,
        });
    }
    let own = own_methods(profile);
    let is_own = |place: usize| own.get(place) == Some(&true);
    let own: Vec<bool> = (0..methods.len()).map(is_own).collect();
    let (methods, frames) = (&*methods, &*frames);
    let text = names.concat();
    // The root is left out: every page has it.
    let keys = calls.keys.get(1..).unwrap_or_default();
    // Mostly 1: a stack's frames come one after the other.
    let parents = calls.parents.iter().enumerate().skip(1);
    let back: Vec<u64> = parents
        .map(|(at, &parent)| at as u64 - u64::from(parent))
        .collect();
    vec![
        Column::new("name.length", U32, &names, |name| name.len() as u64),
        Column::new("name.text", U8, text.as_bytes(), |&byte| byte.into()),
        Column::new("method.class", U32, methods, |m| m.class.into()),
        Column::new("method.name", U32, methods, |m| m.name.into()),
        Column::new("method.descriptor", U32, methods, |m| m.descriptor.into()),
        Column::new("method.library", U32, methods, |m| numbered(m.library)),
        Column::new("method.own", U8, &own, |&own| own.into()),
        Column::new("frame.method", U32.differences(), frames, |f| {
            f.method.into()
        }),
        Column::new("frame.line", U32, frames, |f| f.line.into()),
        Column::new("frame.kind", U8, frames, |f| f.kind.number().into()),
        Column::new("thread.name", U32, threads, |t| t.name.into()),
        Column::new("thread.tid", U48, threads, |t| clamp(t.os_tid)),
        Column::new("thread.java_tid", U48, threads, |t| clamp(t.java_tid)),
        Column::new("thread.virtual", U8, threads, |t| t.is_virtual.into()),
        Column::new("node.back", U32, &back, |&back| back),
        Column::either("node.frame", U32, keys, |&key| key.into()),
    ]
}

fn samples(profile: &Profile, calls: &Calls<'_>, entries: &Entries<'_>) -> Vec<Column> {
    let samples = &*entries.samples;
    let start = profile.info().start_ns;
    let causes = causes(profile);
    let cause = |sample: &Sample| {
        let cause = sample
            .failure
            .and_then(|cause| causes.binary_search(&cause).ok());
        cause.map_or(0, |place| place as u64 + 1)
    };
    let time = |sample: &Sample| {
        let time_ns = sample.time_ns.saturating_sub(start);
        entries.rounded(time_ns).min(U48_MAX)
    };
    let weights = RefCell::new(entries.weights());
    let endpoints = endpoints(profile);
    let of = |sample: &Sample| endpoint(profile, &endpoints, sample.context);
    vec![
        Column::new("sample.time", U48.differences(), samples, time),
        Column::new("sample.thread", U32, samples, |s| s.thread.into()),
        Column::new("sample.node", node_form(entries), samples, |s| {
            calls.of_node(s.node).into()
        }),
        Column::new("sample.weight", U48, samples, |s| {
            weights.borrow_mut().round(s.weight).min(U48_MAX)
        }),
        Column::new("sample.cause", U16, samples, cause),
        Column::new("sample.role", U8, &entries.roles, |&role| role as u64),
        Column::new("sample.count", U32, &entries.counts, |&count| {
            count.min(u64::from(u32::MAX))
        }),
        Column::new("sample.endpoint", U16, samples, of),
    ]
}

/// A number from 1 on; 0: none.
pub(super) fn numbered(id: Option<u32>) -> u64 {
    id.map_or(0, |id| u64::from(id) + 1)
}

fn clamp(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0).min(U48_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::text_art;

    #[test]
    fn planes_hold_all_lowest_bytes_first() {
        let column = Column::new("x", U16, &[0x0102u64, 0x0304], |&value| value);
        assert_eq!(column.planes, [2, 4, 1, 3]);
    }

    #[test]
    fn whole_numbers_keep_the_sum_of_each_key() {
        let mut numbers = vec![(7, 100.0); 3];
        for _ in 0..10 {
            numbers.extend([(7, 1.4), (9, 0.4)]);
        }
        let whole = whole(numbers.iter().copied());
        let sum = |key| -> u64 {
            let of_key = numbers.iter().zip(&whole).filter(|((of, _), _)| *of == key);
            of_key.map(|(_, number)| number).sum()
        };
        assert_eq!((sum(7), sum(9)), (314, 4));
        assert_eq!(whole[..3], [100, 100, 100]);
    }

    #[test]
    fn differences_wrap() {
        let column = Column::new("x", U48.differences(), &[5u64, 3], |&value| value);
        assert_eq!(
            column.planes,
            [5, 0xfe, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff, 0, 0xff]
        );
    }

    #[test]
    fn every_table_has_as_many_rows_as_the_profile() {
        let profile = text_art::profile(
            "failure: -    lost
             a.A.x:1  a.A.x:2
             java.util.A.y    -",
        );
        let (columns, _) = columns(&profile, false);
        let rows = |name| {
            columns
                .iter()
                .find(|column| column.name == name)
                .unwrap()
                .rows
        };
        assert_eq!(rows("sample.node"), 2);
        assert_eq!(rows("node.back"), profile.tree().len() - 1);
        assert_eq!(rows("frame.kind"), 3);
        assert_eq!(rows("method.class"), 2);
        assert_eq!(rows("thread.name"), 1);
        assert_eq!(rows("name.length"), profile.names().len());
        let cause = columns
            .iter()
            .find(|column| column.name == "sample.cause")
            .unwrap();
        assert_eq!(cause.planes, [0, 1, 0, 0]);
        assert_eq!(causes(&profile).len(), 1);
        let own = columns.iter().find(|column| column.name == "method.own");
        assert_eq!(
            own.unwrap().planes,
            [1, 0],
            "the JDK is not the application"
        );
    }
}
