//! Tables of events of other recorders that are no time of threads: exceptions by class and place,
//! transfers by peer and file, old objects, calls of methods. Pure.

use crate::counts::count;
use crate::info::EventWaits;
use crate::names::NameId;
use crate::profile::Profile;
use crate::traced::{ThrownSum, Traced, TracedKind};
use crate::tree::NodeId;
use std::collections::BTreeMap;

/// The unit of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellUnit {
    /// A number of something.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanos,
}

/// A column of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventColumn {
    /// Its heading.
    pub head: &'static str,
    /// Its unit.
    pub unit: CellUnit,
}

/// A table. Rows are ordered by the column that [`EventTable::title`] names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventTable {
    /// The kind of its events.
    pub kind: TracedKind,
    /// Its title.
    pub title: &'static str,
    /// A note for the reader; may be empty.
    pub note: String,
    /// The heading of the names.
    pub head: &'static str,
    /// The columns that have values.
    pub columns: Vec<EventColumn>,
    /// A name and a number for each column.
    pub rows: Vec<(String, Vec<u64>)>,
}

/// A column, and its value for a row.
struct Column {
    shown: EventColumn,
    of: fn(&Traced) -> u64,
}

/// How a kind is shown.
struct Shape {
    kind: TracedKind,
    title: &'static str,
    head: &'static str,
    by: fn(&Traced) -> u64,
    columns: &'static [Column],
}

const fn column(head: &'static str, unit: CellUnit, of: fn(&Traced) -> u64) -> Column {
    let shown = EventColumn { head, unit };
    Column { shown, of }
}

const TRANSFERS: &[Column] = &[
    column("events", CellUnit::Count, |it| it.count),
    column("read", CellUnit::Bytes, |it| it.bytes[0]),
    column("written", CellUnit::Bytes, |it| it.bytes[1]),
    column("time", CellUnit::Nanos, |it| it.duration_ns),
    column("longest", CellUnit::Nanos, |it| it.longest_ns),
];

const CALLS: &[Column] = &[
    column("calls", CellUnit::Count, |it| it.count),
    column("time", CellUnit::Nanos, |it| it.duration_ns),
    column("average", CellUnit::Nanos, |it| {
        it.duration_ns / it.count.max(1)
    }),
    column("longest", CellUnit::Nanos, |it| it.longest_ns),
];

const SHAPES: &[Shape] = &[
    Shape {
        kind: TracedKind::Exception,
        title: "Exceptions by number",
        head: "class, place",
        by: |it| it.count,
        columns: &[column("thrown", CellUnit::Count, |it| it.count)],
    },
    Shape {
        kind: TracedKind::Socket,
        title: "Sockets by time",
        head: "peer",
        by: |it| it.duration_ns,
        columns: TRANSFERS,
    },
    Shape {
        kind: TracedKind::File,
        title: "Files by time",
        head: "path",
        by: |it| it.duration_ns,
        columns: TRANSFERS,
    },
    Shape {
        kind: TracedKind::Pinned,
        title: "Pinned virtual threads by time",
        head: "reason, place",
        by: |it| it.duration_ns,
        columns: &[
            column("waits", CellUnit::Count, |it| it.count),
            column("time", CellUnit::Nanos, |it| it.duration_ns),
            column("longest", CellUnit::Nanos, |it| it.longest_ns),
        ],
    },
    Shape {
        kind: TracedKind::OldObject,
        title: "Old objects by number of samples",
        head: "class, place of the allocation",
        by: |it| it.count,
        columns: &[
            column("samples", CellUnit::Count, |it| it.count),
            column("size", CellUnit::Bytes, |it| it.bytes[0]),
            column("oldest", CellUnit::Nanos, |it| it.longest_ns),
        ],
    },
    Shape {
        kind: TracedKind::Call,
        title: "Traced methods by time",
        head: "method",
        by: |it| it.duration_ns,
        columns: CALLS,
    },
    Shape {
        kind: TracedKind::Calls,
        title: "Timed methods by time",
        head: "method",
        by: |it| it.duration_ns,
        columns: CALLS,
    },
];

impl Profile {
    /// The JVM's count of exceptions, if another recorder wrote it.
    #[must_use]
    pub fn thrown(&self) -> Option<ThrownSum> {
        self.thrown
    }

    /// Tables of the events of other recorders that are no time of threads.
    #[must_use]
    pub fn event_tables(&self) -> Vec<EventTable> {
        let mut sums: BTreeMap<(TracedKind, NameId, Option<NodeId>), Traced> = BTreeMap::new();
        for traced in &self.traced {
            let key = (traced.kind, traced.what, traced.node);
            match sums.get_mut(&key) {
                Some(sum) => sum.add(traced),
                None => _ = sums.insert(key, *traced),
            }
        }
        let mut named: BTreeMap<(TracedKind, String), Traced> = BTreeMap::new();
        for ((kind, what, node), sum) in sums {
            let mut name = self.names.text(what).to_owned();
            if let Some(place) = node.and_then(|node| self.place(node)) {
                name = format!("{name} in {place}");
            }
            match named.get_mut(&(kind, name.clone())) {
                Some(known) => known.add(&sum),
                None => _ = named.insert((kind, name), sum),
            }
        }
        let tables = SHAPES.iter().filter_map(|shape| {
            let of_kind = named.iter().filter(|((kind, _), _)| *kind == shape.kind);
            let mut rows: Vec<(&str, &Traced)> =
                of_kind.map(|((_, name), sum)| (&name[..], sum)).collect();
            rows.sort_by_key(|(_, sum)| std::cmp::Reverse((shape.by)(sum)));
            (!rows.is_empty()).then(|| self.event_table(shape, &rows))
        });
        tables.collect()
    }

    fn event_table(&self, shape: &Shape, rows: &[(&str, &Traced)]) -> EventTable {
        let has_values = |column: &&Column| rows.iter().any(|(_, sum)| (column.of)(sum) > 0);
        let columns: Vec<&Column> = shape.columns.iter().filter(has_values).collect();
        let cells = |(name, sum): &(&str, &Traced)| {
            let cells = columns.iter().map(|column| (column.of)(sum));
            ((*name).to_owned(), cells.collect())
        };
        EventTable {
            kind: shape.kind,
            title: shape.title,
            note: self.note_of(shape.kind),
            head: shape.head,
            rows: rows.iter().map(cells).collect(),
            columns: columns.iter().map(|column| column.shown).collect(),
        }
    }

    fn missing(&self, threshold_ns: fn(&EventWaits) -> u64) -> String {
        let threshold_ns = self.info.event_waits.as_ref().map_or(0, threshold_ns);
        EventWaits::missing("Transfers", threshold_ns)
    }

    /// Events that are missing in a table.
    fn note_of(&self, kind: TracedKind) -> String {
        let events = self.traced.iter().filter(|it| it.kind == kind).count() as u64;
        match kind {
            TracedKind::Exception => match self.thrown {
                Some(ThrownSum { all, .. }) if all > events => format!(
                    "The JVM has counted {} exceptions since it started. {} have events, so \
                     numbers by place are incomplete.",
                    count(all),
                    count(events)
                ),
                _ => String::new(),
            },
            TracedKind::Socket => self.missing(|waits| waits.sockets_ns),
            TracedKind::File => self.missing(|waits| waits.files_ns),
            TracedKind::OldObject => {
                "The recorder keeps a few objects of those that it sampled: compare classes, \
                 do not add them up."
                    .to_owned()
            }
            TracedKind::Pinned | TracedKind::Call | TracedKind::Calls => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Builder;
    use crate::text_art;

    fn builder() -> Builder {
        text_art::builder("thread: main\nweight: 10\njava.A.x\napp.B.y")
    }

    fn row(name: &str, cells: &[u64]) -> (String, Vec<u64>) {
        (name.to_owned(), cells.to_vec())
    }

    #[test]
    fn exceptions_are_counted_by_class_and_place() {
        let mut builder = builder();
        let (a, b) = (builder.name("a.Fault"), builder.name("b.Fault"));
        let node = builder.clone().finish().samples()[0].node;
        for (what, node) in [(a, Some(node)), (b, None), (a, Some(node))] {
            builder
                .traced
                .push(Traced::one(TracedKind::Exception, what, node));
        }
        builder.thrown = Some(ThrownSum {
            all: 10,
            per_second: None,
        });
        let tables = builder.finish().event_tables();
        let [table] = &tables[..] else {
            panic!("{tables:?}");
        };
        assert_eq!(
            table.rows,
            [row("a.Fault in app.B.y", &[2]), row("b.Fault", &[1])]
        );
        assert!(table.note.contains("counted 10 ") && table.note.contains(". 3 have"));
    }

    #[test]
    fn transfers_are_summed_by_peer_without_empty_columns() {
        let mut builder = builder();
        let (a, b) = (builder.name("10.0.0.1:5432"), builder.name("10.0.0.2:80"));
        for (what, bytes, duration_ns) in [(b, 7, 30), (a, 1, 50), (b, 3, 40)] {
            builder.traced.push(Traced {
                bytes: [bytes, 0],
                duration_ns,
                longest_ns: duration_ns,
                ..Traced::one(TracedKind::Socket, what, None)
            });
        }
        let tables = builder.finish().event_tables();
        let heads: Vec<_> = tables[0].columns.iter().map(|it| it.head).collect();
        assert_eq!(heads, ["events", "read", "time", "longest"]);
        let first = row("10.0.0.2:80", &[2, 10, 70, 40]);
        assert_eq!(
            tables[0].rows,
            [first, row("10.0.0.1:5432", &[1, 1, 50, 50])]
        );
    }

    #[test]
    fn profile_without_such_events_has_no_tables() {
        assert!(builder().finish().event_tables().is_empty());
    }
}
