//! The part of the header that sums up events of other recorders. Findings have it, too.

use dwell_profile::{CellUnit, EventTable, Profile};
use serde_json::{Value, json};

/// Rows of a table in the page.
const ROWS: usize = 30;

/// The tables.
pub(super) fn tables(profile: &Profile) -> Vec<Value> {
    values(&profile.event_tables(), ROWS, str::to_owned)
}

/// Tables with at most so many rows; `name` makes a name what the reader may see.
pub(crate) fn values(
    tables: &[EventTable],
    most: usize,
    name_of: impl Fn(&str) -> String,
) -> Vec<Value> {
    let unit = |unit: CellUnit| match unit {
        CellUnit::Count => "count",
        CellUnit::Bytes => "bytes",
        CellUnit::Nanos => "ns",
    };
    let tables = tables.iter().map(|table| {
        let columns = table.columns.iter();
        let columns = columns.map(|it| json!({ "head": it.head, "unit": unit(it.unit) }));
        let rows = table.rows.iter().take(most);
        let rows = rows.map(|(name, cells)| json!({ "name": name_of(name), "cells": cells }));
        json!({
            "title": table.title,
            "note": table.note,
            "head": table.head,
            "columns": columns.collect::<Vec<_>>(),
            "rows": rows.collect::<Vec<_>>(),
            "more": table.rows.len().saturating_sub(most),
        })
    });
    tables.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{Builder, Traced, TracedKind};

    #[test]
    fn page_has_a_table_of_each_kind_with_its_largest_rows() {
        let mut builder = Builder::default();
        for at in 0..ROWS as u64 + 2 {
            let what = builder.name(&format!("10.0.0.{at}:80"));
            builder.traced.push(Traced {
                bytes: [7, 0],
                duration_ns: at + 1,
                ..Traced::one(TracedKind::Socket, what, None)
            });
        }
        let tables = tables(&builder.finish());
        let [table] = &tables[..] else {
            panic!("{tables:?}");
        };
        assert_eq!(table["more"], 2);
        let last = ROWS as u64 + 2;
        let row = json!({ "name": format!("10.0.0.{}:80", last - 1), "cells": [1, 7, last] });
        assert_eq!(table["rows"][0], row);
        let unit = |at: usize| table["columns"][at]["unit"].clone();
        assert_eq!([unit(0), unit(1), unit(2)], ["count", "bytes", "ns"]);
    }
}
