//! Use of the machine's processors while threads were runnable, by the second, weighted by the
//! runnable time. It decides nothing.

use crate::evidence::{Facts, RUNNABLE};
use dwell_profile::{Extent, Machine, WallFilter, Window};

/// Processors on average, while threads were ready.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Use {
    /// Those that the process may run on.
    pub(crate) processors: f64,
    /// Used by the process.
    pub(crate) own: f64,
    /// Used by other processes.
    pub(crate) others: f64,
    /// Had by the hypervisor.
    pub(crate) stolen: f64,
    /// Not used.
    pub(crate) idle: f64,
}

/// `None` where that is not known of half of the time that threads were ready.
pub(crate) fn while_ready(facts: &Facts<'_>) -> Option<Use> {
    let seconds = facts.profile.machine();
    let filter = WallFilter {
        causes: vec![RUNNABLE.to_owned()],
        endpoint: facts.endpoint.map(str::to_owned),
        ..WallFilter::default()
    };
    let mut ready = vec![0.0; seconds.len()];
    let (mut all, mut known) = (0.0, 0.0);
    for wall in facts.profile.wall(&filter) {
        all += wall.weight.sum as f64;
        for (at, second) in met(seconds, wall.extent()) {
            let ns = within(second).part(wall.weight.sum, wall.extent()) as f64;
            if let Some(sum) = ready.get_mut(at) {
                *sum += ns;
                known += ns;
            }
        }
    }
    if known <= 0.0 || known < all / 2.0 {
        return None;
    }
    let mut mean = Use::default();
    for (second, ready) in seconds.iter().zip(ready) {
        let part = ready / known / second.duration_ns.max(1) as f64;
        mean.processors += ready / known * second.processors as f64;
        mean.own += part * second.busy_ns.min(second.own_ns) as f64;
        mean.others += part * second.others_ns() as f64;
        mean.stolen += part * second.stolen_ns as f64;
        mean.idle += part * second.idle_ns as f64;
    }
    Some(mean)
}

/// The seconds that an event may have a part in.
fn met(seconds: &[Machine], extent: Extent) -> impl Iterator<Item = (usize, &Machine)> {
    let after = seconds.partition_point(|second| second.time_ns <= extent.time_ns);
    let from = after.saturating_sub(1);
    let all = seconds.iter().enumerate().skip(from);
    all.take_while(move |(_, second)| second.time_ns <= extent.end_ns())
}

fn within(second: &Machine) -> Window {
    Window {
        from_ns: second.time_ns,
        to_ns: second.time_ns.saturating_add(second.duration_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    fn used(art: &mut Art) -> Option<Use> {
        let (profile, filter) = (art.profile(), WallFilter::default());
        while_ready(&Facts::new(&profile, &filter))
    }

    #[test]
    fn seconds_count_as_much_as_threads_were_ready_in_them() {
        let mut art = Art::default();
        // Looks begin at 617 ms and at 1234 ms.
        art.look("w-1", "GET /h", "runnable", "app.Hot.loop", 3, 100);
        art.look("w-1", "GET /h", "runnable", "app.Hot.loop", 1, 100);
        art.look("w-1", "GET /h", "park", "app.Hot.loop", 90, 100);
        art.machine(0, 2, 400, 1_200).machine(1, 2, 800, 400);
        art.machine(2, 2, 0, 0);
        let found = used(&mut art).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(found.processors, 2.0), "{found:?}");
        assert!(near(found.own, 0.75 * 0.4 + 0.25 * 0.8), "{found:?}");
        assert!(near(found.others, 0.75 * 1.2 + 0.25 * 0.4), "{found:?}");
        assert!(near(found.idle, 0.75 * 0.4 + 0.25 * 0.8), "{found:?}");
    }

    #[test]
    fn machine_use_needs_half_of_the_time() {
        let mut art = Art::default();
        art.look("w-1", "GET /h", "runnable", "app.Hot.loop", 1, 100);
        art.look("w-1", "GET /h", "runnable", "app.Hot.loop", 3, 100);
        assert_eq!(used(&mut art), None);
        art.machine(0, 2, 400, 1_200);
        assert_eq!(used(&mut art), None);
        art.machine(1, 2, 400, 1_200);
        assert!(used(&mut art).is_some());
        // No thread was runnable.
        assert_eq!(used(Art::default().machine(0, 2, 400, 1_200)), None);
    }
}
