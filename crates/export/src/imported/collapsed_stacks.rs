//! Collapsed stacks, of async-profiler and others: a line has frames, outermost first, and a
//! number.

use std::collections::HashMap;

use dwell_profile::{Builder, FrameKind, Measured, Profile, Sample, ThreadId, Unit};

use super::{frame, kind_of};

/// The missing data.
const WARNING: &str = "read from collapsed stacks, which count samples: they have no times, no \
                       wall time by cause, no requests and no lines";

/// Marks of async-profiler's option `ann` at the ends of frames.
const MARKS: [(&str, FrameKind); 5] = [
    ("_[j]", FrameKind::C2),
    ("_[i]", FrameKind::Inlined),
    ("_[k]", FrameKind::Kernel),
    ("_[0]", FrameKind::Interpreted),
    ("_[1]", FrameKind::C1),
];

/// The profile in a text; `None` if a line is no stack.
pub fn read(bytes: &[u8]) -> Option<Profile> {
    let text = std::str::from_utf8(bytes).ok()?;
    let lines = text.lines().map(str::trim_end);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut has_stacks = false;
    let mut builder = Builder::default();
    let mut threads: HashMap<String, ThreadId> = HashMap::new();
    for line in lines {
        let (stack, number) = line.rsplit_once(' ')?;
        let weight: u64 = number.parse().ok()?;
        // Other texts with numbers at the ends of lines are words without a dot.
        has_stacks |= stack.contains(';') || stack.contains('.') && !stack.contains(' ');
        let (name, stack) = thread_of(stack);
        let (name, os_tid) = name.map_or(("[all threads]", 0), name_and_id);
        let known = threads.get(name).copied();
        let thread = known.unwrap_or_else(|| {
            let id = builder.thread(name, os_tid, threads.len() as i64 + 1, false);
            threads.insert(name.to_owned(), id);
            id
        });
        let frames = stack.split(';').filter(|name| !name.is_empty());
        let frames: Vec<_> = frames.map(|name| frame_of(&mut builder, name)).collect();
        let node = builder.stack(frames);
        builder.sample(Sample {
            time_ns: 0,
            thread,
            node,
            weight,
            count: u32::try_from(weight).unwrap_or(u32::MAX),
            failure: None,
            context: None,
        });
    }
    if !has_stacks {
        return None;
    }
    builder.unit = Unit::Samples;
    builder.info.measured = Measured::Event("collapsed stacks".to_owned());
    builder.info.sample_event = "collapsed stacks".to_owned();
    builder.info.engine = "collapsed stacks".to_owned();
    builder.warnings.push(WARNING.to_owned());
    Some(builder.finish())
}

/// The thread that async-profiler puts first, `[NAME tid=123]`, and the rest of the stack.
fn thread_of(stack: &str) -> (Option<&str>, &str) {
    let (first, rest) = stack.split_once(';').unwrap_or((stack, ""));
    let name = first.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    match name.filter(|name| name.contains("tid=")) {
        Some(name) => (Some(name), rest),
        None => (None, stack),
    }
}

fn name_and_id(text: &str) -> (&str, i64) {
    let (name, id) = text.rsplit_once("tid=").unwrap_or((text, ""));
    (name.trim_end(), id.parse().unwrap_or(0))
}

fn frame_of(builder: &mut Builder, text: &str) -> u32 {
    let mark = MARKS.iter().find(|(mark, _)| text.ends_with(mark));
    let name = mark.map_or(text, |(mark, _)| text.strip_suffix(mark).unwrap_or(text));
    // Java's internal form has no dot before the method; others use slashes in paths.
    let name = match name.contains('/') && !name.starts_with('/') {
        true => name.replace('/', "."),
        false => name.to_owned(),
    };
    let kind = mark.map_or_else(|| kind_of(&name, ""), |(_, kind)| *kind);
    frame(builder, &name, "", 0, kind)
}
