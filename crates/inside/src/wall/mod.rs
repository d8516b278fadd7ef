//! The JVM's data for the wall-clock sampler: causes of waits, owners of monitors and locks, and
//! virtual threads. They are read from the JVM's memory, and a fault ends the read only. No thread
//! gets a signal, and no function of the JVM is called.

mod java_fingerprint;
pub mod look;
pub mod places;
pub mod unmounted;
pub mod virtuals;

use crate::drain::moment::Moment;
use crate::hotspot::{HotSpot, Setup};
use crate::stops::glance::Glance;
use crate::vantage::remembered::Remembered;
use dwell_context::Context;
use dwell_recorder::looks::off::{Off, Waiting};
use dwell_recorder::looks::threads::{Holder, Threads};
use dwell_recorder::looks::unmounted::{Found, Unmounted};
use dwell_recorder::runtime::Looks;
use dwell_signal::{Live, ThreadRecord};
use dwell_walker::cache::{PcCache, Slot as CacheSlot};
use dwell_walker::hotspot::layout::present;
use dwell_walker::hotspot::monitors::{self, Owner};
use dwell_walker::hotspot::{objects, threads};
use dwell_walker::{Frame, Memory, Walk};
use dwell_wall::{budget::Budget, random::Random};
use dwell_wallclock::Fingerprint;
use look::{Claim, Looker};
use std::cell::RefCell;
use virtuals::Virtuals;

/// The request of a tick.
pub type Asked<'a> = Unmounted<'a, JavaLooks, Claim>;

/// Entries of the cache of return addresses.
const CACHE_ENTRIES: usize = 4096;

/// Takes wall-clock samples of Java threads for one recording.
pub struct JavaLooks {
    jvm: &'static HotSpot,
    live: Live,
    cache: Box<[CacheSlot]>,
    remembered: Remembered,
    moment: RefCell<Moment>,
    /// Created once the program uses virtual threads.
    virtuals: Option<Virtuals>,
}

impl Looks<HotSpot> for JavaLooks {
    type Claim = Claim;
    const HAS_FINGERPRINTS: bool = true;

    fn new(setup: &Setup) -> JavaLooks {
        let (jvm, live) = (&setup.recorder.runtime, setup.engine.live());
        JavaLooks {
            jvm,
            live,
            cache: vec![CacheSlot::empty(); CACHE_ENTRIES].into_boxed_slice(),
            remembered: Remembered::default(),
            moment: RefCell::new(Moment::new(&live, &jvm.vm().layout)),
            virtuals: None,
        }
    }

    fn look(
        &self,
        record: &ThreadRecord,
        at: Waiting,
        frames: &mut [Frame],
    ) -> (Off, Option<Claim>) {
        self.looker().off(record, at, frames).split()
    }

    fn fingerprint(&self, record: &ThreadRecord) -> Option<(Fingerprint, Option<u64>)> {
        java_fingerprint::of(&self.looker(), record.managed_thread())
    }

    fn fetch_fingerprint(&self, record: &ThreadRecord) {
        java_fingerprint::fetch(&self.jvm.vm().layout, record.managed_thread());
    }

    fn walk(
        &self,
        record: &ThreadRecord,
        registers: (u64, u64),
        frames: &mut [Frame],
    ) -> Option<Walk> {
        self.looker().walk(record, Some(registers), frames)
    }

    fn is_still(&self, record: &ThreadRecord, claim: &Claim) -> bool {
        self.looker().is_still(record, claim)
    }

    fn holder(&self, claim: &Claim, all: &Threads) -> Option<Holder> {
        let layout = &self.jvm.vm().layout;
        let place = match claim.owner {
            Owner::Nobody => None,
            Owner::Thread(java_thread) => all.of_managed(java_thread),
            Owner::Id(id) => return self.holder_of_id(id, all),
            Owner::Stack(address) => all.find(|record| {
                let thread = record.managed_thread();
                threads::has_on_stack(&self.live, layout, thread, address) == Ok(true)
            }),
            Owner::HolderOf(object) => all.find(|record| {
                let thread = record.managed_thread();
                monitors::holds(&self.live, layout, thread, object) == Ok(true)
            }),
        };
        place.map(Holder::On)
    }

    fn mounted(&self, thread: u64) -> Option<u64> {
        self.looker().mounted(thread).ok()?
    }

    fn name_of_mounted(&self, thread: u64) -> Option<Box<str>> {
        let vm = self.jvm.vm();
        let objects = &vm.layout.extra.objects;
        let object = objects::of_logical_thread(&self.live, &vm.layout, objects, thread);
        let name = vm.names.of(&self.live, &vm.layout, object.ok()?);
        name.map(String::into_boxed_str)
    }

    fn published(&self, thread: u64) -> Option<Context> {
        self.looker().published(thread)
    }

    fn has_unmounted(&self) -> bool {
        self.jvm.virtual_threads().is_some()
    }

    fn look_at_unmounted(
        &mut self,
        at: &Asked<'_>,
        budget: &Budget,
        random: &mut Random,
    ) -> (Found, usize) {
        let Some(known) = self.jvm.virtual_threads() else {
            return (Found::default(), 0);
        };
        let mut virtuals = self.virtuals.take().unwrap_or_default();
        let looking = virtuals::Looking {
            looks: self,
            looker: &self.looker(),
            known,
            at,
        };
        let found = virtuals.look(&looking, budget, random);
        self.virtuals = Some(virtuals);
        found
    }

    fn beside(&self, glance: &Glance, now_ns: u64, next_ns: u64) {
        if let Some(found) = &self.jvm.vm().safepoints {
            glance.look(&self.live, found, now_ns, next_ns);
        }
    }
}

impl JavaLooks {
    fn looker(&self) -> Looker<'_> {
        Looker {
            live: self.live,
            vm: self.jvm.vm(),
            cache: Some(PcCache::new(&self.cache)),
            remembered: self.remembered(),
        }
    }

    /// Walks that are valid since the last safepoint.
    fn remembered(&self) -> Option<&Remembered> {
        if self.moment.borrow_mut().is_another(&self.live) {
            self.remembered.clear();
        }
        Some(&self.remembered)
    }

    /// The thread with this `Thread.threadId()`.
    fn holder_of_id(&self, id: u64, all: &Threads) -> Option<Holder> {
        if let Some(place) = all.of_id(id) {
            return Some(Holder::Platform(place));
        }
        match self.carrier_of(id, all) {
            Some(place) => Some(Holder::On(place)),
            None => self.has_unmounted().then_some(Holder::Unmounted(id)),
        }
    }

    /// The platform thread that runs the virtual thread with this id.
    fn carrier_of(&self, id: u64, all: &Threads) -> Option<u32> {
        let offset = self.jvm.vm().layout.thread_owner_id;
        let is_it = |record: &ThreadRecord| {
            let at = record.managed_thread().wrapping_add(offset);
            self.live.word(at) == Ok(id)
        };
        present(offset).then(|| all.find(is_it)).flatten()
    }
}
