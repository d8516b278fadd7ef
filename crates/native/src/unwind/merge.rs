//! Puts the functions of all sections into one sorted, merged list of rows with gaps marked.
//!
//! It must not know DWARF: its input is address ranges relative to the module, and packed rules.

use dwell_walker::native::{Row, Rule};

/// Functions are aligned to 16 bytes; padding between them is shorter.
pub(super) const PADDING_MAX: u32 = 15;

/// The section of a function; the first variant wins if two functions start together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    EhFrame,
    DebugFrame,
    Code,
}

#[derive(Clone, Copy, Debug)]
struct Function {
    start: u32,
    source: Source,
    end: u32,
    first_row: u32,
    row_count: u32,
}

/// Rows by function, in the order in which the functions were added.
#[derive(Debug, Default)]
pub(super) struct Functions {
    rows: Vec<Row>,
    functions: Vec<Function>,
    /// The first row since the last [`Functions::end_function`].
    open: usize,
}

impl Functions {
    /// Adds a row of the function that the next [`Functions::end_function`] closes.
    pub(super) fn push_row(&mut self, offset: u32, rule: Rule) {
        let rule = rule.encode();
        let is_open = self.rows.len() > self.open;
        match self.rows.last_mut().filter(|_| is_open) {
            Some(last) if last.rule == rule => {}
            Some(last) if last.offset == offset => last.rule = rule,
            _ => self.rows.push(Row { offset, rule }),
        }
    }

    /// Drops the rows since the last [`Functions::end_function`].
    pub(super) fn drop_open(&mut self) {
        self.rows.truncate(self.open);
    }

    /// Closes the function: the rows since the last call cover `start..end`.
    pub(super) fn end_function(&mut self, start: u32, end: u32, source: Source) {
        let first_row = std::mem::replace(&mut self.open, self.rows.len());
        let row_count = self.rows.len() - first_row;
        if row_count > 0 {
            // Both fit: sections are shorter than 2^27 bytes and a row takes more than one.
            let (first_row, row_count) = (first_row as u32, row_count as u32);
            self.functions.push(Function {
                start,
                source,
                end,
                first_row,
                row_count,
            });
        }
    }

    /// Sorts, cuts overlaps, marks gaps, and merges equal neighbours.
    pub(super) fn into_rows(mut self) -> Box<[Row]> {
        self.functions
            .sort_unstable_by_key(|f| (f.start, f.source, f.first_row));
        let mut merged = Merged {
            rows: Vec::with_capacity(self.rows.len()),
        };
        let mut covered_to = 0;
        for function in &self.functions {
            if function.end <= covered_to {
                continue;
            }
            let first = function.first_row as usize;
            let rows = self
                .rows
                .get(first..first + function.row_count as usize)
                .unwrap_or(&[]);
            let start = function.start.max(covered_to);
            merged.close_gap(covered_to, start, rows);
            // If an earlier function already covers the start, begin with the rule in force.
            let skipped = rows
                .partition_point(|row| row.offset <= start)
                .saturating_sub(1);
            for row in rows.get(skipped..).unwrap_or(&[]) {
                merged.push(row.offset.max(start), row.rule);
            }
            covered_to = function.end;
        }
        if !merged.rows.is_empty() {
            merged.push(covered_to, Rule::Gap.encode());
        }
        merged.rows.shrink_to_fit();
        merged.rows.into_boxed_slice()
    }
}

struct Merged {
    rows: Vec<Row>,
}

impl Merged {
    fn push(&mut self, offset: u32, rule: u32) {
        match self.rows.last_mut() {
            Some(last) if last.rule == rule => {}
            Some(last) if last.offset == offset => last.rule = rule,
            _ => self.rows.push(Row { offset, rule }),
        }
    }

    /// Sets the rule for the gap between the end of the last function and the start of the next.
    ///
    /// Alignment padding is never executed, and a row for each padding would double the table. It
    /// gets the next function's first rule, which is usually that of a function entry.
    fn close_gap(&mut self, from: u32, to: u32, next: &[Row]) {
        if from == to || self.rows.is_empty() {
            return;
        }
        let is_padding = to - from <= PADDING_MAX && to.is_multiple_of(16);
        match next.first() {
            Some(first) if is_padding => self.push(from, first.rule),
            _ => self.push(from, Rule::Gap.encode()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_walker::native::SavedRbp;

    fn sp(cfa_bytes: u32) -> Rule {
        Rule::Sp {
            cfa_bytes,
            rbp: SavedRbp::Same,
        }
    }

    /// A function: source, start, end, rows.
    type Given<'a> = (Source, u32, u32, &'a [(u32, Rule)]);

    /// The functions merged, with the rules unpacked.
    fn merged(functions: &[Given<'_>]) -> Vec<(u32, Rule)> {
        let mut collected = Functions::default();
        for (source, start, end, rows) in functions {
            for (offset, rule) in *rows {
                collected.push_row(*offset, *rule);
            }
            collected.end_function(*start, *end, *source);
        }
        let rows = collected.into_rows();
        rows.iter()
            .map(|row| (row.offset, Rule::decode(row.rule)))
            .collect()
    }

    #[test]
    fn no_functions_give_no_rows() {
        assert_eq!(merged(&[]), []);
        assert_eq!(merged(&[(Source::EhFrame, 16, 32, &[])]), []);
    }

    #[test]
    fn functions_are_sorted_and_equal_neighbours_merged() {
        let late: Given<'_> = (Source::EhFrame, 32, 48, &[(32, sp(8)), (40, sp(16))]);
        let early: Given<'_> = (
            Source::EhFrame,
            0,
            32,
            &[(0, sp(16)), (8, sp(8)), (9, sp(8))],
        );
        let expected = [(0, sp(16)), (8, sp(8)), (40, sp(16)), (48, Rule::Gap)];
        assert_eq!(merged(&[late, early]), expected);
        assert_eq!(merged(&[early, late]), expected);
    }

    #[test]
    fn a_row_replaced_at_the_same_address_counts_once() {
        let rows = [(0, sp(8)), (0, sp(16)), (4, sp(24))];
        let expected = [(0, sp(16)), (4, sp(24)), (8, Rule::Gap)];
        assert_eq!(merged(&[(Source::EhFrame, 0, 8, &rows)]), expected);
    }

    #[test]
    fn the_first_of_two_overlapping_functions_counts() {
        let outer: Given<'_> = (Source::EhFrame, 0, 32, &[(0, sp(8))]);
        let across: Given<'_> = (
            Source::EhFrame,
            16,
            48,
            &[(16, sp(16)), (24, sp(24)), (40, sp(32))],
        );
        let inner: Given<'_> = (Source::EhFrame, 20, 28, &[(20, sp(64))]);
        let expected = [(0, sp(8)), (32, sp(24)), (40, sp(32)), (48, Rule::Gap)];
        assert_eq!(merged(&[outer, across, inner]), expected);
    }

    #[test]
    fn eh_frame_counts_where_both_sections_start() {
        let debug: Given<'_> = (Source::DebugFrame, 0, 48, &[(0, sp(16)), (40, sp(24))]);
        let eh: Given<'_> = (Source::EhFrame, 0, 32, &[(0, sp(8))]);
        let expected = [(0, sp(8)), (32, sp(16)), (40, sp(24)), (48, Rule::Gap)];
        assert_eq!(merged(&[debug, eh]), expected);
    }

    #[test]
    fn only_alignment_padding_is_filled() {
        let cases = [
            (33, 48, sp(8)),     // 15 bytes up to a multiple of 16
            (32, 48, Rule::Gap), // a whole 16
            (33, 40, Rule::Gap), // not up to a multiple of 16
        ];
        for (end, start, between) in cases {
            let first: Given<'_> = (Source::EhFrame, 0, end, &[(0, sp(16))]);
            let second: Given<'_> = (Source::EhFrame, start, 64, &[(start, sp(8))]);
            let rows = merged(&[first, second]);
            let at_end = rows.iter().find(|(offset, _)| *offset == end);
            assert_eq!(at_end, Some(&(end, between)), "{end}..{start}");
        }
    }
}
