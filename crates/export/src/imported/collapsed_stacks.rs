//! Collapsed stacks, of async-profiler, py-spy and others: a line has frames, outermost first, and
//! a number.

use std::collections::HashMap;

use dwell_profile::{Builder, Measured, Profile, Sample, ThreadId, Unit};

use super::{DEPTH_MAX, Function, add_samples, add_stack, name_and_id};

/// The missing data.
const WARNING: &str = "read from collapsed stacks, which do not say what they count (taken as \
                       samples): they have no times, no wall time by cause and no requests";
/// The number that is not a sum of samples of any program. It bounds the work for one line.
const SUM_MAX: u64 = 1 << 50;

/// The profile in a text; `None` if a line is no stack.
pub fn read(bytes: &[u8]) -> Option<Profile> {
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.trim_start_matches('\u{feff}');
    let is_whole = text.ends_with('\n');
    let mut lines = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .peekable();
    let mut has_stacks = false;
    let mut builder = Builder::default();
    let mut threads: HashMap<Named<'_>, ThreadId> = HashMap::new();
    let mut left = SUM_MAX;
    while let Some(line) = lines.next() {
        let Some((stack, weight)) = parsed(line) else {
            // A file that was cut off ends within a line.
            if lines.peek().is_none() && !is_whole && has_stacks && line.contains(';') {
                builder.warnings.push("the last line is cut off".to_owned());
                break;
            }
            return None;
        };
        let weight = weight.min(left);
        left -= weight;
        // Other texts with numbers at the ends of lines are words without a dot.
        has_stacks |= stack.contains(';') || stack.contains('.') && !stack.contains(' ');
        let (name, stack) = thread_of(stack);
        let named = name.unwrap_or(("[all threads]", 0));
        let java_tid = threads.len() as i64 + 1;
        let new = || builder.thread(named.0, named.1, java_tid, false);
        let thread = *threads.entry(named).or_insert_with(new);
        let names = stack.rsplit(';').filter(|name| !name.is_empty());
        let frames = names.take(DEPTH_MAX + 1);
        let frames = frames.map(|name| function(name).frame(&mut builder));
        let frames: Vec<_> = frames.collect();
        let node = add_stack(&mut builder, frames);
        let sample = Sample {
            time_ns: 0,
            thread,
            node,
            weight,
            count: 0,
            failure: None,
            context: None,
        };
        add_samples(&mut builder, sample, weight);
    }
    if !has_stacks {
        return None;
    }
    builder.unit = Unit::Samples;
    builder.info.measured = Measured::Event("collapsed stacks".to_owned());
    builder.info.sample_event = "collapsed stacks".to_owned();
    builder.info.engine = "collapsed stacks".to_owned();
    builder.warnings.push(WARNING.to_owned());
    if left == 0 {
        let warning = "the file is damaged: its numbers are too large to add up";
        builder.warnings.push(warning.to_owned());
    }
    Some(builder.finish())
}

/// A line's stack and number.
fn parsed(line: &str) -> Option<(&str, u64)> {
    let (stack, number) = line.rsplit_once(' ')?;
    Some((stack, number.parse().ok()?))
}

/// A thread's name and number.
type Named<'t> = (&'t str, i64);

/// The thread that async-profiler (`[NAME tid=123]`) and py-spy (`thread (123): NAME`) put first,
/// and the rest of the stack.
fn thread_of(stack: &str) -> (Option<Named<'_>>, &str) {
    let (first, rest) = stack.split_once(';').unwrap_or((stack, ""));
    let of_python = || {
        let (id, name) = first.strip_prefix("thread (")?.split_once("): ")?;
        Some((name, id.parse().ok()?))
    };
    match name_and_id(first).or_else(of_python) {
        Some(named) => (Some(named), rest),
        None => (None, stack),
    }
}

/// A frame's function. py-spy writes `NAME (FILE:LINE)`.
fn function(text: &str) -> Function<'_> {
    let place = text.strip_suffix(')').and_then(|it| it.rsplit_once(" ("));
    let line = place.and_then(|(_, place)| place.rsplit_once(':'));
    match (place, line) {
        (Some((name, _)), Some((file, number))) if number.parse::<u32>().is_ok() => Function {
            text: name,
            // Functions of the same name in two files are two.
            library: file,
            source: file,
            line: number.parse().unwrap_or(0),
            ..Function::default()
        },
        _ => Function {
            text,
            ..Function::default()
        },
    }
}
