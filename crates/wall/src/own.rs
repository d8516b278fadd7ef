//! The cause of a wait from functions of a runtime's own libraries, where few of them have names:
//! idle threads of the runtime, and stops of all threads. The rules use a frame's library, and the
//! C library's functions.

use crate::facts::{Call, Cause, Facts, Named, Os};
use crate::waits::Waits;

fn is_c_library(class: &str) -> bool {
    let begins = ["libc.so", "libc-", "libpthread", "ld-"];
    begins.iter().any(|begin| class.starts_with(begin))
}

/// The cause, if it is one of these.
pub(crate) fn cause(facts: &Facts<'_>, waits: &Waits) -> Option<Cause> {
    if let [innermost, caller, ..] = facts.frames
        && innermost.name.ends_with("sigsuspend")
        && waits.is_library(caller.class)
    {
        // Its handler of the signal that stops threads: waits for the signal that lets them
        // continue.
        return Some(Cause::Stopped);
    }
    let is_idle = facts.os == Os::Call(Call::Futex) && is_own_without_lock(facts.frames, waits);
    is_idle.then_some(Cause::IdlePool)
}

/// Whether all frames down to the thread's begin are the runtime's, and it waits for no lock.
fn is_own_without_lock(frames: &[Named<'_>], waits: &Waits) -> bool {
    let is_own = |frame: &Named<'_>| {
        let is_here = waits.is_library(frame.class) || is_c_library(frame.class);
        is_here && !frame.is_managed && !frame.name.contains("_lock")
    };
    frames.iter().any(|frame| waits.is_library(frame.class)) && frames.iter().all(is_own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Monitor;

    fn native(frame: &'static str) -> Named<'static> {
        let (class, name) = frame.split_once('.').unwrap();
        Named {
            class: if class == "libc" { "libc.so.6" } else { class },
            name,
            is_managed: false,
        }
    }

    fn method(name: &'static str) -> Named<'static> {
        Named {
            class: "App",
            name,
            is_managed: true,
        }
    }

    fn of(call: Call, frames: &[Named<'_>]) -> Option<Cause> {
        let facts = Facts {
            os: Os::Call(call),
            monitor: Monitor::None,
            is_owned_lock: false,
            frames,
        };
        assert_eq!(cause(&facts, &Waits::NONE), None);
        let waits = Waits {
            libraries: &["pear"],
            ..Waits::NONE
        };
        cause(&facts, &waits)
    }

    #[test]
    fn threads_of_its_own_are_idle_unless_they_wait_for_a_lock() {
        let begin = [native("pear.0x20"), native("libc.0x7")];
        let idle = [&[native("libc.0x1"), native("pear.0x10")], &begin[..]].concat();
        assert_eq!(of(Call::Futex, &idle), Some(Cause::IdlePool));
        assert_eq!(of(Call::Sleep, &idle), None);
        let locks = [native("libc.0x1"), native("libc.pthread_mutex_lock")];
        assert_eq!(of(Call::Futex, &[&locks, &begin[..]].concat()), None);
        let other = [native("libc.0x1"), native("libother.so.0x1")];
        assert_eq!(of(Call::Futex, &[&other, &begin[..]].concat()), None);
        let managed = [native("libc.0x1"), native("pear.0x1"), method("Run")];
        assert_eq!(of(Call::Futex, &managed), None);
        assert_eq!(of(Call::Futex, &[native("libc.0x1")]), None);
        assert_eq!(of(Call::Futex, &[]), None);
    }

    #[test]
    fn only_its_own_sigsuspend_is_a_stop() {
        let wait = native("libc.__sigsuspend");
        let stopped = [wait, native("pear.0x1"), method("Run")];
        assert_eq!(of(Call::Other, &stopped), Some(Cause::Stopped));
        let of_program = [wait, method("sigsuspend [managed-to-native]")];
        assert_eq!(of(Call::Other, &of_program), None);
    }
}
