//! Samples one platform thread and reports the result.

use super::look::{Look, Still, Want, look};
use super::who::{self, Who};
use super::{Claim, Sampler};
use crate::looks::off::Off;
use crate::looks::shelf::{Note, Shelf};
use crate::runtime::{Looks, Runtime};
use dwell_signal::ThreadRecord;
use dwell_walker::Frame;
use dwell_wall::cause::Os;
use dwell_wallclock::{Label, Shown};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// The place of time without a sample.
pub(super) fn unsampled() -> Off {
    Off::at(Os::Waiting, None)
}

impl<R: Runtime> Sampler<'_, R> {
    /// Samples a thread. Returns the cost in ns.
    pub(super) fn sample(&mut self, id: u32, want: Want, shelf: &Shelf) -> u64 {
        let before_ns = self.cpu_now();
        let is_new = !self.clock.is_labelled(id);
        self.counts.sampled += 1;
        let class = self.look_at(id, want, shelf);
        self.counts.failed += usize::from(class.is_none());
        match want {
            Want::Wait(_) => self.clock.settle(id, class),
            Want::Woken(wait) => self.clock.wake(id, wait),
        }
        self.report_ended(shelf);
        let cost_ns = self.cpu_now().saturating_sub(before_ns);
        self.clock.purse().sampled(cost_ns, is_new);
        cost_ns
    }

    fn cpu_now(&self) -> u64 {
        crate::sys::process::own_cpu().as_nanos() as u64
    }

    /// Samples a thread. Returns the class whose place the sample shows, if it shows one.
    fn look_at(&mut self, id: u32, want: Want, shelf: &Shelf) -> Option<u8> {
        let record = self.setup.engine.record(id)?;
        let by = (&self.looks, &self.kernel);
        let mut seen = look(by, record, want, &mut self.frames);
        if matches!((&seen, want), (Look::Unclear, Want::Wait(_))) {
            seen = look(by, record, Want::Wait(None), &mut self.frames);
        }
        match seen {
            Look::Gone => {
                self.remove(id, shelf);
                None
            }
            Look::Off(still) => {
                let mark = still.mark;
                let class = self.report_wait((id, record), still, shelf)?;
                // If the thread has come to another place since the read, the next read must read
                // it again. Else all of this wait would count for the place before.
                if matches!(want, Want::Woken(_)) || self.clock.is_in(id, class) {
                    self.set_settled(id, mark);
                }
                Some(class)
            }
            // If the wait ended during the sample, the sample shows nothing. Reads count how often
            // the thread waits.
            Look::Ready(Some(fingerprint)) if self.clock.found_running(id, fingerprint) => {
                let label = Label {
                    shown: Shown::Run,
                    place: 0,
                    has_claim: false,
                };
                Some(self.clock.label(id, fingerprint, label).class)
            }
            Look::Ready(_) | Look::Unclear => None,
        }
    }

    /// Reports the place where a thread waits. Returns its class; `None` if there is no room.
    fn report_wait(
        &mut self,
        (id, record): (u32, &ThreadRecord),
        still: Still<Claim<R>>,
        shelf: &Shelf,
    ) -> Option<u8> {
        let (off, claim) = (still.off, still.claim);
        let has_it = claim
            .as_ref()
            .and_then(|claim| self.see_owner(record, claim));
        let mounted = self.mounted_on(&off, record);
        let renamed = self.renamed(id, record);
        let len = off.walk.map_or(0, |walk| walk.len);
        let place = {
            let owner_len = has_it.as_ref().map_or(0, |it| it.len);
            let owner = has_it
                .as_ref()
                .map(|it| (it.key, self.owner_frames.get(..owner_len).unwrap_or(&[])));
            place_of(&off, self.frames.get(..len).unwrap_or(&[]), owner.as_ref())
        };
        let is_walked = off.walk.is_some();
        let label = Label {
            shown: Shown::Wait,
            place,
            has_claim: claim.is_some(),
        };
        let labelled = self.clock.label(id, still.fingerprint, label);
        // Runs of the place before are reported before the new one.
        self.report_ended(shelf);
        let known = self.known.get_mut(id as usize)?;
        known.claim = claim.map(|claim| (labelled.class, claim)).or(known.claim);
        let thread = known.thread;
        let mut notes = shelf.lock();
        if let Some(name) = renamed {
            notes.add(Note::Name { thread, name }, 0);
        }
        if let Some(mounted) = mounted {
            mounted.tell_name(&mut notes);
        }
        if labelled.is_new {
            let stack = self.frames.get(..len).unwrap_or(&[]);
            let frames = &self.owner_frames;
            let owner = has_it
                .as_ref()
                .map(|it| (it.key, frames.get(..it.len).unwrap_or(&[])));
            if !notes.add_stack((thread, labelled.class), off, stack, owner) {
                notes.lost.0 += 1;
                self.clock.unreported(id, labelled.class);
                return None;
            }
        }
        if let Some(has_it) = has_it {
            has_it.tell_name(&mut notes);
        }
        drop(notes);
        if !is_walked {
            // Stacks cannot be walked yet, so the next read tries again.
            self.clock.settle(id, Some(labelled.class));
            self.clock.unreported(id, labelled.class);
        }
        Some(labelled.class)
    }

    fn mounted_on(&self, off: &Off, record: &ThreadRecord) -> Option<Who> {
        let id = off.mounted?;
        let name = self.looks.name_of_mounted(record.managed_thread());
        Some(Who::of_id(id, name))
    }

    /// The name of a platform thread, if it may have changed since its last sample.
    fn renamed(&mut self, id: u32, record: &ThreadRecord) -> Option<Box<str>> {
        let known = self.known.get_mut(id as usize)?;
        let runtime = &self.setup.recorder.runtime;
        let name = runtime.renamed(record, &mut known.name_mark);
        name.map(String::into_boxed_str)
    }

    /// The thread that owns what is waited for; `owner_frames` receive its stack.
    fn see_owner(&mut self, record: &ThreadRecord, claim: &Claim<R>) -> Option<Who> {
        let all = (&self.kernel, &self.threads);
        let mut owner = who::holder(&self.looks, all, claim, &mut self.owner_frames)?;
        // An owner that has released the lock by now has a stack of something else.
        if !self.looks.is_still(record, claim) {
            owner.len = 0;
        }
        Some(owner)
    }
}

/// A hash of the place where a thread waits and of what it waits for. Two samples that are reported
/// alike have the same hash.
fn place_of(off: &Off, stack: &[Frame], owner: Option<&(u64, &[Frame])>) -> u64 {
    let mut hasher = FxHasher::default();
    (off.os, off.monitor, off.is_owned_lock, stack).hash(&mut hasher);
    (off.mounted, &off.detail, owner).hash(&mut hasher);
    hasher.finish()
}
