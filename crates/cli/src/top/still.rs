//! Threads that still wait. A wait is written once it has lasted a second, and then less and less
//! often, down to once a minute. For a thread without news, the file only has its last wait. The
//! thread is still there, or another wait would have been written. Pure.

use super::window::Time;
use dwell_profile::{Extent, Look, Profile, Window};
use std::collections::HashMap;

/// Minimum duration of a wait that counts as settled. Such waits are written, and others are held
/// back for a few seconds only. A longer wait is also more likely to go on.
const SETTLED_NS: u64 = 800_000_000;
/// Causes of moments in which a thread does not stay.
const NO_WAITS: [&str; 2] = ["runnable", "throttled"];

/// Number of threads with wall time in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lived {
    /// End of the interval, in nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// Its length.
    pub span_ns: u64,
    /// Number of threads.
    pub threads: u64,
}

impl Lived {
    fn part(&self, window: &Window) -> u64 {
        let extent = Extent {
            time_ns: self.time_ns.saturating_sub(self.span_ns),
            duration_ns: self.span_ns,
        };
        window.part(self.threads.saturating_mul(self.span_ns), extent)
    }
}

/// The last known activity of a thread.
#[derive(Clone, Copy, Default)]
struct Last {
    /// Its last wait, as an index into the profile's looks.
    look: Option<usize>,
    /// Its end, as far as it is written. A wait is extended even if the thread has run for a moment
    /// since.
    waited_ns: u64,
    /// Time in the window since then in which it ran or was runnable.
    ran_ns: u64,
}

/// The unwritten part of a window, as looks of the profile that go on, each with its time.
///
/// All Java threads have wall time all the time. So the missing time is that of the living threads,
/// minus the time `seen` in the window. No more time is added. So a thread that has ended without
/// an event, or that other looks represent, does not count twice. Settled waits come first.
pub fn waits(
    profile: &Profile,
    lived: &[Lived],
    window: &Window,
    seen: &Time,
) -> Vec<(usize, u64)> {
    let lived_ns = lived.iter().map(|it| it.part(window));
    let mut missing_ns = lived_ns.fold(0u64, u64::saturating_add);
    missing_ns = missing_ns.saturating_sub(seen.wall);
    let mut open: [Vec<(usize, u64)>; 2] = Default::default();
    for last in last_of_threads(profile, window).values() {
        let Some((place, look)) = last
            .look
            .and_then(|at| Some((at, profile.looks().get(at)?)))
        else {
            continue;
        };
        let since = Extent {
            time_ns: last.waited_ns,
            duration_ns: window.to_ns.saturating_sub(last.waited_ns),
        };
        let rest_ns = window.overlap(since).map_or(0, |it| it.duration_ns);
        let rest_ns = rest_ns.saturating_sub(last.ran_ns);
        let ns = (rest_ns as f64 * stands_for(look)) as u64;
        if ns > 0 {
            let is_settled = look.duration_ns >= SETTLED_NS;
            open[usize::from(!is_settled)].push((place, ns));
        }
    }
    let mut waits = Vec::new();
    for mut open in open {
        open.sort_unstable();
        let all_ns: u64 = open.iter().fold(0, |sum, (_, ns)| sum.saturating_add(*ns));
        let part = (missing_ns as f64 / all_ns.max(1) as f64).min(1.0);
        missing_ns = missing_ns.saturating_sub(all_ns);
        waits.extend(
            open.iter()
                .map(|(at, ns)| (*at, (*ns as f64 * part) as u64)),
        );
    }
    waits
}

/// The number of threads that some looks represent; at least one.
fn stands_for(look: &Look) -> f64 {
    match look.duration_ns {
        0 => 1.0,
        duration_ns => (look.weight_ns as f64 / duration_ns as f64).max(1.0),
    }
}

fn last_of_threads(profile: &Profile, window: &Window) -> HashMap<u32, Last> {
    let mut threads: HashMap<u32, Last> = HashMap::new();
    let is_wait = |look: &Look| !NO_WAITS.contains(&profile.names().text(look.cause));
    for (place, look) in profile.looks().iter().enumerate() {
        let (last, end_ns) = (
            threads.entry(look.thread).or_default(),
            look.extent().end_ns(),
        );
        if is_wait(look) && (last.look.is_none() || end_ns >= last.waited_ns) {
            (last.look, last.waited_ns) = (Some(place), end_ns);
        }
    }
    let ready = profile.looks().iter().filter(|look| !is_wait(look));
    let ready = ready.map(|look| (look.thread, look.time_ns, look.weight_ns));
    let ran = profile.samples().iter();
    let ran = ran.map(|sample| (sample.thread, sample.time_ns, sample.weight));
    for (thread, time_ns, weight_ns) in ran.chain(ready) {
        if let Some(last) = threads.get_mut(&thread)
            && time_ns >= last.waited_ns
            && window.has(time_ns)
        {
            last.ran_ns = last.ran_ns.saturating_add(weight_ns);
        }
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{Builder, text_art};

    const SECOND: u64 = 1_000_000_000;
    const WINDOW: Window = Window {
        from_ns: 100 * SECOND,
        to_ns: 110 * SECOND,
    };

    fn builder(threads: u32) -> Builder {
        let mut builder = text_art::builder("thread: t-0\nweight: 0\na.A.x");
        (1..threads).for_each(|at| {
            builder.thread(
                &format!("t-{at}"),
                i64::from(at) + 10,
                i64::from(at) + 10,
                false,
            );
        });
        builder
    }

    /// A wait of a thread, from one second to another.
    fn wait(builder: &mut Builder, thread: u32, cause: &str, (from, to): (u64, u64), stands: u64) {
        let cause = builder.cause(cause);
        builder.look(Look {
            time_ns: from * SECOND,
            duration_ns: (to - from) * SECOND,
            thread,
            cause,
            weight_ns: stands * (to - from) * SECOND,
            count: 1,
            ..Look::default()
        });
    }

    /// A constant number of threads, counted each second.
    fn lived(threads: u64) -> Vec<Lived> {
        let at = |second| Lived {
            time_ns: second * SECOND,
            span_ns: SECOND,
            threads,
        };
        (50..130).map(at).collect()
    }

    fn seconds(builder: Builder, threads: u64, seen: u64) -> Vec<(usize, u64)> {
        let seen = Time {
            cpu: 0,
            wall: seen * SECOND,
        };
        let all = waits(&builder.finish(), &lived(threads), &WINDOW, &seen);
        all.into_iter().map(|(at, ns)| (at, ns / SECOND)).collect()
    }

    #[test]
    fn thread_without_news_waits_where_it_was() {
        let mut builder = builder(2);
        wait(&mut builder, 0, "park", (50, 60), 1);
        wait(&mut builder, 0, "sleep", (60, 70), 1);
        wait(&mut builder, 1, "socket", (60, 104), 1);
        // Four seconds of the second thread are written.
        assert_eq!(seconds(builder, 2, 4), [(1, 10), (2, 6)]);
    }

    #[test]
    fn no_more_is_made_up_than_threads_lived() {
        let mut builder = builder(2);
        wait(&mut builder, 0, "park", (60, 70), 1);
        wait(&mut builder, 1, "park", (60, 70), 1);
        assert_eq!(seconds(builder.clone(), 1, 0), [(0, 5), (1, 5)]);
        assert_eq!(seconds(builder.clone(), 1, 10), [(0, 0), (1, 0)]);
        assert_eq!(
            waits(&builder.finish(), &[], &WINDOW, &Time::default())[0].1,
            0
        );
    }

    #[test]
    fn settled_wait_goes_on_before_short_ones() {
        let mut builder = builder(2);
        wait(&mut builder, 0, "park", (70, 70), 1);
        wait(&mut builder, 1, "park", (60, 70), 1);
        assert_eq!(seconds(builder.clone(), 1, 0), [(1, 10), (0, 0)]);
        assert_eq!(seconds(builder, 2, 0), [(1, 10), (0, 10)]);
    }

    #[test]
    fn wait_that_stands_for_many_goes_on_for_many() {
        let mut builder = builder(1);
        wait(&mut builder, 0, "park", (60, 70), 30);
        assert_eq!(seconds(builder.clone(), 30, 0), [(0, 300)]);
        assert_eq!(seconds(builder, 20, 0), [(0, 200)]);
    }

    #[test]
    fn wait_goes_on_around_a_moment_of_running() {
        let mut builder = builder(1);
        wait(&mut builder, 0, "park", (60, 70), 1);
        wait(&mut builder, 0, "runnable", (104, 104), 1);
        builder.sample(dwell_profile::Sample {
            time_ns: 105 * SECOND,
            thread: 0,
            node: 1,
            weight: 2 * SECOND,
            count: 1,
            failure: None,
            context: None,
        });
        assert_eq!(seconds(builder, 1, 2), [(0, 8)]);
    }
}
