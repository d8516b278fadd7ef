//! Profiles drawn as text, for tests: one column a sample, outermost frame on top.
//!
//! ```text
//! thread:  main        main      gc
//! weight:  10          20        5
//! failure: -           no_table  -
//!          a.A.x[c2]   a.A.x     libjvm.so.y[vm]
//!          a.A.z:12    -         -
//! ```
//!
//! Cells hold no blanks. A frame is `class.method`, then optionally `:line`, then optionally
//! `[kind]`; without a kind it is C2. The three header rows may be left out. `-` is an empty cell.
//! Samples are one millisecond apart.

use std::collections::HashMap;

use crate::builder::Builder;
use crate::frame::{FrameId, FrameKind};
use crate::profile::Profile;
use crate::sample::Sample;

/// The profile that `art` draws.
///
/// # Panics
///
/// If a weight, a line or a kind cannot be read: this is for tests.
pub fn profile(art: &str) -> Profile {
    builder(art).finish()
}

/// Like [`profile`], but leaves the builder open so that a test can add more.
///
/// # Panics
///
/// As [`profile`] does.
pub fn builder(art: &str) -> Builder {
    let mut builder = Builder::default();
    let (mut threads, mut weights, mut failures) = (Vec::new(), Vec::new(), Vec::new());
    let mut stacks: Vec<Vec<FrameId>> = Vec::new();
    for row in art.lines().map(str::trim).filter(|row| !row.is_empty()) {
        let (label, cells) = match row.split_once(char::is_whitespace) {
            Some((label, cells)) if label.ends_with(':') => (label, cells),
            _ => ("", row),
        };
        let cells: Vec<&str> = cells.split_whitespace().collect();
        match label {
            "thread:" => threads = cells,
            "weight:" => weights = cells.iter().map(|cell| number(cell)).collect(),
            "failure:" => failures = cells,
            "" => add_row(&mut builder, &mut stacks, &cells),
            other => panic!("unknown row {other:?}"),
        }
    }
    let mut thread_ids = HashMap::new();
    for (column, stack) in stacks.into_iter().enumerate() {
        let name = threads.get(column).copied().unwrap_or("main");
        let next = thread_ids.len() as i64 + 1;
        let thread = *thread_ids
            .entry(name)
            .or_insert_with(|| builder.thread(name, next, next, false));
        let cause = failures.get(column).filter(|cause| **cause != "-");
        let failure = cause.map(|cause| builder.cause(cause));
        let node = builder.stack(stack);
        let weight = weights.get(column).copied().unwrap_or(1);
        let time_ns = column as u64 * 1_000_000;
        builder.sample(Sample {
            time_ns,
            thread,
            node,
            weight,
            count: 1,
            failure,
            context: None,
        });
    }
    builder
}

fn add_row(builder: &mut Builder, stacks: &mut Vec<Vec<FrameId>>, cells: &[&str]) {
    for (column, cell) in cells.iter().enumerate() {
        if stacks.len() <= column {
            stacks.push(Vec::new());
        }
        if *cell != "-" {
            let frame = frame(builder, cell);
            stacks[column].push(frame);
        }
    }
}

fn frame(builder: &mut Builder, cell: &str) -> FrameId {
    let (place, kind) = match cell
        .strip_suffix(']')
        .and_then(|cell| cell.rsplit_once('['))
    {
        Some((place, kind)) if !place.is_empty() => (place, kind_named(kind)),
        _ => (cell, FrameKind::C2),
    };
    let (path, line) = match place.rsplit_once(':') {
        Some((path, line)) if line.bytes().all(|byte| byte.is_ascii_digit()) => {
            (path, number(line) as u32)
        }
        _ => (place, 0),
    };
    let (class, name) = path.rsplit_once('.').unwrap_or(("", path));
    let method = builder.method(class, name, "");
    builder.frame(method, line, kind)
}

fn kind_named(text: &str) -> FrameKind {
    FrameKind::ALL
        .into_iter()
        .find(|kind| kind.label().eq_ignore_ascii_case(text))
        .unwrap_or_else(|| panic!("unknown kind {text:?}"))
}

fn number(text: &str) -> u64 {
    text.parse()
        .unwrap_or_else(|_| panic!("not a number: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_columns() {
        let profile = profile(
            "thread: main  gc
             a.A.x:3[c1]   libjvm.so.y[vm]
             a.A.z         -",
        );
        assert_eq!(profile.samples().len(), 2);
        let stack: Vec<_> = profile.tree().stack(profile.samples()[0].node).collect();
        let frames: Vec<_> = stack
            .iter()
            .map(|&id| profile.frames()[id as usize])
            .collect();
        assert_eq!(profile.method_name(frames[0].method), "a.A.z");
        assert_eq!((frames[1].line, frames[1].kind), (3, FrameKind::C1));
        assert_eq!(
            profile.leaf(profile.samples()[1].node).unwrap().kind,
            FrameKind::Vm
        );
        assert_eq!(profile.samples()[1].time_ns, 1_000_000);
    }
}
