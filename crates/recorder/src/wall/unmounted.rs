//! What a look at a logical thread stands for that no platform thread runs, and how it is told. How
//! such threads are found is the runtime's matter.

use super::look::Kernel;
use super::who;
use crate::context::context_of;
use crate::looks::shelf::{Note, Notes, Run, Shelf};
use crate::looks::threads::Threads;
use crate::looks::unmounted::{Found, OffLogical, Seen};
use crate::runtime::{Looks, Runtime};
use crate::threads::VIRTUAL_KEY;
use dwell_walker::Frame;

/// A tick: when, the time it stands for, and what may be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// On the monotonic clock.
    pub at_ns: u64,
    /// The time that the tick stands for.
    pub span_ns: u64,
    /// Whether only threads that work for a request count.
    pub only_context: bool,
    /// What is to be paid for looks that others have worked on.
    pub debt_ns: u64,
}

/// Tells what looks at such threads have seen in a tick.
#[derive(Clone, Copy)]
pub struct Teller<'a> {
    pub(super) moment: Moment,
    pub(super) threads: &'a Threads,
    pub(super) kernel: &'a Kernel,
    pub(super) shelf: &'a Shelf,
}

impl Teller<'_> {
    /// Tells what was seen of a thread that stands for `each`: its frames are in `frames`; the
    /// other buffer is for those of who has what it waits for.
    pub fn tell<R: Runtime, L: Looks<R>>(
        &self,
        looks: &L,
        seen: Seen<L::Claim>,
        each: f64,
        (frames, owner_frames): (&[Frame], &mut [Frame]),
        found: &mut Found,
    ) {
        let moment = &self.moment;
        let mut seen = match seen {
            Ok(None) => return,
            Ok(Some(seen)) => seen,
            Err(_) => {
                found.looked += 1;
                found.failed += 1;
                return;
            }
        };
        found.looked += 1;
        found.estimated += each;
        seen.off.context = context_of(seen.id);
        if moment.only_context && seen.off.context.is_none() {
            return;
        }
        let claim = seen.claim.as_ref();
        let all = (self.kernel, self.threads);
        let owner = claim.and_then(|claim| who::holder(looks, all, claim, owner_frames));
        let has_it = owner
            .as_ref()
            .map(|it| (it.key, owner_frames.get(..it.len).unwrap_or(&[])));
        let weight_ns = (moment.span_ns as f64 * each) as u64;
        let mut notes = self.shelf.lock();
        let told = tell(seen, (frames, has_it), moment.at_ns, weight_ns, &mut notes);
        found.failed += usize::from(!told);
        if let Some(owner) = owner {
            owner.tell_name(&mut notes);
        }
    }
}

/// Tells the drainer of one look; false if there is no room.
fn tell<C>(
    seen: OffLogical<C>,
    (frames, owner): (&[Frame], Option<(u64, &[Frame])>),
    at_ns: u64,
    weight_ns: u64,
    notes: &mut Notes,
) -> bool {
    let thread = seen.id | VIRTUAL_KEY;
    let len = seen.off.walk.map_or(0, |walk| walk.len);
    let stack = frames.get(..len).unwrap_or(&[]);
    if !notes.add_stack(thread, seen.off, stack, owner) {
        notes.lost.1 += weight_ns;
        return false;
    }
    if let Some(name) = seen.name {
        notes.add(Note::Name { thread, name }, 0);
    }
    let run = Run {
        thread,
        since_ns: at_ns,
        until_ns: at_ns,
        count: 1,
        weight_ns,
        choices: 1,
    };
    notes.add(Note::Run(run), weight_ns);
    notes.add(Note::Gone { thread }, 0);
    true
}
