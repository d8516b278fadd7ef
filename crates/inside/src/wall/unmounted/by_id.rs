//! An unmounted virtual thread that owns a monitor. The thread that is about to wait for the
//! monitor finds it by its id, and walks its frames in the heap.
//!
//! During the walk, it may be mounted and the collector may move it. It is reported only if its
//! address and state are the same afterwards. Then it has not run, and it owned the monitor at that
//! moment.

use crate::jvm::virtual_threads::VirtualThreads;
use crate::vantage;
use crate::wall::look::Looker;
use crate::wall::places::Places;
use crate::wall::virtuals::{SEARCHED_MAX, find};
use dwell_recorder::asked::Why;
use dwell_signal::WalkTarget;
use dwell_walker::{Failure, Frame, Frames, Outcome, Walk};

/// Number of frames in a slot of the smallest class.
const FRAMES_MAX: usize = 1000;

/// Walks the virtual thread with this id into `target`, if it has no carrier and `has` confirms
/// during the walk that it is the owner.
///
/// # Errors
/// The reason why there is no result.
pub fn walk(
    looker: &Looker<'_>,
    known: &VirtualThreads,
    id: u64,
    has: impl Fn() -> bool,
    target: &mut WalkTarget<'_>,
) -> Result<(), Why> {
    let thread = seek(looker, known, id)?;
    let state = || looker.unmounted(known, thread).ok().flatten();
    let before = state().ok_or(Why::WentOn)?;
    let chunk = before.chunk.as_ref().ok_or(Why::WentOn)?;
    if !has() {
        return Err(Why::WentOn);
    }
    if let Some(name) = looker.vm.names.of(&looker.live, &looker.vm.layout, thread) {
        target.set_logical(id, &latin1(&name));
    }
    // This is the walker of wall-clock samples. Writing to the slot directly would need another.
    let mut frames = vec![Frame::EMPTY; FRAMES_MAX];
    let walk = vantage::walk_unmounted(&looker.live, chunk, looker.cache, &mut frames);
    let walk = walk.ok_or(Why::NoAnswer)?;
    target.keep(|slot| put(&frames, walk, slot));
    // A failed walk means that the collector moved the frames or the thread ran.
    let is_whole = matches!(
        walk.outcome,
        Outcome::Complete | Outcome::Failed(Failure::Truncated)
    );
    match is_whole && state() == Some(before) && seek(looker, known, id) == Ok(thread) {
        true => Ok(()),
        false => Err(Why::WentOn),
    }
}

/// The present address of the thread's object. Each call searches the sets again, because a
/// collector that moves objects leaves unchanged old copies behind.
fn seek(looker: &Looker<'_>, known: &VirtualThreads, id: u64) -> Result<u64, Why> {
    let places = Places::default().lasting(looker, known);
    let places = places.map_err(|_| Why::NoThread)?;
    if places.len() > SEARCHED_MAX {
        return Err(Why::NoThread);
    }
    let found = find(looker, known, &places, id);
    found.map_err(|_| Why::WentOn)?.ok_or(Why::NoThread)
}

/// Copies the walked frames to `to`, which may have less room.
fn put(frames: &[Frame], walk: Walk, to: &mut (impl Frames + ?Sized)) -> Walk {
    let len = walk.len.min(to.room());
    for (index, frame) in frames.iter().take(len).enumerate() {
        to.set(index, *frame);
    }
    let outcome = match len < walk.len {
        true => Outcome::Failed(Failure::Truncated),
        false => walk.outcome,
    };
    Walk {
        len,
        outcome,
        ..walk
    }
}

/// A name in Latin-1, as slots store it; empty if it has other characters.
fn latin1(name: &str) -> Vec<u8> {
    let letters = name.chars().map(|letter| u8::try_from(u32::from(letter)));
    letters.collect::<Result<_, _>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn put_keeps_the_innermost_frames_if_room_is_short() {
        let frames: Vec<Frame> = (0..5).map(|id| Frame { id, ..Frame::EMPTY }).collect();
        let walk = Walk {
            len: 4,
            outcome: Outcome::Complete,
            gaps: 0,
            flaw: None,
        };
        let of = |room: usize| {
            let mut to = vec![Frame::EMPTY; room];
            let walk = put(&frames, walk, &mut to[..]);
            let ids: Vec<u64> = to.iter().take(walk.len).map(|frame| frame.id).collect();
            (ids, walk.outcome)
        };
        assert_eq!(of(9), (vec![0, 1, 2, 3], Outcome::Complete));
        assert_eq!(of(4), (vec![0, 1, 2, 3], Outcome::Complete));
        assert_eq!(of(2), (vec![0, 1], Outcome::Failed(Failure::Truncated)));
    }

    #[test]
    fn latin1_has_a_byte_per_letter_or_is_empty() {
        assert_eq!(latin1("tomcat-handler-7"), b"tomcat-handler-7");
        assert_eq!(latin1("h\u{e9}"), [b'h', 0xe9]);
        assert_eq!(latin1("\u{4e16}"), b"");
    }
}
