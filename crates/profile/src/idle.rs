//! Idle time: wall time of threads without work. In a service it is most of the wall time and says
//! nothing about the service, so reports separate it from the other time.

use crate::profile::Profile;
use crate::sample::{ThreadId, Weight};
use crate::wall::WallFilter;
use std::collections::HashSet;

/// The cause of wall time of pooled workers without work, and of threads of the runtime's own that
/// wait for something to do.
pub const IDLE: &str = "idle-pool";

/// How much of some wall time was idle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Idle {
    /// The time that was.
    pub weight: Weight,
    /// The non-idle time, the denominator of shares.
    pub busy: Weight,
    /// Threads that were idle at some time, and all that have any wall time.
    pub threads: usize,
    /// See `threads`.
    pub all_threads: usize,
}

impl Idle {
    /// The part of all wall time that was idle.
    #[must_use]
    pub fn share(&self) -> f64 {
        let mut all = self.busy;
        all += &self.weight;
        self.weight.share(&all)
    }
}

impl Profile {
    /// The idle part of the wall time that `filter` wants; `None` if none of it was idle.
    #[must_use]
    pub fn idle(&self, filter: &WallFilter) -> Option<Idle> {
        let (mut weight, mut busy) = (Weight::default(), Weight::default());
        let mut idle: HashSet<ThreadId> = HashSet::new();
        let mut all: HashSet<ThreadId> = HashSet::new();
        for wall in self.wall(filter) {
            all.insert(wall.thread);
            match wall.cause {
                IDLE => {
                    idle.insert(wall.thread);
                    weight += &wall.weight;
                }
                _ => busy += &wall.weight,
            }
        }
        (!idle.is_empty()).then_some(Idle {
            weight,
            busy,
            threads: idle.len(),
            all_threads: all.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Look;
    use crate::text_art;

    #[test]
    fn idle_time_is_separated_with_its_threads() {
        let mut builder = text_art::builder("thread: main\nweight: 40\napp.A.x");
        let (pool, park) = (builder.cause(IDLE), builder.cause("park"));
        let workers = [1, 2].map(|tid| builder.thread(&format!("w-{tid}"), tid, tid, false));
        assert_eq!(builder.clone().finish().idle(&WallFilter::default()), None);
        for (thread, cause, weight_ns) in [
            (workers[0], pool, 100),
            (workers[0], park, 60),
            (workers[1], pool, 200),
        ] {
            builder.look(Look {
                thread,
                cause,
                weight_ns,
                count: 1,
                ..Look::PLAIN
            });
        }
        let profile = builder.finish();
        let idle = profile.idle(&WallFilter::default()).unwrap();
        assert_eq!((idle.weight.sum, idle.busy.sum), (300, 100));
        assert_eq!((idle.threads, idle.all_threads), (2, 3));
        assert_eq!(idle.share(), 0.75);
        let main = WallFilter {
            thread: Some("main".to_owned()),
            ..WallFilter::default()
        };
        assert_eq!(profile.idle(&main), None);
    }
}
