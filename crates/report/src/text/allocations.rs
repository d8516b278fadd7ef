//! Allocated bytes: by class, and by the methods that allocate.

use super::{COLUMNS, ROWS, Report};
use crate::incomplete::incomplete_allocations;
use crate::number::{bytes, count, percent, plural, size};
use crate::plain::shortened;
use dwell_profile::{Row, Weight};

impl Report<'_> {
    /// Sampling of allocations, classes and methods. Prints nothing if they were not recorded.
    pub(super) fn allocations(&mut self) {
        let profile = self.profile;
        let sampling = profile.allocation_sampling().copied().unwrap_or_default();
        if !profile.has_allocations() {
            return;
        }
        let all = profile.allocated();
        let classes = profile.allocated_classes();
        let objects: f64 = classes.iter().map(|class| class.objects).sum();
        let mut told = size(all.sum);
        if objects > 0.0 {
            told += &format!(", {}", plural(objects.round() as u64, "object"));
        }
        told += &format!(", {}", plural(all.samples, "sample"));
        let interval = bytes(sampling.interval_bytes);
        told += &match (sampling.interval_bytes, sampling.rate) {
            (0, _) => String::new(),
            (_, 0) if sampling.has_grown() => format!(
                ", interval raised from {} to {interval} (rate limit)",
                bytes(sampling.asked_bytes)
            ),
            (_, 0) => format!(", mean interval {interval}"),
            (_, rate) => format!(", about {rate} per second (interval {interval} at the end)"),
        };
        self.raw("");
        self.raw(&format!("Allocated: {told}"));
        let lost = incomplete_allocations(profile);
        if !lost.is_empty() {
            self.paragraph(&format!("lost: {lost}"));
        }
        self.raw("");
        self.raw("Classes by bytes allocated");
        self.raw("     share     +-        bytes        objects   samples  class");
        for class in classes.iter().take(ROWS) {
            let objects = match class.objects {
                0.0 => String::new(),
                objects => count(objects.round() as u64),
            };
            let head = format!(
                "{} {:>12} {objects:>14} {:>9}  ",
                share_cells(&class.bytes, &all),
                size(class.bytes.sum),
                count(class.bytes.samples),
            );
            let name = shortened(&class.name, COLUMNS.saturating_sub(head.len()));
            self.raw(&format!("{head}{name}"));
        }
        self.more(classes.len(), ROWS);
        let mut rows = profile.allocating_methods();
        let title = "Methods by bytes allocated, callees included";
        self.allocating(title, &rows, &all, |row| &row.total);
        rows.retain(|row| row.own.sum > 0);
        rows.sort_by(|a, b| b.own.sum.cmp(&a.own.sum).then_with(|| a.name.cmp(&b.name)));
        let title = "Methods by bytes allocated, self";
        self.allocating(title, &rows, &all, |row| &row.own);
    }

    /// Rows with bytes and samples, by the column that sorts them.
    fn allocating(&mut self, title: &str, rows: &[Row], all: &Weight, by: fn(&Row) -> &Weight) {
        self.raw("");
        self.raw(title);
        self.raw("      self     +-     total     +-        bytes   samples  method");
        for row in rows.iter().take(ROWS) {
            let head = format!(
                "{} {} {:>12} {:>9}  ",
                share_cells(&row.own, all),
                share_cells(&row.total, all),
                size(by(row).sum),
                count(by(row).samples),
            );
            let name = shortened(&row.name, COLUMNS.saturating_sub(head.len()));
            self.raw(&format!("{head}{name}"));
        }
        self.more(rows.len(), ROWS);
    }
}

/// `  12.3 %   0.4`: a share and its error, 17 columns.
fn share_cells(weight: &Weight, all: &Weight) -> String {
    let error = weight.share_error(all) * 100.0;
    format!("{:>10} {error:>6.1}", percent(weight.share(all)))
}

#[cfg(test)]
mod tests {
    use dwell_profile::{Allocation, FrameKind, text_art};

    #[test]
    fn methods_show_bytes_and_samples_of_their_sort_key() {
        let mut builder = text_art::builder("a.A.outer\na.A.inner");
        let class = builder.name("byte[]");
        let frame = builder.marker("byte[]", FrameKind::Other);
        // Nodes 1 and 2 are the two methods.
        for (node, bytes) in [(1, 1 << 10), (2, 1 << 10), (2, 2 << 10)] {
            let node = builder.child(node, frame);
            builder.allocations.push(Allocation {
                time_ns: 0,
                thread: 0,
                node,
                class,
                bytes,
                size: 16,
                context: None,
            });
        }
        builder.allocation_sampling = Some(dwell_profile::AllocationSampling {
            interval_bytes: 1 << 10,
            ..dwell_profile::AllocationSampling::default()
        });
        let text = crate::text(&builder.finish());
        let cells = |title: &str| {
            let mut rows = text.lines().skip_while(|line| !line.starts_with(title));
            let row = rows.find(|line| line.ends_with("a.A.outer"));
            let row = row.unwrap_or_else(|| panic!("{text}"));
            let cells: Vec<&str> = row.split_whitespace().rev().take(4).collect();
            cells
                .iter()
                .rev()
                .map(|cell| cell.to_string())
                .collect::<Vec<_>>()
        };
        let with_callees = cells("Methods by bytes allocated, callees included");
        assert_eq!(with_callees, ["4,096", "bytes", "3", "a.A.outer"], "{text}");
        let by_itself = cells("Methods by bytes allocated, self");
        assert_eq!(by_itself, ["1,024", "bytes", "1", "a.A.outer"], "{text}");
    }
}
