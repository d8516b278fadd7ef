//! A virtual thread without a carrier that has what another one waits for: found by its id, and
//! walked in the heap, by the thread that is about to wait.
//!
//! It may be mounted, and the collector may move it, while it is read. It is told only if it is in
//! the same place and the same state afterwards: so it has not run, and has had the monitor at that
//! moment.

use super::look::Looker;
use super::places::Places;
use super::virtuals::{SEARCHED_MAX, find};
use crate::jvm::virtual_threads::VirtualThreads;
use crate::vantage;
use dwell_recorder::asked::Why;
use dwell_signal::WalkTarget;
use dwell_walker::{Failure, Outcome};

/// Walks the virtual thread with this id into `target`, if it has no carrier and `has` what is
/// asked for meanwhile.
///
/// # Errors
/// Why there is nothing to tell.
pub fn walk(
    looker: &Looker<'_>,
    known: &VirtualThreads,
    id: u64,
    has: impl Fn() -> bool,
    target: &mut WalkTarget<'_>,
) -> Result<(), Why> {
    let places = Places::default().lasting(looker, known);
    let places = places.map_err(|_| Why::NoThread)?;
    if places.len() > SEARCHED_MAX {
        return Err(Why::NoThread);
    }
    let seek = || find(looker, known, &places, id);
    let thread = seek().map_err(|_| Why::WentOn)?.ok_or(Why::NoThread)?;
    let state = || looker.unmounted(known, thread).ok().flatten();
    let before = state().ok_or(Why::WentOn)?;
    let chunk = before.chunk.as_ref().ok_or(Why::WentOn)?;
    if !has() {
        return Err(Why::WentOn);
    }
    if let Some(name) = looker.vm.names.of(&looker.live, &looker.vm.layout, thread) {
        target.set_logical(id, &latin1(&name));
    }
    let mut is_ready = false;
    target.keep(|frames| {
        let walk = vantage::walk_unmounted(&looker.live, chunk, looker.cache, frames);
        is_ready = walk.is_some();
        walk.unwrap_or_default()
    });
    let walked = target.header().walk.walk();
    // A walk that fails read what was just moved or run.
    let is_whole = walked.is_some_and(|walk| {
        matches!(
            walk.outcome,
            Outcome::Complete | Outcome::Failed(Failure::Truncated)
        )
    });
    match is_ready {
        false => Err(Why::NoAnswer),
        true if is_whole && state() == Some(before) && seek() == Ok(Some(thread)) => Ok(()),
        true => Err(Why::WentOn),
    }
}

/// A name as slots have it; none if it has other letters.
fn latin1(name: &str) -> Vec<u8> {
    let letters = name.chars().map(|letter| u8::try_from(u32::from(letter)));
    letters.collect::<Result<_, _>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_byte_for_each_letter_or_none() {
        assert_eq!(latin1("tomcat-handler-7"), b"tomcat-handler-7");
        assert_eq!(latin1("h\u{e9}"), [b'h', 0xe9]);
        assert_eq!(latin1("\u{4e16}"), b"");
    }
}
