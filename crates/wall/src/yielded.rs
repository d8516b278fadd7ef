//! The reason why a logical thread has left its platform thread, from its frames. They begin with
//! the runtime's own way out, which is the same for all waits.

use crate::facts::{Cause, Named};
use crate::waits::WayOut;

/// Maximum number of frames of the way out and of the parking code.
const FRAMES_MAX: usize = 12;

/// The cause; `None` if the innermost method is not one by which a logical thread is unmounted, nor
/// called by the one in which it parks while it is pinned.
#[must_use]
pub fn cause(frames: &[Named<'_>], is_owned_lock: bool, out: &WayOut) -> Option<Cause> {
    let mut methods = frames
        .iter()
        .filter(|frame| frame.is_managed)
        .take(FRAMES_MAX);
    let first = methods.next()?;
    let (class, begin) = out.entry;
    let leaves = first.class == class && first.name.starts_with(begin);
    let is_pinned = |frame: &Named<'_>| (frame.class, frame.name) == out.pinned;
    if !leaves && !methods.clone().next().is_some_and(is_pinned) {
        return None;
    }
    let is_of = |frame: &Named<'_>, classes: &[&str]| {
        let mut begins = classes.iter();
        begins.any(|class| frame.class.starts_with(class))
    };
    let is_sleep = |frame: &Named<'_>| {
        let (classes, begin) = out.sleeps;
        classes.contains(&frame.class) && frame.name.starts_with(begin)
    };
    let mut rest = methods.skip_while(|frame| is_of(frame, out.classes) && !is_sleep(frame));
    let caller = rest.next();
    if caller.is_some_and(is_sleep) {
        return Some(Cause::Sleep);
    }
    let polls = |frame: &Named<'_>| is_of(frame, out.pollers);
    if caller.is_some_and(polls) || rest.next().is_some_and(polls) {
        return Some(Cause::Socket);
    }
    Some(if is_owned_lock {
        Cause::Lock
    } else {
        Cause::Park
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAY_OUT: WayOut = WayOut {
        entry: ("fiber/Fiber", "yield"),
        pinned: ("fiber/Fiber", "parkPinned"),
        classes: &["fiber/"],
        sleeps: (&["fiber/Fiber", "base/Thread"], "sleep"),
        pollers: &["net/Poll"],
    };

    fn of(below: &[(&str, &str)], is_owned_lock: bool) -> Option<Cause> {
        let out = [("fiber/Fiber", "yield0"), ("fiber/Access", "leave")];
        let frames: Vec<Named<'_>> = (out.iter().chain(below))
            .map(|(class, name)| Named {
                class,
                name,
                is_managed: true,
            })
            .collect();
        cause(&frames, is_owned_lock, &WAY_OUT)
    }

    #[test]
    fn frames_below_way_out_decide_cause() {
        let park = [("base/Parker", "park"), ("app/Queue", "take")];
        assert_eq!(of(&park, false), Some(Cause::Park));
        assert_eq!(of(&park, true), Some(Cause::Lock));
        let sleep = [("fiber/Fiber", "sleepFor"), ("base/Thread", "sleep")];
        assert_eq!(of(&sleep, false), Some(Cause::Sleep));
        assert_eq!(of(&sleep[1..], true), Some(Cause::Sleep));
        // Other classes may have a method of this name.
        let other = [("fiber/Other", "sleep"), ("app/Queue", "take")];
        assert_eq!(of(&other, false), Some(Cause::Park));
        let read = [("base/Parker", "park"), ("net/Poller", "poll")];
        assert_eq!(of(&read, false), Some(Cause::Socket));
        assert_eq!(of(&read[1..], false), Some(Cause::Socket));
        let further = [("base/Parker", "park"), ("app/A", "a"), ("net/Poller", "b")];
        assert_eq!(of(&further, false), Some(Cause::Park));
        assert_eq!(of(&[], false), Some(Cause::Park));
    }

    #[test]
    fn pinned_threads_wait_for_the_same_causes() {
        let of = |below: &[(&'static str, &'static str)]| {
            let frames = [("base/Unsafe", "park"), ("fiber/Fiber", "parkPinned")];
            let frames = frames.iter().chain(below);
            let frames = frames.map(|(class, name)| Named {
                class,
                name,
                is_managed: true,
            });
            cause(&frames.collect::<Vec<_>>(), false, &WAY_OUT)
        };
        let sleep = [("fiber/Fiber", "sleepFor"), ("base/Thread", "sleep")];
        assert_eq!(of(&sleep), Some(Cause::Sleep));
        assert_eq!(of(&[("net/Poller", "poll")]), Some(Cause::Socket));
        assert_eq!(of(&[("base/Parker", "park")]), Some(Cause::Park));
    }

    #[test]
    fn other_frames_are_not_judged() {
        let frame = |class, name, is_managed| Named {
            class,
            name,
            is_managed,
        };
        let other = [frame("base/Object", "wait", true)];
        assert_eq!(cause(&other, false, &WAY_OUT), None);
        let stays = [frame("fiber/Fiber", "run", true)];
        assert_eq!(cause(&stays, false, &WAY_OUT), None);
        let native = [frame("fiber/Fiber", "yield", false)];
        assert_eq!(cause(&native, false, &WAY_OUT), None);
        assert_eq!(cause(&[], true, &WAY_OUT), None);
    }
}
