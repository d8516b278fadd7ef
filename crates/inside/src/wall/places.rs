//! The JDK's sets of virtual threads: one of threads that were started directly, one per executor,
//! and one per scope (`StructuredTaskScope`). Only the thread that opened a scope refers to that
//! set. A virtual thread is in exactly one of these sets.
//!
//! If there are too many sets for one tick, it reads a random selection. Each selected set has a
//! factor, the inverse of its probability of selection. That is fixed before the set is read.

use super::Asked;
use super::look::Looker;
use crate::jvm::virtual_threads::VirtualThreads;
use dwell_signal::Live;
use dwell_walker::Fault;
use dwell_walker::hotspot::continuation;
use dwell_walker::hotspot::flocks;
use dwell_walker::hotspot::layout::present;
use dwell_walker::hotspot::objects;
use dwell_walker::hotspot::sets::{Buckets, Sets};
use dwell_wall::random::Random;
use dwell_wall::spread::Spread;

/// Maximum number of sets that are read in one tick; of more sets, some are selected.
const SETS_MAX: u64 = 256;
/// Maximum number of buckets of the JDK's registry that are read in one tick.
const CONTAINER_BUCKETS_MAX: u64 = 1024;
/// Maximum number of platform threads with open scopes that the next tick checks again.
const OWNERS_MAX: usize = 32;

/// The classes of the objects read, once known (0: not yet).
#[derive(Clone, Copy, Debug, Default)]
struct Classes {
    thread: u64,
    executor: u64,
    shared: u64,
    scope: u64,
}

/// The buckets of one set, and the number of sets that it represents.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The buckets.
    pub buckets: Buckets,
    /// The number of sets that it represents.
    pub factor: f64,
}

impl Place {
    /// Whether each tick finds the set, as long as it exists. Its selection is not random.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.factor <= 1.0
    }
}

/// Finds sets.
#[derive(Default)]
pub struct Places {
    classes: Classes,
    /// Platform threads that had open scopes in the last tick.
    owners: Vec<u64>,
}

impl Places {
    /// All sets that can be found without reading virtual threads, or a selection of them.
    ///
    /// # Errors
    /// [`Fault`] if the set of threads that were started directly cannot be read.
    pub fn find(
        &mut self,
        looker: &Looker<'_>,
        known: &VirtualThreads,
        platform: &Asked<'_>,
        random: &mut Random,
    ) -> Result<Vec<Place>, Fault> {
        let mut places = vec![started(looker, known)?];
        self.scopes(looker, known, platform, &mut places);
        if known.containers != 0 && present(known.referent) {
            self.executors(looker, known, random, &mut places)?;
        }
        Ok(places)
    }

    /// The sets that are found at any time, independent of selection: those of threads that were
    /// started directly and of executors, but not of scopes.
    ///
    /// # Errors
    /// [`Fault`] if the first of them, or the JDK's registry, cannot be read.
    pub fn lasting(
        &mut self,
        looker: &Looker<'_>,
        known: &VirtualThreads,
    ) -> Result<Vec<Place>, Fault> {
        let mut places = vec![started(looker, known)?];
        if known.containers != 0 && present(known.referent) {
            self.executors(looker, known, &mut Random::new(0), &mut places)?;
        }
        places.retain(Place::is_certain);
        Ok(places)
    }

    /// Adds the sets of scopes that platform threads have opened. Each thread that had open scopes
    /// in the last tick is checked again, so only the others are a selection.
    fn scopes(
        &mut self,
        looker: &Looker<'_>,
        known: &VirtualThreads,
        platform: &Asked<'_>,
        places: &mut Vec<Place>,
    ) {
        let before = std::mem::take(&mut self.owners);
        let others = platform.chosen.iter().filter(|it| !before.contains(it));
        let owners = before
            .iter()
            .filter(|it| platform.threads.of_managed(**it).is_some());
        let asked = owners.map(|it| (it, 1.0));
        let asked = asked.chain(others.map(|it| (it, platform.factor)));
        let mut kept = Vec::new();
        for (thread, factor) in asked {
            let (live, vm) = (&looker.live, looker.vm);
            let object = objects::of_thread(live, &vm.layout, &vm.layout.extra.objects, *thread);
            let has_some = object.and_then(|object| {
                self.forked_by(looker, known, object, |set| {
                    if let Ok(buckets) = sets(looker, known).buckets(set) {
                        places.push(Place { buckets, factor });
                    }
                })
            });
            if has_some == Ok(true) && kept.len() < OWNERS_MAX {
                kept.push(*thread);
            }
        }
        self.owners = kept;
    }

    /// Adds the sets of executors and other containers of the JDK's registry.
    fn executors(
        &mut self,
        looker: &Looker<'_>,
        known: &VirtualThreads,
        random: &mut Random,
        places: &mut Vec<Place>,
    ) -> Result<(), Fault> {
        let sets = sets(looker, known);
        let registry = continuation::handle(&looker.live, &looker.vm.layout, known.containers)?;
        let registry = sets.buckets(registry)?;
        let total = u64::from(registry.len());
        let count = total.min(CONTAINER_BUCKETS_MAX);
        let part = total as f64 / (count.max(1) as f64);
        let mut containers = Vec::new();
        for index in Spread::new(total, count, random) {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            // A bucket that cannot be read now is read in a later tick.
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
                places.push(Place { buckets, factor });
            }
        }
        Ok(())
    }

    /// The set of threads of the container that a weak reference refers to.
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
        let class = class_of(looker, container)?;
        let executor = b"java/util/concurrent/ThreadPerTaskExecutor";
        let shared = b"jdk/internal/vm/SharedThreadContainer";
        let at = if is_of(looker, class, &mut self.classes.executor, executor)? {
            known.executor_threads
        } else if is_of(looker, class, &mut self.classes.shared, shared)? {
            known.shared_threads
        } else if known.flocks.is_known() && is_scope(looker, class, &mut self.classes.scope)? {
            // The registry has scopes only if the JDK does not track directly started threads.
            // Then no other path leads to the scopes of these threads.
            let set = flocks::threads_of(live, layout, &known.flocks, container)?;
            return Ok(Some(set).filter(|set| *set != 0));
        } else {
            return Ok(None);
        };
        if !present(at) {
            return Ok(None);
        }
        Ok(Some(reference(container, at)?).filter(|set| *set != 0))
    }

    /// Calls `visit` for the set of each scope that the thread with this object has opened.
    /// Returns whether there are any.
    ///
    /// # Errors
    /// [`Fault`] if they cannot be read.
    pub fn forked_by(
        &mut self,
        looker: &Looker<'_>,
        known: &VirtualThreads,
        thread: u64,
        visit: impl FnMut(u64),
    ) -> Result<bool, Fault> {
        let scope_class = &mut self.classes.scope;
        flocks::for_each(
            &looker.live,
            &looker.vm.layout,
            &known.flocks,
            thread,
            |scope| is_scope(looker, class_of(looker, scope)?, scope_class),
            visit,
        )
    }

    /// Whether the object is a virtual thread with a continuation.
    ///
    /// # Errors
    /// [`Fault`] if it cannot be read.
    pub fn is_virtual(&mut self, looker: &Looker<'_>, thread: u64) -> Result<bool, Fault> {
        let class = class_of(looker, thread)?;
        let name = b"java/lang/VirtualThread";
        is_of(looker, class, &mut self.classes.thread, name)
    }
}

/// The set of threads that were started directly.
fn started(looker: &Looker<'_>, known: &VirtualThreads) -> Result<Place, Fault> {
    let set = continuation::handle(&looker.live, &looker.vm.layout, known.started)?;
    Ok(Place {
        buckets: sets(looker, known).buckets(set)?,
        factor: 1.0,
    })
}

/// Reads sets.
pub fn sets<'a>(looker: &'a Looker<'_>, known: &'a VirtualThreads) -> Sets<'a, Live> {
    Sets {
        mem: &looker.live,
        layout: &looker.vm.layout,
        fields: &known.sets,
    }
}

fn class_of(looker: &Looker<'_>, object: u64) -> Result<u64, Fault> {
    let layout = &looker.vm.layout;
    objects::class_of(
        &looker.live,
        layout,
        layout.extra.objects.class_word,
        object,
    )
}

fn is_scope(looker: &Looker<'_>, class: u64, seen: &mut u64) -> Result<bool, Fault> {
    let name = b"jdk/internal/misc/ThreadFlock$ThreadContainerImpl";
    is_of(looker, class, seen, name)
}

/// Whether `class` has this name. `seen` caches the class with the name; 0 if not seen yet.
fn is_of(looker: &Looker<'_>, class: u64, seen: &mut u64, name: &[u8]) -> Result<bool, Fault> {
    if *seen == 0 && objects::is_kind_of(&looker.live, &looker.vm.layout, class, name)? {
        *seen = class;
    }
    Ok(class == *seen)
}

#[cfg(test)]
mod tests;
