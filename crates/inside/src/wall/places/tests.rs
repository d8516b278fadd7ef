//! The sets of virtual threads found in a synthetic heap, and the number that each represents.

use super::*;
use crate::hotspot::made_up::source;
use crate::jvm::Vm;
use crate::jvm::made_up::{self, NOWHERE, Words, class, handle, live, object};
use dwell_recorder::looks::threads::Threads;
use dwell_walker::hotspot::flocks::FlockFields;
use dwell_walker::hotspot::layout::ABSENT;

/// Offset of the thread's object in a `JavaThread`.
const OBJECT_AT: u64 = 8;
const CONTAINER: &str = "jdk/internal/misc/ThreadFlock$ThreadContainerImpl";

/// A set with these elements, one per bucket.
fn set(buckets: usize, elements: &[u64]) -> u64 {
    let node = |key: &u64| object(1, &[7, *key, 0]).at();
    let mut table = vec![buckets as u64];
    table.extend(elements.iter().map(node));
    table.resize(1 + buckets, 0);
    let table = object(1, &table).at();
    object(1, &[object(1, &[table]).at()]).at()
}

/// A weak reference.
fn weak(container: u64) -> u64 {
    object(1, &[container]).at()
}

/// A JVM with its known virtual threads and its platform threads.
struct World {
    vm: Vm,
    known: VirtualThreads,
    places: Places,
    threads: Threads,
    executor: u64,
    shared: u64,
    container: u64,
}

fn world() -> World {
    let mut layout = made_up::layout();
    layout.thread_obj = OBJECT_AT;
    let mut known = VirtualThreads::made_up();
    known.started = handle(set(64, &[]));
    World {
        vm: Vm::made_up(layout),
        known,
        places: Places::default(),
        threads: Threads::new(source().engine),
        executor: class("java/util/concurrent/ThreadPerTaskExecutor"),
        shared: class("jdk/internal/vm/SharedThreadContainer"),
        container: class(CONTAINER),
    }
}

impl World {
    /// An executor whose set of threads has this number of buckets.
    fn executor(&self, buckets: usize) -> u64 {
        object(self.executor, &[set(buckets, &[])]).at()
    }

    /// Fills the JDK's registry with these weak references.
    fn register(&mut self, references: &[u64]) {
        let buckets = references.len().next_power_of_two();
        self.known.containers = handle(set(buckets, references));
    }

    /// The sets found: the number of buckets of each, and its factor.
    fn found(&mut self, chosen: &[u64], factor: f64) -> Result<Vec<(u32, f64)>, Fault> {
        let looker = Looker {
            live: live(),
            vm: &self.vm,
            cache: None,
            remembered: None,
        };
        let asked = Asked {
            chosen,
            factor,
            threads: &self.threads,
            at_ns: 0,
            ran: &[],
            tell: &|_, _, _, _, _| (),
        };
        let mut random = Random::new(5);
        let all = self
            .places
            .find(&looker, &self.known, &asked, &mut random)?;
        let pairs = all.iter().map(|it| (it.buckets.len(), it.factor));
        Ok(pairs.collect())
    }

    /// A platform thread with open scopes that have these sets, the innermost first.
    fn thread(&mut self, scopes: &[u64]) -> u64 {
        // Fields of threads and scopes: the previous scope, the flock, and its set.
        let [head, flock, ..] = made_up::FIELDS;
        self.known.flocks = FlockFields {
            head,
            previous: head,
            flock,
            threads: head,
        };
        let mut scope = 0;
        for set in scopes.iter().rev() {
            let flock = object(1, &[*set]).at();
            scope = object(self.container, &[scope, flock]).at();
        }
        let thread = object(class("java/lang/Thread"), &[scope]).at();
        let java_thread = Words::new(&[0, handle(thread)]).at();
        self.threads.add(java_thread, 1);
        java_thread
    }
}

#[test]
fn directly_started_threads_have_their_own_set() {
    let mut world = world();
    assert_eq!(world.found(&[], 1.0), Ok(vec![(64, 1.0)]));
    world.known.started = handle(NOWHERE);
    assert!(world.found(&[], 1.0).is_err());
}

#[test]
fn executors_are_found_in_the_jdks_registry() {
    let mut world = world();
    let shared = object(world.shared, &[0, set(16, &[])]).at();
    let without_set = object(world.executor, &[0]).at();
    let other = object(class("java/util/concurrent/ForkJoinPool"), &[shared]).at();
    let references = [
        weak(world.executor(32)),
        weak(shared),
        weak(0),
        weak(without_set),
        weak(other),
        weak(NOWHERE),
    ];
    world.register(&references);
    let mut found = world.found(&[], 1.0).unwrap();
    found.sort_by_key(|(len, _)| *len);
    assert_eq!(found, [(16, 1.0), (32, 1.0), (64, 1.0)]);
    world.known.shared_threads = ABSENT;
    assert_eq!(world.found(&[], 1.0).unwrap().len(), 2);
    world.known.referent = ABSENT;
    assert_eq!(world.found(&[], 1.0), Ok(vec![(64, 1.0)]));
}

#[test]
fn selected_executors_represent_all() {
    for (count, looked) in [(SETS_MAX, SETS_MAX), (2 * SETS_MAX, SETS_MAX)] {
        let mut world = world();
        let executor = world.executor(8);
        world.register(&vec![weak(executor); count as usize]);
        let found = world.found(&[], 1.0).unwrap();
        let executors = &found[1..];
        assert_eq!(executors.len() as u64, looked);
        let factor = count as f64 / looked as f64;
        assert!(executors.iter().all(|it| *it == (8, factor)), "{count}");
    }
}

/// The factors of selected buckets and sets multiply. Their sum is the number of containers.
#[test]
fn selected_buckets_of_a_large_registry_represent_all() {
    let mut world = world();
    let executor = world.executor(8);
    let count = 4 * CONTAINER_BUCKETS_MAX;
    world.register(&vec![weak(executor); count as usize]);
    let found = world.found(&[], 1.0).unwrap();
    assert_eq!(found.len() as u64, 1 + SETS_MAX);
    let sum: f64 = found[1..].iter().map(|(_, factor)| factor).sum();
    assert!((sum - count as f64).abs() < 1e-6, "{sum}");
}

#[test]
fn owner_of_scopes_is_checked_again_in_each_tick() {
    let mut world = world();
    let owner = world.thread(&[set(4, &[]), set(2, &[])]);
    let idle = world.thread(&[]);
    let found =
        |world: &mut World, chosen: &[u64]| world.found(chosen, 10.0).unwrap()[1..].to_vec();
    assert_eq!(found(&mut world, &[idle]), []);
    assert_eq!(found(&mut world, &[idle, owner]), [(4, 10.0), (2, 10.0)]);
    // It is always checked again, so it represents only itself, selected or not.
    assert_eq!(found(&mut world, &[owner]), [(4, 1.0), (2, 1.0)]);
    assert_eq!(found(&mut world, &[idle]), [(4, 1.0), (2, 1.0)]);
    // It has exited.
    world.threads.forget(owner, 0, 1);
    assert_eq!(found(&mut world, &[]), []);
    assert_eq!(
        found(&mut world, &[owner]),
        [(4, 10.0), (2, 10.0)],
        "like any other thread"
    );
}

#[test]
fn owners_of_scopes_are_kept_up_to_a_limit() {
    let mut world = world();
    let sets = [set(4, &[])];
    let owners: Vec<u64> = (0..=OWNERS_MAX).map(|_| world.thread(&sets)).collect();
    assert_eq!(world.found(&owners, 2.0).unwrap().len(), 1 + owners.len());
    assert_eq!(world.found(&[], 2.0).unwrap().len(), 1 + OWNERS_MAX);
}

#[test]
fn scope_container_in_the_registry_counts() {
    let mut world = world();
    world.thread(&[]);
    let flock = object(1, &[set(128, &[])]).at();
    let container = object(world.container, &[0, flock]).at();
    world.register(&[weak(container)]);
    assert_eq!(world.found(&[], 1.0), Ok(vec![(64, 1.0), (128, 1.0)]));
    world.known.flocks = FlockFields::EMPTY;
    assert_eq!(world.found(&[], 1.0), Ok(vec![(64, 1.0)]));
}

#[test]
fn virtual_thread_is_identified_by_its_class() {
    let world = world();
    let looker = Looker {
        live: live(),
        vm: &world.vm,
        cache: None,
        remembered: None,
    };
    let mut places = Places::default();
    let mut is_one = |class| places.is_virtual(&looker, object(class, &[]).at());
    let virtual_thread = class("java/lang/VirtualThread");
    assert_eq!(is_one(class("java/lang/Thread")), Ok(false));
    assert_eq!(
        is_one(class("java/lang/ThreadBuilders$BoundVirtualThread")),
        Ok(false)
    );
    assert_eq!(is_one(virtual_thread), Ok(true));
    assert_eq!(
        is_one(class("java/lang/VirtualThread")),
        Ok(false),
        "only one class is accepted"
    );
    assert_eq!(is_one(virtual_thread), Ok(true));
    assert!(places.is_virtual(&looker, NOWHERE).is_err());
}
