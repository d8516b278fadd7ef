//! Virtual threads that are not mounted: some of them are looked at in each tick, in the heap. They
//! are neither started, stopped nor asked, and no method of the JDK is changed.
//!
//! The sets in which the JDK keeps them are never read as a whole. Of all their buckets some are
//! chosen, each with the same probability, so each thread is; what is found stands for one part in
//! that probability (Horvitz and Thompson's estimator). How many there are need not be known, and
//! looking costs the same for a hundred as for a million.

use super::look::Looker;
use super::shelf::{Note, Notes, Run, Shelf};
use super::unmounted::OffVirtual;
use crate::drain::sample::VIRTUAL_KEY;
use crate::jvm::virtual_threads::VirtualThreads;
use dwell_signal::Live;
use dwell_walker::hotspot::continuation;
use dwell_walker::hotspot::layout::{Layout, present};
use dwell_walker::hotspot::monitors::Owner;
use dwell_walker::hotspot::objects;
use dwell_walker::hotspot::sets::{Buckets, Sets};
use dwell_walker::{Fault, Frame};
use dwell_wall::budget::Budget;
use dwell_wall::random::Random;
use dwell_wall::spread::Spread;

/// Sets of threads that are looked at in one tick at most; of more, some are chosen.
const SETS_MAX: u64 = 256;
/// Buckets of the set of containers that are looked at in one tick at most.
const CONTAINER_BUCKETS_MAX: u64 = 1024;

/// The classes whose objects are met.
#[derive(Clone, Copy, Debug, Default)]
struct Classes {
    thread: u64,
    executor: u64,
    shared: u64,
}

/// The buckets of one set, and how many such sets stand behind it.
struct Place {
    buckets: Buckets,
    factor: f64,
}

/// What a tick has found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Found {
    /// How many there are without a carrier, as far as the chosen ones tell.
    pub estimated: f64,
    /// How many were looked at.
    pub looked: usize,
    /// Of these, how many would not stand still, or could not be read.
    pub failed: usize,
}

/// A tick: when, the time it stands for, and what may be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// On the monotonic clock.
    pub at_ns: u64,
    /// The time that the tick stands for.
    pub span_ns: u64,
    /// Whether only threads that work for a request count.
    pub only_context: bool,
}

/// Looks at virtual threads.
pub struct Virtuals {
    budget: Budget,
    classes: Classes,
    places: Vec<Place>,
    threads: Vec<u64>,
    frames: Vec<Frame>,
    owner_frames: Vec<Frame>,
}

impl Virtuals {
    /// With so much to spend.
    #[must_use]
    pub fn new(budget: Budget) -> Virtuals {
        Virtuals {
            budget,
            classes: Classes::default(),
            places: Vec::new(),
            threads: Vec::new(),
            frames: vec![Frame::EMPTY; super::FRAMES_MAX],
            owner_frames: vec![Frame::EMPTY; super::FRAMES_MAX],
        }
    }

    /// Looking may take this part of a processor from now on, unless a number of threads is given.
    pub fn may_take(&mut self, share: f64) {
        self.budget.set_share(share);
    }

    /// The time that looking has taken since the last tick.
    pub fn spent(&mut self, looked: usize, span_ns: u64, cpu_ns: u64) {
        self.budget.spent(looked, span_ns, cpu_ns);
    }

    /// Looks at some. Returns what was found, and how many buckets were looked at for it.
    pub fn look(
        &mut self,
        looker: &Looker<'_>,
        known: &VirtualThreads,
        moment: &Moment,
        random: &mut Random,
        find_owner: OwnerFinder<'_>,
        shelf: &Shelf,
    ) -> (Found, usize) {
        let mut found = Found::default();
        if self.find_sets(looker, known, random).is_err() {
            found.failed += 1;
            return (found, 0);
        }
        let total: u64 = self.places.iter().map(|p| u64::from(p.buckets.len())).sum();
        let count = self
            .budget
            .count(usize::try_from(total).unwrap_or(usize::MAX));
        let part = total as f64 / (count.max(1) as f64);
        let all = std::mem::take(&mut self.places);
        let mut places = all.iter();
        let (mut place, mut begins) = (places.next(), 0);
        for position in Spread::new(total, count as u64, random) {
            while let Some(it) = place
                && position - begins >= u64::from(it.buckets.len())
            {
                begins += u64::from(it.buckets.len());
                place = places.next();
            }
            let Some(it) = place else { break };
            let index = u32::try_from(position - begins).unwrap_or(u32::MAX);
            let mut threads = std::mem::take(&mut self.threads);
            let sets = sets(looker, known);
            let read = sets.elements(&it.buckets, index, &mut |thread| threads.push(thread));
            found.failed += usize::from(read.is_err());
            for thread in threads.drain(..) {
                let seen = self.look_at(looker, known, thread);
                let each = part * it.factor;
                self.keep(seen, each, moment, (find_owner, shelf), &mut found);
            }
            self.threads = threads;
        }
        self.places = all;
        (found, count)
    }

    fn look_at(
        &mut self,
        looker: &Looker<'_>,
        known: &VirtualThreads,
        thread: u64,
    ) -> Result<Option<OffVirtual>, Fault> {
        if !is_of(&looker.live, &looker.vm.layout, thread, &mut self.classes)? {
            return Ok(None);
        }
        looker.look_unmounted(known, thread, &mut self.frames)
    }

    /// Keeps what was seen of a thread that stands for `each`.
    fn keep(
        &mut self,
        seen: Result<Option<OffVirtual>, Fault>,
        each: f64,
        moment: &Moment,
        (find_owner, shelf): (OwnerFinder<'_>, &Shelf),
        found: &mut Found,
    ) {
        let seen = match seen {
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
        if moment.only_context && seen.off.context.is_none() {
            return;
        }
        let owner = find_owner(seen.off.owner, &mut self.owner_frames);
        let owner = owner.map(|(key, len)| (key, self.owner_frames.get(..len).unwrap_or(&[])));
        let weight_ns = (moment.span_ns as f64 * each) as u64;
        let mut notes = shelf.lock();
        let told = tell(
            seen,
            (&self.frames, owner),
            moment.at_ns,
            weight_ns,
            &mut notes,
        );
        found.failed += usize::from(!told);
    }

    /// Where threads are by now: objects move.
    fn find_sets(
        &mut self,
        looker: &Looker<'_>,
        known: &VirtualThreads,
        random: &mut Random,
    ) -> Result<(), Fault> {
        self.places.clear();
        let sets = sets(looker, known);
        let set = continuation::handle(&looker.live, &looker.vm.layout, known.started)?;
        let buckets = sets.buckets(set)?;
        self.places.push(Place {
            buckets,
            factor: 1.0,
        });
        if known.containers == 0 || !present(known.referent) {
            return Ok(());
        }
        let registry = continuation::handle(&looker.live, &looker.vm.layout, known.containers)?;
        let registry = sets.buckets(registry)?;
        let total = u64::from(registry.len());
        let count = total.min(CONTAINER_BUCKETS_MAX);
        let part = total as f64 / (count.max(1) as f64);
        let mut containers = Vec::new();
        for index in Spread::new(total, count, random) {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            // What cannot be read just now is there in the next tick.
            let _ = sets.elements(&registry, index, &mut |it| containers.push(it));
        }
        let total = containers.len() as u64;
        let count = total.min(SETS_MAX);
        let factor = part * (total as f64) / (count.max(1) as f64);
        for index in Spread::new(total, count, random) {
            let weak = usize::try_from(index)
                .ok()
                .and_then(|at| containers.get(at));
            let Some(weak) = weak else { continue };
            if let Ok(Some(set)) = self.set_of(looker, known, *weak)
                && let Ok(buckets) = sets.buckets(set)
            {
                self.places.push(Place { buckets, factor });
            }
        }
        Ok(())
    }

    /// The set of threads of a container, which a weak reference knows.
    fn set_of(
        &mut self,
        looker: &Looker<'_>,
        known: &VirtualThreads,
        weak: u64,
    ) -> Result<Option<u64>, Fault> {
        let (live, layout) = (&looker.live, &looker.vm.layout);
        let reference =
            |object: u64, at: u64| continuation::reference(live, layout, object.wrapping_add(at));
        let container = reference(weak, known.referent)?;
        if container == 0 {
            return Ok(None);
        }
        let class = objects::class_of(live, layout, layout.extra.objects.class_word, container)?;
        let known_class = |at: &mut u64, name: &[u8]| -> Result<bool, Fault> {
            if *at == 0 && objects::is_kind_of(live, layout, class, name)? {
                *at = class;
            }
            Ok(*at == class)
        };
        let executor = b"java/util/concurrent/ThreadPerTaskExecutor";
        let shared = b"jdk/internal/vm/SharedThreadContainer";
        let at = if known_class(&mut self.classes.executor, executor)? {
            known.executor_threads
        } else if known_class(&mut self.classes.shared, shared)? {
            known.shared_threads
        } else {
            return Ok(None);
        };
        if !present(at) {
            return Ok(None);
        }
        Ok(Some(reference(container, at)?).filter(|set| *set != 0))
    }
}

fn sets<'a>(looker: &'a Looker<'_>, known: &'a VirtualThreads) -> Sets<'a, Live> {
    Sets {
        mem: &looker.live,
        layout: &looker.vm.layout,
        fields: &known.sets,
    }
}

/// Whether it is a virtual thread that has a continuation.
fn is_of(live: &Live, layout: &Layout, thread: u64, classes: &mut Classes) -> Result<bool, Fault> {
    let class = objects::class_of(live, layout, layout.extra.objects.class_word, thread)?;
    if classes.thread == 0 && objects::is_kind_of(live, layout, class, b"java/lang/VirtualThread")?
    {
        classes.thread = class;
    }
    Ok(class == classes.thread)
}

/// What a thread waits for may be another one's: who that is, and how much of the frames tells
/// where.
pub type OwnerFinder<'a> = &'a dyn Fn(Owner, &mut [Frame]) -> Option<(u64, usize)>;

/// Tells the drainer of one look; false if there is no room.
fn tell(
    seen: OffVirtual,
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
    };
    notes.add(Note::Run(run), weight_ns);
    notes.add(Note::Gone { thread }, 0);
    true
}
