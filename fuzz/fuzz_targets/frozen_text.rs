//! Files of frozen walks with lines changed, added and left out. A walk that can be read comes back
//! the same from its own text. An error names a line of the file.
#![no_main]

use dwell_frozen::Frozen;
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

const WALK: &str = include_str!("../../fixtures/walks/28-barrier.walk");

static LINES: OnceLock<Vec<&str>> = OnceLock::new();

/// Which line, what happens to it, and a text for that.
type Edit<'a> = (u16, u8, &'a str);

fuzz_target!(|input: (Vec<Edit<'_>>, u16)| {
    let (edits, keep) = input;
    let lines = LINES.get_or_init(|| WALK.lines().collect());
    let mut text: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    // Most of a walk is words of memory: a few of them do.
    text.truncate(usize::from(keep) % lines.len() + 1);
    for (place, how, part) in edits {
        let len = text.len();
        let line = &mut text[usize::from(place) % len];
        match how % 4 {
            0 => *line = part.to_owned(),
            1 => *line = format!("{} {part}", line.split(' ').next().unwrap_or("")),
            2 => line.push_str(part),
            _ => {
                line.pop();
            }
        }
    }
    let text = text.join("\n");
    match Frozen::parse(&text) {
        Ok(frozen) => check(frozen),
        Err(error) => assert!((1..=text.lines().count().max(1)).contains(&error.line)),
    }
});

fn check(mut frozen: Frozen) {
    // At the end of a line it belongs to the line's end.
    for free in [&mut frozen.origin, &mut frozen.outcome] {
        *free = free.replace('\r', "");
    }
    let text = frozen.to_text();
    assert_eq!(Frozen::parse(&text).as_ref(), Ok(&frozen), "{text}");
}
