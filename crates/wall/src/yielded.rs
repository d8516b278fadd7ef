//! What a virtual thread has left its carrier for, from its frames: they begin with the JDK's own
//! way out (java.base, java/lang/VirtualThread.java, 21 to 28), which is the same for all waits.

use crate::facts::{Cause, Named};

/// Classes of the way out, by the beginnings of their names.
const WAY_OUT: &[&str] = &[
    "jdk/internal/vm/Continuation",
    "java/lang/VirtualThread",
    "java/lang/System$",
    "jdk/internal/misc/VirtualThreads",
    "jdk/internal/access/",
];

/// Classes that park until a descriptor is ready.
const POLLERS: &[&str] = &[
    "sun/nio/ch/Poller",
    "sun/nio/ch/NioSocketImpl",
    "sun/nio/ch/SelChImpl",
];
/// Frames of the way out, and of what parks, at most.
const FRAMES_MAX: usize = 12;

/// The cause; `None` if the innermost Java frame is not where a continuation yields.
#[must_use]
pub fn cause(frames: &[Named<'_>], is_owned_lock: bool) -> Option<Cause> {
    let mut java = frames
        .iter()
        .filter(|frame| frame.is_managed)
        .take(FRAMES_MAX);
    let first = java.next()?;
    if first.class != "jdk/internal/vm/Continuation" || !first.name.starts_with("yield") {
        return None;
    }
    let mut rest = java.skip_while(|frame| {
        let is_out = WAY_OUT.iter().any(|class| frame.class.starts_with(class));
        is_out && !is_sleep(frame)
    });
    let caller = rest.next();
    if caller.is_some_and(is_sleep) {
        return Some(Cause::Sleep);
    }
    let polls = |frame: &Named<'_>| POLLERS.iter().any(|class| frame.class.starts_with(class));
    if caller.is_some_and(polls) || rest.next().is_some_and(polls) {
        return Some(Cause::Socket);
    }
    Some(if is_owned_lock {
        Cause::Lock
    } else {
        Cause::Park
    })
}

fn is_sleep(frame: &Named<'_>) -> bool {
    let is_thread = matches!(frame.class, "java/lang/VirtualThread" | "java/lang/Thread");
    is_thread && frame.name.starts_with("sleep")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named<'a>(frames: &[(&'a str, &'a str)]) -> Vec<Named<'a>> {
        let java = |(class, name): &(&'a str, &'a str)| Named {
            class,
            name,
            is_managed: true,
        };
        frames.iter().map(java).collect()
    }

    const OUT: [(&str, &str); 3] = [
        ("jdk/internal/vm/Continuation", "yield"),
        ("java/lang/VirtualThread", "yieldContinuation"),
        ("java/lang/VirtualThread", "park"),
    ];

    fn of(below: &[(&'static str, &'static str)], is_owned_lock: bool) -> Option<Cause> {
        let mut frames = OUT.to_vec();
        frames.extend_from_slice(below);
        cause(&named(&frames), is_owned_lock)
    }

    #[test]
    fn frames_below_the_way_out_say_what_is_waited_for() {
        let park = [
            ("java/lang/System$2", "parkVirtualThread"),
            ("jdk/internal/misc/VirtualThreads", "park"),
            ("java/util/concurrent/locks/LockSupport", "park"),
            ("app/Queue", "take"),
        ];
        assert_eq!(of(&park, false), Some(Cause::Park));
        assert_eq!(of(&park, true), Some(Cause::Lock));
        let sleep = [
            ("java/lang/VirtualThread", "parkNanos"),
            ("java/lang/VirtualThread", "sleepNanos"),
            ("java/lang/Thread", "sleep"),
        ];
        assert_eq!(of(&sleep, false), Some(Cause::Sleep));
        let read = [
            ("java/util/concurrent/locks/LockSupport", "park"),
            ("sun/nio/ch/Poller", "poll"),
            ("sun/nio/ch/NioSocketImpl", "park"),
        ];
        assert_eq!(of(&read, false), Some(Cause::Socket));
        assert_eq!(
            of(&[("sun/nio/ch/NioSocketImpl", "park")], false),
            Some(Cause::Socket)
        );
        assert_eq!(of(&[], false), Some(Cause::Park));
    }

    #[test]
    fn other_frames_are_not_judged() {
        let frames = named(&[("java/lang/Object", "wait0"), ("app/Queue", "take")]);
        assert_eq!(cause(&frames, false), None);
        assert_eq!(cause(&[], true), None);
    }
}
