//! Finds out why threads do not answer signals. A thread that blocks the signal never will, and if
//! no more signals can be queued, no thread does. Then the kernel copies their stacks, if it can.
//! Otherwise their CPU time is reported with the reason.

use crate::sys::task::TaskFiles;
use dwell_signal::{Engine, ThreadRecord, Unreachable};

/// Maximum number of threads whose files are read at once: each costs some tens of microseconds.
const ASKED_MAX: usize = 64;
/// Threads known to be unreachable are checked again in one of this many rounds.
const AGAIN: u32 = 8;
/// Enough of `/proc/self/task/TID/status`.
const STATUS_BYTES: usize = 4096;

/// The results so far.
pub struct Silent {
    files: TaskFiles,
    looks: u32,
}

impl Default for Silent {
    fn default() -> Self {
        Silent {
            files: TaskFiles::open(),
            looks: 0,
        }
    }
}

/// The value of a line of a thread's status (proc_pid_status(5)).
fn line<'t>(status: &'t str, key: &str) -> Option<&'t str> {
    let mut lines = status.lines();
    lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':').map(str::trim))
}

/// Why `signal`, which may need room in the queue, does not reach the thread that has this status.
fn why(status: &str, signal: i32, needs_room: bool) -> Option<Unreachable> {
    let bit = u32::try_from(signal).ok()?.checked_sub(1)?;
    let blocked = u64::from_str_radix(line(status, "SigBlk")?, 16).ok()?;
    if blocked.checked_shr(bit)? & 1 == 1 {
        return Some(Unreachable::Blocked);
    }
    let (queued, room) = line(status, "SigQ")?.split_once('/')?;
    let (queued, room): (u64, u64) = (queued.parse().ok()?, room.parse().ok()?);
    (needs_room && queued >= room).then_some(Unreachable::QueueFull)
}

impl Silent {
    /// Checks threads that have not answered. Reports CPU time, in ns, that no sample stands for.
    pub fn look(
        &mut self,
        engine: &'static Engine,
        mut report: impl FnMut(&ThreadRecord, Unreachable, u64),
    ) {
        self.looks = self.looks.wrapping_add(1);
        let asks_again = self.looks.is_multiple_of(AGAIN);
        let silent = engine
            .live_records()
            .filter(|record| record.is_silent() || record.unreachable().is_some());
        let mut asked = 0;
        for record in silent {
            let known = record.unreachable().filter(|_| !asks_again);
            let found = match known {
                Some(why) => Some(why),
                None if asked == ASKED_MAX => record.unreachable(),
                None => {
                    asked += 1;
                    self.ask(engine, record)
                }
            };
            match found {
                Some(why) => match engine.set_unreachable(record, why) {
                    0 => {}
                    owed_ns => report(record, why, owed_ns),
                },
                None => record.set_reachable(),
            }
        }
    }

    fn ask(&self, engine: &Engine, record: &ThreadRecord) -> Option<Unreachable> {
        let mut buffer = [0; STATUS_BYTES];
        let status = self.files.read(record.tid(), "status", &mut buffer)?;
        let needs_room = engine.needs_queue();
        why(
            std::str::from_utf8(status).ok()?,
            engine.signal(),
            needs_room,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(queue: &str, blocked: &str) -> String {
        format!("Name:\tx\nSigQ:\t{queue}\nShdPnd:\t0\nSigBlk:\t{blocked}\nSigIgn:\t0\n")
    }

    #[test]
    fn blocked_signals_are_found_by_their_bit() {
        let of = |blocked: &str, signal| why(&status("0/100", blocked), signal, true);
        assert_eq!(of("0000000000000000", 40), None);
        assert_eq!(of("0000008000000000", 40), Some(Unreachable::Blocked));
        assert_eq!(of("0000008000000000", 41), None);
        assert_eq!(of("fffffffe7ffbfeff", 64), Some(Unreachable::Blocked));
        assert_eq!(of("nonsense", 40), None);
        assert_eq!(of("0000008000000000", 0), None);
    }

    #[test]
    fn queue_without_room_is_found_where_room_is_needed() {
        let of = |queue: &str, needs_room| why(&status(queue, "0"), 40, needs_room);
        assert_eq!(of("0/0", true), Some(Unreachable::QueueFull));
        assert_eq!(of("7/7", true), Some(Unreachable::QueueFull));
        assert_eq!(of("6/7", true), None);
        assert_eq!(of("7/7", false), None);
        assert_eq!(why("", 40, true), None);
    }
}
