//! The tool `top`: sums by a dimension, the largest first.

use super::{Tool, head, opened};
use crate::answer::{Answer, Unit, amount, amount_schema, integer, object, schema, string, typed};
use crate::arguments::{Argument, Arguments, Kind};
use crate::recordings::Recordings;
use crate::selection::{
    Entry, Event, FILE, FILTERS, LIMIT_OF_ROWS, OFFSET, Selection, by_node, page, sum,
};
use dwell_profile::{GroupBy, Grouped, Profile, Row, ThreadId, Weight, group_of, sort_by_total};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

const BY: Argument = Argument::new(
    "by",
    Kind::Word(&[
        "method",
        "line",
        "class",
        "package",
        "library",
        "kind",
        "thread",
        "thread-group",
        "endpoint",
        "cause",
        "lock",
        "peer",
        "file",
    ]),
    "The dimension. line: method and line. kind: of code. cause: of waits. lock: class of the \
     lock. peer and file: of socket and file waits. Default: method",
);
const SORT: Argument = Argument::new(
    "sort",
    Kind::Word(&["self", "total"]),
    "self: the innermost frame only. total: callees included. Only for method to kind; default: \
     self",
);

pub(crate) const TOP: Tool = Tool {
    name: "top",
    title: "Where the time goes",
    about: "Sums of time or bytes by method, line, class, package, library, thread, endpoint, \
            cause, lock, peer or file, the largest first, with filters. self is the innermost \
            frame, total includes callees; a recursive method counts once.",
    arguments: || [&[FILE, BY, SORT], &FILTERS[..], &[LIMIT_OF_ROWS, OFFSET]].concat(),
    output,
    answer,
};

fn output() -> Value {
    let row = object(&[
        ("name", string()),
        ("self?", amount_schema()),
        ("total", amount_schema()),
        ("tid?", integer()),
        ("javaTid?", integer()),
        ("virtual?", typed(&["boolean"])),
    ]);
    let mut fields = head();
    fields.push(("without?", amount_schema()));
    schema(&fields, row)
}

fn answer(recordings: &mut Recordings, arguments: &Arguments) -> Result<Answer, String> {
    let (profile, mut answer) = opened(recordings, arguments, "")?;
    let by = arguments.text(BY.name).unwrap_or("method");
    let usual = match by {
        "cause" | "peer" | "file" => Event::Wall,
        "lock" if profile.has_locks() => Event::Lock,
        "lock" => Event::Wall,
        _ => Event::Cpu,
    };
    let selection = Selection::new(arguments, &profile, usual)?;
    let fits = match by {
        "cause" | "peer" | "file" => selection.event == Event::Wall,
        "lock" => matches!(selection.event, Event::Wall | Event::Lock),
        _ => true,
    };
    if !fits {
        let wanted = if by == "lock" { "wall or lock" } else { "wall" };
        return Err(format!("by: {by} needs event {wanted}"));
    }
    let entries = selection.entries(&profile);
    let whole = sum(&entries);
    let table = Table {
        profile: &profile,
        whole,
        unit: selection.unit(&profile),
    };
    answer.what = format!("{} by {by}", selection.words(&profile));
    selection.describe(&mut answer, &profile, &whole);
    if let Some(grouped) = grouped(&profile, by) {
        table.frames(&mut answer, arguments, &grouped, &entries);
    } else if by == "thread" {
        table.threads(&mut answer, arguments, &entries);
    } else {
        table.names(&mut answer, arguments, by, &entries);
    }
    Ok(answer)
}

/// The groups of frames, if the dimension is one of frames.
fn grouped(profile: &Profile, by: &str) -> Option<Grouped> {
    Some(match by {
        "method" => profile.group(GroupBy::Method),
        "class" => profile.group(GroupBy::Class),
        "package" => profile.group(GroupBy::Package),
        "library" => profile.group(GroupBy::Library),
        "kind" => profile.group(GroupBy::Kind),
        "line" => lines(profile),
        _ => return None,
    })
}

/// Groups by method and line.
fn lines(profile: &Profile) -> Grouped {
    let methods = profile.group(GroupBy::Method);
    let mut known: HashMap<(u32, u32), u32> = HashMap::new();
    let mut names: Vec<String> = Vec::new();
    let frames = methods.of_frame.iter().zip(profile.frames());
    let of_frame = frames.map(|(method, frame)| {
        *known.entry((*method, frame.line)).or_insert_with(|| {
            let name = methods.names.get(*method as usize).map_or("", |it| it);
            names.push(match frame.line {
                0 => name.to_owned(),
                line => format!("{name}:{line}"),
            });
            (names.len() - 1) as u32
        })
    });
    Grouped {
        of_frame: of_frame.collect(),
        names,
    }
}

struct Table<'p> {
    profile: &'p Profile,
    whole: Weight,
    unit: Unit,
}

impl Table<'_> {
    fn amount(&self, weight: &Weight) -> Value {
        amount(weight, &self.whole, self.unit)
    }

    /// Rows with the time of the innermost frame, and with that of callees.
    fn frames(
        &self,
        answer: &mut Answer,
        arguments: &Arguments,
        grouped: &Grouped,
        entries: &[Entry<'_>],
    ) {
        let by_node = by_node(self.profile, entries);
        let mut rows: Vec<Row> = self.profile.rows_of(grouped, &by_node);
        match arguments.text(SORT.name) {
            Some("total") => sort_by_total(&mut rows),
            _ => rows.retain(|row| row.own.sum > 0),
        }
        answer.rows_in_all = rows.len();
        let rows = page(arguments).of(rows).map(|row| {
            json!({
                "name": row.name,
                "self": self.amount(&row.own),
                "total": self.amount(&row.total),
            })
        });
        answer.rows = rows.collect();
    }

    /// Threads of one name are different threads.
    fn threads(&self, answer: &mut Answer, arguments: &Arguments, entries: &[Entry<'_>]) {
        let mut sums: BTreeMap<ThreadId, Weight> = BTreeMap::new();
        for entry in entries {
            *sums.entry(entry.thread).or_default() += &entry.weight;
        }
        let rows = largest_first(sums);
        answer.rows_in_all = rows.len();
        let rows = page(arguments).of(rows).map(|(id, weight)| {
            let thread = self.profile.threads().get(id as usize);
            json!({
                "name": self.profile.thread_name(id),
                "total": self.amount(&weight),
                "tid": thread.map_or(0, |it| it.os_tid),
                "javaTid": thread.map_or(0, |it| it.java_tid),
                "virtual": thread.is_some_and(|it| it.is_virtual),
            })
        });
        answer.rows = rows.collect();
    }

    /// Rows by a name; entries without one are summed separately.
    fn names(&self, answer: &mut Answer, arguments: &Arguments, by: &str, entries: &[Entry<'_>]) {
        let mut sums: BTreeMap<String, Weight> = BTreeMap::new();
        let mut without = Weight::default();
        for entry in entries {
            match name_of(self.profile, by, entry) {
                Some(name) => *sums.entry(name).or_default() += &entry.weight,
                None => without += &entry.weight,
            }
        }
        if without.samples > 0 {
            answer.put("without", self.amount(&without));
            let unit = self.unit.shown(without.sum);
            answer.notes.push(format!(
                "{unit} of the total have no {by} and are in no row"
            ));
        }
        let rows = largest_first(sums);
        answer.rows_in_all = rows.len();
        let rows = page(arguments).of(rows);
        let rows =
            rows.map(|(name, weight)| json!({ "name": name, "total": self.amount(&weight) }));
        answer.rows = rows.collect();
    }
}

/// The name of an entry in a dimension, if it has one.
fn name_of(profile: &Profile, by: &str, entry: &Entry<'_>) -> Option<String> {
    let detail = || (!entry.detail.is_empty()).then(|| entry.detail.to_owned());
    match by {
        "thread-group" => Some(group_of(profile.thread_name(entry.thread))),
        "endpoint" => entry
            .context
            .and_then(|it| profile.endpoint(it))
            .map(str::to_owned),
        "cause" => entry.cause.map(str::to_owned),
        "lock" => crate::selection::lock_of(entry).map(str::to_owned),
        "peer" => detail().filter(|_| entry.cause == Some("socket")),
        "file" => detail().filter(|_| entry.cause == Some("file")),
        _ => None,
    }
}

/// Sums in the order of their weight, then of their key.
pub(super) fn largest_first<K>(sums: BTreeMap<K, Weight>) -> Vec<(K, Weight)> {
    let mut rows: Vec<(K, Weight)> = sums.into_iter().collect();
    rows.sort_by_key(|(_, weight)| std::cmp::Reverse(weight.sum));
    rows
}
