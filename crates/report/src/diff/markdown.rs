//! Two recordings compared, as Markdown for a comment on a change: limits and significant rows are
//! visible, and all others folded. Names are inert: they are code, and cannot end it or the cell.

use std::fmt::Write as _;

use dwell_profile::Unit;
use dwell_profile::diff::Change;

use super::{Compared, Table, by_significance};
use crate::number::{count, duration};
use crate::plain::shortened;
use crate::unread::unread_words;

/// Rows of a table that are significant, and of those that are not.
const ROWS: usize = 10;
const ROWS_OF_CHANCE: usize = 5;
/// The widest name.
const COLUMNS: usize = 120;

impl Compared<'_> {
    /// The differences as Markdown.
    #[must_use]
    pub fn markdown(&self, names: [&str; 2]) -> String {
        let mut text = format!(
            "### dwell: {} against {}\n\n",
            code(names[1]),
            code(names[0])
        );
        self.verdict_rows(&mut text);
        let significant = |table: &Table| {
            let rows = table.changes.iter().filter(|it| !table.is_idle(it));
            rows.filter(|it| it.is_significant).count()
        };
        if self.tables.iter().all(|table| significant(table) == 0) {
            text.push_str("No difference is significant.\n\n");
        }
        for table in &self.tables {
            self.rows(&mut text, table, significant(table));
        }
        self.recordings(&mut text, names);
        text
    }

    fn verdict_rows(&self, text: &mut String) {
        if self.verdicts.is_empty() {
            return;
        }
        text.push_str("| limit | result | of | change |\n|---|---|---|--:|\n");
        for it in &self.verdicts {
            let (limit, name) = (code(&it.limit), code(&it.name));
            let (result, grown) = (it.outcome.word(), it.grown());
            let _ = writeln!(text, "| {limit} | **{result}** | {name} | {grown} |");
        }
        text.push('\n');
    }

    fn rows(&self, text: &mut String, table: &Table, significant: usize) {
        let rows = table.changes.iter().filter(|it| !table.is_idle(it));
        let (told, rest) = by_significance(rows);
        if told.is_empty() && rest.is_empty() {
            return;
        }
        let all = told.len() + rest.len();
        let title = table.title;
        let of = format!("{significant} of {all} rows are significant");
        if !told.is_empty() {
            let _ = writeln!(text, "**{title}** ({of})\n");
            self.table_rows(text, told.iter().take(ROWS));
        }
        let shown = rest.len().min(ROWS_OF_CHANCE);
        if shown > 0 {
            let what = match told.is_empty() {
                true => format!("{title} ({of})"),
                false => format!("{title}: the largest rows within sampling noise"),
            };
            let _ = writeln!(text, "<details><summary>{what}</summary>\n");
            self.table_rows(text, rest.iter().take(shown));
            text.push_str("</details>\n\n");
        }
    }

    fn table_rows<'c>(&self, text: &mut String, rows: impl Iterator<Item = &'c &'c Change>) {
        text.push_str("| A | B | change | +- | |\n|--:|--:|--:|--:|---|\n");
        for it in rows {
            let note = match (it.is_new(), it.is_gone()) {
                (true, _) => "new ",
                (_, true) => "gone ",
                _ => "",
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {note}{} |",
                self.rate(it.rate_a),
                self.rate(it.rate_b),
                self.signed(it.difference()),
                self.rate(it.error),
                code(&it.name),
            );
        }
        text.push('\n');
    }

    fn recordings(&self, text: &mut String, names: [&str; 2]) {
        for (letter, name, profile) in [("A", names[0], self.a), ("B", names[1], self.b)] {
            let total = profile.total();
            let lasted = duration(profile.info().duration_ns);
            let _ = write!(
                text,
                "- {letter}: {}, {lasted}, {} samples",
                code(name),
                count(total.samples)
            );
            if profile.unit() == Unit::Nanoseconds {
                let of = crate::words::of_time(profile);
                let _ = write!(text, ", {} {of}", duration(total.sum));
            }
            if let Some(unread) = profile.unread() {
                let _ = write!(text, "; note: it {}", unread_words(unread));
            }
            text.push('\n');
        }
        let base = self.told_base();
        let _ = writeln!(
            text,
            "\n{base}; +- is one standard error of the change, by sampling alone"
        );
    }
}

/// A name as code. Nothing in code is a link, a mention or a tag; only a backtick can end it, and
/// only a bar the cell around it.
fn code(name: &str) -> String {
    let name = shortened(name, COLUMNS)
        .replace('`', "'")
        .replace('|', "\u{a6}");
    match name.trim().is_empty() {
        true => "`-`".to_owned(),
        false => format!("`{name}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::compared;
    use super::super::growth_limits::{Limit, Limited};
    use super::super::tests::{pair, sample};
    use super::*;
    use dwell_profile::diff::Per;
    use dwell_profile::{Profile, text_art};

    fn many(name: &str, samples: u32) -> Profile {
        let mut builder = text_art::builder(&format!("weight: 10000000\na.A.{name}"));
        builder.info.duration_ns = 1_000_000_000;
        (1..samples).for_each(|_| builder.sample(sample(1)));
        builder.finish()
    }

    #[test]
    fn significant_rows_are_visible_and_others_folded() {
        let (a, b) = (many("x", 100), many("x", 300));
        let mut both = compared(&a, &b, Per::Second).unwrap();
        let limit = Limit {
            of: Limited::Cpu,
            tolerance: 0.05,
            text: "cpu>5%".to_owned(),
        };
        both.check(&[limit]).unwrap();
        let text = both.markdown(["a.jfr", "b.jfr"]);
        for part in [
            "### dwell: `b.jfr` against `a.jfr`\n",
            "| `cpu>5%` | **failed** | `CPU time` | +200.0 % (+- 34.6) |\n",
            "**CPU time by method, self** (1 of 1 rows are significant)\n",
            "| 1.00 s | 3.00 s | +2.00 s | 200 ms | `a.A.x` |\n",
            "- A: `a.jfr`, 1.00 s, 100 samples, 1.00 s of CPU time\n",
            "\nall numbers are for one second",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
        assert!(!text.contains("details"), "{text}");
        let (a, b) = pair();
        let text = compared(&a, &b, Per::Second).unwrap().markdown(["a", "b"]);
        assert!(text.contains("No difference is significant."), "{text}");
        let folded = "<details><summary>CPU time by method, self (0 of 3 rows";
        assert!(text.contains(folded), "{text}");
        let (open, closed) = ("<details>", "</details>");
        assert_eq!(text.matches(open).count(), text.matches(closed).count());
    }

    #[test]
    fn names_cannot_leave_their_cell() {
        for (name, expected) in [
            ("a`|<img src=x>@all", "`a'\u{a6}<img src=x>@all`"),
            ("a\n| b |", "`a\u{fffd}\u{a6} b \u{a6}`"),
            ("\\", "`\\`"),
            ("", "`-`"),
        ] {
            assert_eq!(code(name), expected);
        }
        let (hostile, other) = (many("x`|</details>", 100), many("x", 300));
        let text = compared(&hostile, &other, Per::Second);
        let text = text.unwrap().markdown(["a`b|c.jfr", "b"]);
        let rows = text.lines().filter(|line| line.starts_with("| "));
        assert!(rows.clone().count() > 2, "{text}");
        for row in rows {
            assert_eq!(
                (row.matches('|').count(), row.matches('`').count() % 2),
                (6, 0),
                "{row}"
            );
        }
    }
}
