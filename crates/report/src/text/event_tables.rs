//! Events of other recorders that are no time of threads, as tables.

use super::{ROWS, Report};
use crate::event_lines::event_table;

impl Report<'_> {
    /// A table for each kind of which there is something.
    pub(super) fn event_tables(&mut self) {
        for table in self.profile.event_tables() {
            self.raw("");
            self.text.push_str(&event_table(&table, ROWS));
        }
    }
}

#[cfg(test)]
mod tests {
    use dwell_profile::{Builder, Traced, TracedKind};

    #[test]
    fn tables_have_numbers_with_units_before_names() {
        let mut builder = Builder::default();
        let what = builder.name("/var/data.bin");
        builder.traced.push(Traced {
            bytes: [0, 64 << 20],
            duration_ns: 48_800_000,
            longest_ns: 48_800_000,
            ..Traced::one(TracedKind::File, what, None)
        });
        let text = crate::text(&builder.finish());
        let row = "           1     64.0 MiB      48.8 ms      48.8 ms  /var/data.bin";
        assert!(text.contains(row), "{text}");
        let head = "      events      written         time      longest  path";
        assert!(text.contains(head), "{text}");
    }
}
