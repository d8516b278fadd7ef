//! The present events of a recording, shared by the commands that change them and the drainer that
//! writes them.

use crate::chosen::Events;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One of the events: since when it is recorded, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stretch {
    /// The interval, in its own unit. If it is off, the last one; 0: it was never on.
    pub interval: u64,
    /// Since when it is on, on the monotonic clock; 0: it is off.
    since_ns: u64,
    /// How long it was on before.
    before_ns: u64,
}

impl Stretch {
    fn set(&mut self, interval: u64, now_ns: u64) {
        match (self.since_ns, interval) {
            (0, 0) => {}
            (0, _) => self.since_ns = now_ns.max(1),
            (since_ns, 0) => {
                self.before_ns += now_ns.saturating_sub(since_ns);
                self.since_ns = 0;
            }
            _ => {}
        }
        if interval != 0 {
            self.interval = interval;
        }
    }

    /// Whether it was ever on in this recording.
    #[must_use]
    pub fn was_on(&self) -> bool {
        self.interval != 0
    }

    /// How long it has been on up to now in total, in nanoseconds.
    #[must_use]
    pub fn on_ns(&self, now_ns: u64) -> u64 {
        self.before_ns + self.present_ns(now_ns)
    }

    /// How long it has been on without a break, in nanoseconds; 0: it is off.
    #[must_use]
    pub fn present_ns(&self, now_ns: u64) -> u64 {
        match self.since_ns {
            0 => 0,
            since_ns => now_ns.saturating_sub(since_ns),
        }
    }
}

/// The present events, and the earlier ones.
#[derive(Clone, Debug, Default)]
pub struct Now {
    /// The present events.
    pub events: Events,
    /// Allocations, by their interval in bytes.
    pub alloc: Stretch,
    /// Followed objects, by their interval in bytes.
    pub alive: Stretch,
    /// Waits for monitors, by their interval in nanoseconds.
    pub lock: Stretch,
    /// The requests, in words, one after the other.
    pub text: String,
}

/// [`Now`], for several threads.
#[derive(Debug, Default)]
pub struct Switched {
    first: Now,
    now: Mutex<Now>,
}

impl Switched {
    /// A recording with these events at its start, requested by `text`.
    #[must_use]
    pub fn new(events: Events, text: &str, now_ns: u64) -> Switched {
        let switched = Switched::default();
        switched.set(events, text, now_ns);
        Switched {
            first: switched.get(),
            ..switched
        }
    }

    /// It is recorded so from now on.
    pub fn set(&self, events: Events, text: &str, now_ns: u64) {
        let mut now = self.now();
        let lock_ns = u64::try_from(events.lock.as_nanos()).unwrap_or(u64::MAX);
        now.events = events;
        now.alloc.set(events.alloc_bytes, now_ns);
        now.alive.set(events.alive_bytes, now_ns);
        now.lock.set(lock_ns, now_ns);
        // The path of the answer does not matter, and a secret must not be recorded.
        let is_told = |word: &&str| !["reply=", "redact="].iter().any(|it| word.starts_with(it));
        let words = text.split(',').filter(is_told);
        let words: Vec<&str> = words.collect();
        if !now.text.is_empty() {
            now.text += "; ";
        }
        now.text += &words.join(",");
    }

    /// The state when the recording began.
    #[must_use]
    pub fn first(&self) -> &Now {
        &self.first
    }

    /// The present state.
    #[must_use]
    pub fn get(&self) -> Now {
        self.now().clone()
    }

    /// The present events.
    #[must_use]
    pub fn events(&self) -> Events {
        self.now().events
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn stretches_add_up_and_remember_their_last_interval() {
        let mut events = Events {
            cpu: Duration::from_millis(10),
            ..Events::default()
        };
        let switched = Switched::new(events, "start,cpu=10ms,reply=/r", 100);
        assert!(!switched.get().alloc.was_on());
        events.alloc_bytes = 512;
        events.lock = Duration::from_nanos(7);
        switched.set(events, "alloc=512,lock=7ns", 200);
        events.alloc_bytes = 1024;
        switched.set(events, "", 230);
        let now = switched.get();
        assert_eq!((now.alloc.interval, now.lock.interval), (1024, 7));
        assert_eq!((now.alloc.on_ns(250), now.alloc.present_ns(250)), (50, 50));
        events.alloc_bytes = 0;
        switched.set(events, "", 300);
        let now = switched.get();
        assert!(now.alloc.was_on() && now.alloc.interval == 1024);
        assert_eq!((now.alloc.on_ns(900), now.alloc.present_ns(900)), (100, 0));
        assert_eq!(now.lock.on_ns(900), 700);
        events.alloc_bytes = 2048;
        switched.set(events, "", 1000);
        let now = switched.get();
        assert_eq!(
            (now.alloc.on_ns(1010), now.alloc.present_ns(1010)),
            (110, 10)
        );
        assert!(!now.alive.was_on());
        assert!(now.text.starts_with("start,cpu=10ms; alloc=512,lock=7ns"));
    }
}
