//! The JVM's data about a thread that waits: its stack, and the monitor or lock that it waits for.
//! The result is valid only if the thread did not run during the read. The caller checks that.

use crate::jvm::Vm;
use crate::vantage;
use crate::vantage::remembered::Remembered;
use dwell_context::Context;
use dwell_recorder::context::foreign;
use dwell_recorder::looks::off::{Off, Waiting};
use dwell_signal::{Live, ThreadRecord};
use dwell_walker::cache::PcCache;
use dwell_walker::hotspot::layout::present;
use dwell_walker::hotspot::monitors::{self, Contended, Owner};
use dwell_walker::hotspot::objects::{self, Blocker};
use dwell_walker::hotspot::threads;
use dwell_walker::{Fault, Frame, Memory, Walk};
use dwell_wall::cause::{Call, Monitor, Os};

/// Maximum length of a class name in bytes.
const CLASS_NAME_MAX: usize = 256;

/// A monitor or lock that a thread waits for and another thread may own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// An `ObjectMonitor*`.
    Monitor(u64),
    /// A lock of `java.util.concurrent`. The waiting thread's object refers to it.
    Lock,
}

/// A monitor or lock that a thread waits for, with its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    wanted: Wanted,
    /// Its owner.
    pub owner: Owner,
}

/// A waiting thread, with the JVM's data about it.
#[derive(Debug)]
pub struct Seen {
    /// The result for the recording.
    pub off: Off,
    /// The monitor or lock that it waits for.
    pub(super) wanted: Option<Wanted>,
    /// The owner of that.
    pub owner: Owner,
}

impl Seen {
    /// A thread without data about monitors and locks.
    #[must_use]
    pub fn at(os: Os, walk: Option<Walk>) -> Seen {
        Seen {
            off: Off::at(os, walk),
            wanted: None,
            owner: Owner::Nobody,
        }
    }

    /// The result for the recording, and the claim to a monitor or lock.
    #[must_use]
    pub fn split(self) -> (Off, Option<Claim>) {
        let owner = self.owner;
        (self.off, self.wanted.map(|wanted| Claim { wanted, owner }))
    }
}

/// The context for reading threads.
pub struct Looker<'a> {
    /// The process's memory.
    pub live: Live,
    /// The JVM.
    pub vm: &'a Vm,
    /// The cache of return addresses.
    pub cache: Option<PcCache<'a>>,
    /// Earlier walks that are still valid.
    pub remembered: Option<&'a Remembered>,
}

impl Looker<'_> {
    /// Whether the monitor or lock still has the same owner.
    #[must_use]
    pub fn is_still(&self, record: &ThreadRecord, claim: &Claim) -> bool {
        match claim.wanted {
            Wanted::Monitor(monitor) => {
                monitors::owner(&self.live, &self.vm.layout, monitor) == Ok(claim.owner)
            }
            Wanted::Lock => {
                let blocker = self.blocker(record.managed_thread());
                let is_same = |it: Blocker| self.owner_of(&it) == claim.owner;
                blocker.is_ok_and(|blocker| blocker.is_some_and(is_same))
            }
        }
    }

    /// The stack of a waiting platform thread.
    pub fn walk(
        &self,
        record: &ThreadRecord,
        registers: Option<(u64, u64)>,
        frames: &mut [Frame],
    ) -> Option<Walk> {
        let known = self.remembered;
        vantage::walk_waiting(&self.live, record, registers, self.cache, known, frames)
    }

    /// The stack of a waiting platform thread, and the cause of its wait.
    pub fn off(&self, record: &ThreadRecord, at: Waiting, frames: &mut [Frame]) -> Seen {
        let thread = record.managed_thread();
        let (live, layout) = (&self.live, &self.vm.layout);
        let walk = self.walk(record, at.registers, frames);
        let mut seen = Seen::at(at.os, walk);
        let contended = match thread {
            0 => None,
            _ => monitors::contended(live, layout, thread).unwrap_or(None),
        };
        match (contended, at.os) {
            (Some(Contended::Entering(monitor)), _) => self.entering(monitor, &mut seen),
            (Some(Contended::Waiting(monitor)), _) => {
                seen.off.monitor = Monitor::Waiting;
                seen.off.detail = self.monitor_text(monitor);
            }
            (None, Os::Call(Call::Futex) | Os::Waiting) if thread != 0 => {
                self.parked(thread, &mut seen);
            }
            (None, _) => {}
        }
        seen
    }

    /// The context that another library has published on a platform thread.
    #[must_use]
    pub fn published(&self, thread: u64) -> Option<Context> {
        if !foreign::is_known() || thread == 0 || self.runs_continuation(thread) {
            return None;
        }
        let pointer = threads::thread_pointer(&self.live, &self.vm.layout, thread).ok()?;
        foreign::of_waiting(&self.live, pointer).unwrap_or(None)
    }

    /// Whether the platform thread has frames of a virtual thread on its stack.
    fn runs_continuation(&self, thread: u64) -> bool {
        let layout = &self.vm.layout;
        let at = layout.extra.cont_entry;
        present(at) && thread != 0 && self.live.word(thread.wrapping_add(at)) != Ok(0)
    }

    /// The virtual thread that is mounted on this platform thread.
    pub fn mounted(&self, thread: u64) -> Result<Option<u64>, Fault> {
        let layout = &self.vm.layout;
        let field = |offset: u64| match present(offset) && thread != 0 {
            true => self.live.word(thread.wrapping_add(offset)),
            false => Ok(0),
        };
        if !present(layout.thread_vthread) || field(layout.extra.cont_entry)? == 0 {
            return Ok(None);
        }
        let id = match field(layout.thread_owner_id)? {
            0 => {
                let objects = &layout.extra.objects;
                let object = objects::of_logical_thread(&self.live, layout, objects, thread)?;
                objects::thread_id(&self.live, objects, object)?
            }
            id => id,
        };
        Ok((id != 0).then_some(id))
    }

    /// Adds the monitor that the thread waits to enter, and its owner.
    pub(super) fn entering(&self, monitor: u64, seen: &mut Seen) {
        seen.off.monitor = Monitor::Entering;
        seen.wanted = Some(Wanted::Monitor(monitor));
        let owner = monitors::owner(&self.live, &self.vm.layout, monitor);
        seen.owner = owner.unwrap_or(Owner::Nobody);
        seen.off.detail = self.monitor_text(monitor);
    }

    /// Adds the blocker of a parked thread.
    fn parked(&self, thread: u64, seen: &mut Seen) {
        if let Ok(Some(blocker)) = self.blocker(thread) {
            self.parked_on(&blocker, thread, seen);
        }
    }

    /// Adds `blocker`. `thread` is the parked platform thread, or 0 for a virtual thread.
    pub(super) fn parked_on(&self, blocker: &Blocker, thread: u64, seen: &mut Seen) {
        let off = &mut seen.off;
        off.detail = self.class_text(blocker.class).map(String::into_boxed_str);
        seen.owner = self.owner_of(blocker);
        off.is_owned_lock = match seen.owner {
            // Readers hold the lock, or it is just being handed over.
            Owner::Nobody => off.detail.as_deref().is_some_and(objects::is_lock),
            owner => owner != Owner::Thread(thread),
        };
        if off.is_owned_lock {
            seen.wanted = Some(Wanted::Lock);
        } else {
            seen.owner = Owner::Nobody;
        }
    }

    fn blocker(&self, thread: u64) -> Result<Option<Blocker>, Fault> {
        let (layout, objects) = (&self.vm.layout, &self.vm.layout.extra.objects);
        let object = objects::of_logical_thread(&self.live, layout, objects, thread)?;
        objects::blocker(&self.live, layout, objects, object)
    }

    fn owner_of(&self, blocker: &Blocker) -> Owner {
        let objects = &self.vm.layout.extra.objects;
        if blocker.owner == 0 {
            return Owner::Nobody;
        }
        match objects::java_thread(&self.live, objects, blocker.owner) {
            Ok(0) => objects::thread_id(&self.live, objects, blocker.owner)
                .map_or(Owner::Nobody, Owner::Id),
            Ok(thread) => Owner::Thread(thread),
            Err(_) => Owner::Nobody,
        }
    }

    /// A monitor's class, and the address of its `ObjectMonitor`, which identifies it.
    pub(super) fn monitor_text(&self, monitor: u64) -> Option<Box<str>> {
        let (layout, objects) = (&self.vm.layout, &self.vm.layout.extra.objects);
        let object = monitors::object(&self.live, layout, monitor).ok()?;
        let class = objects::class_of(&self.live, layout, objects.class_word, object).ok()?;
        let text = self.class_text(class)?;
        Some(format!("{text}@{monitor:x}").into_boxed_str())
    }

    fn class_text(&self, class: u64) -> Option<String> {
        let mut buf = [0u8; CLASS_NAME_MAX];
        let name = objects::class_name(&self.live, &self.vm.layout, class, &mut buf).ok()?;
        // The read may return garbage: a class name is not empty and has no control characters.
        let text = std::str::from_utf8(name).ok()?;
        let is_name = !text.is_empty() && !text.chars().any(char::is_control);
        is_name.then(|| text.replace('/', "."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_thread_that_wants_a_lock_has_a_claim() {
        let mut seen = Seen::at(Os::Call(Call::Futex), None);
        seen.owner = Owner::Thread(0x70);
        assert!(seen.split().1.is_none());
        let mut seen = Seen::at(Os::Call(Call::Futex), None);
        (seen.owner, seen.wanted) = (Owner::Thread(0x70), Some(Wanted::Lock));
        let claim = seen.split().1.expect("a claim");
        assert_eq!(
            (claim.owner, claim.wanted),
            (Owner::Thread(0x70), Wanted::Lock)
        );
    }
}
