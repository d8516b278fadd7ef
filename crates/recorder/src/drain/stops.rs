//! Stops of all threads for the recording. The stack of each late thread comes from its signal
//! handler, and the data of its stop from the watching thread. Both are put together here.

use crate::record::batch::{Batch, PendingFrame, PendingLate, PendingStop};
use crate::record::names::Names;
use crate::stops::{LateThread, Shelf, Stop};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// Maximum number of stacks that wait for their stop.
const STACKS_MAX: usize = 256;
/// How long a stop that is over waits for the requested stacks.
const PATIENCE_NS: u64 = 200_000_000;

/// A thread's stack at the time of the request.
struct Place {
    thread: u64,
    time_ns: u64,
    frames: Box<[PendingFrame]>,
    truncated: bool,
}

/// Stops and stacks that are not written yet.
#[derive(Default)]
pub struct StopDrain {
    stops: Vec<Stop>,
    places: Vec<Place>,
}

impl StopDrain {
    /// A thread has answered.
    pub fn add_place(
        &mut self,
        thread: u64,
        time_ns: u64,
        frames: impl Iterator<Item = PendingFrame>,
        truncated: bool,
    ) {
        if self.places.len() < STACKS_MAX {
            self.places.push(Place {
                thread,
                time_ns,
                frames: frames.collect(),
                truncated,
            });
        }
    }

    /// Puts stops that are complete, or have waited long enough, into the batch; all of them at
    /// the end.
    pub fn settle(&mut self, shelf: &Shelf, batch: &mut Batch, now_ns: u64, is_over: bool) {
        // Read first: a stop that is queued by then has no further stacks to come.
        let open_ns = shelf.open_ns();
        self.stops.extend(shelf.take());
        let places = &self.places;
        let is_ready = |stop: &Stop| {
            let asked = |late: &&LateThread| late.asked && place_of(places, stop, late).is_none();
            let over_ns = stop.began_ns.saturating_add(stop.duration_ns());
            is_over
                || now_ns.saturating_sub(over_ns) >= PATIENCE_NS
                || stop.named.iter().find(asked).is_none()
        };
        let (ready, waiting) = std::mem::take(&mut self.stops)
            .into_iter()
            .partition(is_ready);
        self.stops = waiting;
        for stop in ready {
            self.place(stop, batch);
        }
        // Stacks older than the oldest stop that may still come are not needed.
        let oldest = self.stops.iter().map(|stop| stop.began_ns).min();
        let kept_ns = oldest.unwrap_or_else(|| now_ns.saturating_sub(10 * PATIENCE_NS));
        let kept_ns = open_ns.map_or(kept_ns, |began_ns| began_ns.min(kept_ns));
        self.places.retain(|place| place.time_ns >= kept_ns);
    }

    fn place(&self, stop: Stop, batch: &mut Batch) {
        let late = stop.named.iter().map(|late| {
            let place = place_of(&self.places, &stop, late);
            let stack = place.map(|place| {
                let mut hasher = FxHasher::default();
                place.frames.hash(&mut hasher);
                batch.kept(&place.frames, hasher.finish(), place.truncated)
            });
            PendingLate {
                late: late.clone(),
                stack,
            }
        });
        let late = late.collect();
        batch.add_stop(PendingStop { stop, late });
    }

    /// `old` has the names of the last chunk; each gets a place in `new`.
    pub fn rename(&mut self, old: &Names, new: &mut Names) {
        for frame in self.places.iter_mut().flat_map(|place| &mut place.frames) {
            *frame = frame.renamed(old, new);
        }
    }
}

/// The first answer of a thread while that stop was being reached. A thread without a processor
/// answers when it gets one, just before it arrives.
fn place_of<'p>(places: &'p [Place], stop: &Stop, late: &LateThread) -> Option<&'p Place> {
    let over_ns = stop.began_ns.saturating_add(stop.duration_ns());
    places.iter().find(|place| {
        late.asked
            && place.thread == late.thread
            && (stop.began_ns..=over_ns).contains(&place.time_ns)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::batch::Code;
    use crate::record::names::NameId;
    use dwell_jfr::FrameKind;

    fn frame(id: u32) -> PendingFrame {
        PendingFrame {
            code: Code::Named(NameId(id)),
            kind: FrameKind::C2,
            line: 1,
            bci: 0,
        }
    }

    fn stop(began_ns: u64, thread: u64) -> Stop {
        Stop {
            began_ns,
            reaching_ns: 1000,
            count: 1,
            named: vec![LateThread {
                thread,
                state: "managed",
                until_ns: began_ns + 1000,
                held_ns: 1000,
                asked: true,
            }],
            ..Stop::default()
        }
    }

    #[test]
    fn stack_and_stop_match_in_any_order() {
        let (shelf, mut batch) = (Shelf::default(), Batch::default());
        let mut drain = StopDrain::default();
        shelf.add(stop(10_000, 7));
        drain.settle(&shelf, &mut batch, 12_000, false);
        assert_eq!(batch.stops().len(), 0, "its stack may still come");
        // One of another thread, one of another time, and the right one.
        drain.add_place(8, 10_500, [frame(1)].into_iter(), false);
        drain.add_place(7, 9_000, [frame(2)].into_iter(), false);
        drain.add_place(7, 10_500, [frame(3)].into_iter(), false);
        drain.settle(&shelf, &mut batch, 13_000, false);
        let [pending] = batch.stops() else {
            panic!("{}", batch.stops().len())
        };
        let stack = pending.late[0].stack.unwrap();
        assert_eq!(batch.frames(stack).0, [frame(3)]);
    }

    #[test]
    fn a_stack_waits_for_a_stop_that_takes_long_to_reach() {
        let (shelf, mut batch) = (Shelf::default(), Batch::default());
        let mut drain = StopDrain::default();
        let late_ns = 100 * PATIENCE_NS;
        shelf.set_open(Some(10_000));
        drain.add_place(7, 10_500, [frame(3)].into_iter(), false);
        drain.settle(&shelf, &mut batch, late_ns, false);
        shelf.add(Stop {
            reaching_ns: late_ns,
            ..stop(10_000, 7)
        });
        shelf.set_open(None);
        drain.settle(&shelf, &mut batch, late_ns + 20_000, false);
        assert!(batch.stops()[0].late[0].stack.is_some());
        // And no longer than that.
        drain.settle(&shelf, &mut batch, 2 * late_ns, false);
        assert_eq!(drain.places.len(), 0);
    }

    #[test]
    fn stop_without_stack_is_written_after_timeout() {
        let (shelf, mut batch) = (Shelf::default(), Batch::default());
        let mut drain = StopDrain::default();
        shelf.add(stop(10_000, 7));
        drain.settle(&shelf, &mut batch, 11_000 + PATIENCE_NS, false);
        assert_eq!(batch.stops().len(), 1);
        assert_eq!(batch.stops()[0].late[0].stack, None);
        shelf.add(stop(20_000, 7));
        drain.settle(&shelf, &mut batch, 21_000, true);
        assert_eq!(batch.stops().len(), 2, "the recording ends");
    }
}
