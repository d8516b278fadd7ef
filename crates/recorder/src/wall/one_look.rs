//! One look at a platform thread, and what is told of it.

use super::look::{self, Before, Look, look};
use super::who::{self, Who};
use super::{At, Claim, Sampler};
use crate::looks::off::Off;
use crate::looks::shelf::Note;
use crate::runtime::{Looks, Runtime};
use dwell_context::Context;
use dwell_signal::ThreadRecord;
use dwell_walker::Frame;
use dwell_wall::runs::Part;
use dwell_wall::signs::{Shown, Sign};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

impl<R: Runtime> Sampler<'_, R> {
    /// What says at once where a thread is, and what it works for, if that counts. The endpoint
    /// belongs to the sign: two endpoints may wait at one place for different reasons.
    pub(super) fn sign(&self, record: &ThreadRecord) -> Option<(Sign, Option<Context>)> {
        let sign = self.by_sign.then(|| self.looks.sign(record)).flatten()?;
        let context = look::works_for(&self.looks, record, None);
        let sign = sign.with(context.map_or(0, |context| u64::from(context.endpoint)));
        let sign = match sign.is_in_native() {
            true => self
                .kernel
                .call_of(record.tid())
                .into_iter()
                .fold(sign, Sign::with),
            false => sign,
        };
        Some((sign, context))
    }

    /// False if nothing could be seen.
    pub(super) fn look_at(&mut self, index: u32, weight_ns: u64, at: &At<'_>) -> bool {
        let now_ns = at.now_ns;
        let (known, record) = (
            self.known.get(index as usize),
            self.setup.engine.record(index),
        );
        let (Some(known), Some(record)) = (known, record) else {
            return false;
        };
        let (mut before, thread) = (known.before, known.thread);
        let last = before.mark();
        let sign = self.sign(record).map(|(sign, _)| sign);
        let (seen, moved, (waited_ns, woken_ns)) = self.see(record, &mut before, now_ns);
        let has_it = match &seen {
            Look::Off(_) => self.see_owner(before.claim()),
            _ => None,
        };
        let by_now = match moved && seen.is_ready() && self.by_sign {
            true => self.sign(record).map(|(sign, _)| sign),
            false => sign,
        };
        let Some(known) = self.known.get_mut(index as usize) else {
            return false;
        };
        known.before = before;
        let schedule = || self.kernel.schedule(record.tid());
        let part = at.part(weight_ns, false);
        let left = known.left(&seen, moved, (sign, by_now), now_ns);
        if let Some(sign) = left {
            known.carry(sign, part, &mut at.shelf.lock());
        }
        let part = known.weight(&seen, (moved, left.is_some()), part, schedule);
        self.news |= matches!(seen, Look::Off(_) | Look::Gone);
        self.ran |= seen.is_ready();
        let lives = seen.is_ready() || known.before.has_run_since(last);
        self.strata.note(index, lives, now_ns);
        at.shelf
            .lock()
            .add_ready(thread, now_ns, waited_ns, woken_ns);
        match seen {
            Look::Same => known.add(part, &mut at.shelf.lock()),
            Look::Off(off) => return self.tell_off((index, record), (off, sign), has_it, part, at),
            // What it waits for a processor is told by the kernel's own account, when it has one.
            // It is still where it was seen last.
            Look::Woken => known.flush(&mut at.shelf.lock()),
            Look::Ready | Look::Passing | Look::Unclear if left.is_some() => {}
            Look::Ready | Look::Passing | Look::Unclear => {
                known.look(sign, now_ns, (Shown::Run, 0), &mut at.shelf.lock());
            }
            Look::Gone => {
                known.end(&mut at.shelf.lock());
                self.threads.forget(known.managed, known.id, index);
                self.strata.remove(index);
                return false;
            }
        }
        true
    }

    /// Tells where a thread waits; false if there is no room.
    fn tell_off(
        &mut self,
        (index, record): (u32, &ThreadRecord),
        (off, sign): (Off, Option<Sign>),
        has_it: Option<Who>,
        part: Part,
        at: &At<'_>,
    ) -> bool {
        let mounted = self.who_is_mounted(&off, record);
        let renamed = self.renamed(index, record);
        let Some(known) = self.known.get_mut(index as usize) else {
            return false;
        };
        let len = off.walk.map_or(0, |walk| walk.len);
        let stack = self.frames.get(..len).unwrap_or(&[]);
        let frames = &self.owner_frames;
        let owner = has_it
            .as_ref()
            .map(|it| (it.key, frames.get(..it.len).unwrap_or(&[])));
        let thread = known.thread;
        let seen = (Shown::Wait, place_of(&off, stack, owner.as_ref()));
        let mut notes = at.shelf.lock();
        known.look(sign, at.now_ns, seen, &mut notes);
        known.works_for(off.context.as_ref());
        if let Some(name) = renamed {
            notes.add(Note::Name { thread, name }, 0);
        }
        if let Some(mounted) = mounted {
            mounted.tell_name(&mut notes);
        }
        let place = (thread, known.classes.current());
        if !notes.add_stack(place, off, stack, owner) {
            known.before.forget_place();
            known.classes.forget();
            notes.lost.1 += part.weight_ns;
            return false;
        }
        if let Some(has_it) = has_it {
            has_it.tell_name(&mut notes);
        }
        known.add(part, &mut notes);
        true
    }

    fn who_is_mounted(&self, off: &Off, record: &ThreadRecord) -> Option<Who> {
        let id = off.mounted?;
        let name = self.looks.name_of_mounted(record.managed_thread());
        Some(Who::of_id(id, name))
    }

    /// What a platform thread is called, if that may be another name than when it was seen last:
    /// who is renamed has mostly run to be.
    fn renamed(&mut self, index: u32, record: &ThreadRecord) -> Option<Box<str>> {
        let known = self.known.get_mut(index as usize)?;
        let runtime = &self.setup.recorder.runtime;
        let name = runtime.renamed(record, &mut known.name_mark);
        name.map(String::into_boxed_str)
    }

    /// What a look shows, whether the thread did not stand still for it, and how long it waited for
    /// a processor since the last one, in all and after it was woken.
    fn see(
        &mut self,
        record: &ThreadRecord,
        before: &mut Before<Claim<R>>,
        now_ns: u64,
    ) -> (Look, bool, (u64, u64)) {
        let (looks, kernel, frames) = (&self.looks, &self.kernel, &mut self.frames);
        let mut seen = look(looks, kernel, record, before, frames);
        let mut moved = matches!(seen, Look::Passing);
        if matches!(seen, Look::Unclear) {
            moved = true;
            seen = look(looks, kernel, record, before, frames);
        }
        if matches!(seen, Look::Passing | Look::Unclear) {
            // It has begun to run while it was looked at, or waits for a processor.
            seen = Look::Ready;
        }
        let waited_ns = match seen {
            Look::Same | Look::Woken | Look::Gone => (0, 0),
            Look::Off(_) | Look::Ready | Look::Passing | Look::Unclear => {
                kernel.waited_ns(record.tid(), before, now_ns)
            }
        };
        (seen, moved, waited_ns)
    }

    /// The thread that has what is waited for; its frames are in `owner_frames`.
    fn see_owner(&mut self, claim: Option<&Claim<R>>) -> Option<Who> {
        let all = (&self.kernel, &self.threads);
        who::holder(&self.looks, all, claim?, &mut self.owner_frames)
    }
}

/// A number for where a thread waits and for what, the same for two looks that are told alike.
fn place_of(off: &Off, stack: &[Frame], owner: Option<&(u64, &[Frame])>) -> u64 {
    let mut hasher = FxHasher::default();
    (off.os, off.monitor, off.is_owned_lock, stack).hash(&mut hasher);
    (off.mounted, &off.detail, owner).hash(&mut hasher);
    hasher.finish()
}
