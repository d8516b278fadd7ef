//! Reports of followed objects: the survivors, under their present names.

use super::*;
use crate::alive::{Looked, Put, References, key};
use crate::record::batch::Code;
use crate::record::names::Name;
use crate::record::outer::Outer;
use dwell_jfr::FrameKind as FileKind;
use dwell_signal::Followed;
use dwell_walker::{Frame, FrameKind};
use std::cell::RefCell;

/// References are numbers from 2 on. Their objects live unless the numbers are here.
#[derive(Default)]
struct Heap {
    made: RefCell<usize>,
    dead: RefCell<Vec<usize>>,
}

impl References for Heap {
    fn make(&self) -> usize {
        *self.made.borrow_mut() += 1;
        *self.made.borrow() + 1
    }

    fn is_alive(&self, reference: usize) -> bool {
        !self.dead.borrow().contains(&reference)
    }

    fn give_back(&self, _: usize) {}
}

struct Bench {
    heap: Heap,
    table: Table,
    alive: AliveDrain,
    names: Names,
    outer: Outer,
    threads: ThreadTable,
    virtuals: VirtualNames,
}

impl Bench {
    fn new(places: usize) -> Bench {
        let (heap, table) = (Heap::default(), Table::of(places));
        table.open(&heap);
        Bench {
            heap,
            table,
            alive: AliveDrain::default(),
            names: Names::default(),
            outer: Outer::default(),
            threads: ThreadTable::new(),
            virtuals: VirtualNames::default(),
        }
    }

    /// Follows an object that a method of this name has allocated.
    fn allocate(&mut self, key: u32, thread: u64, method: &str, weight: u64) -> Option<Followed> {
        let Put::Followed(place, serial) = self.table.put(key, &self.heap) else {
            return None;
        };
        let followed = Followed {
            serial,
            place,
            collections: 2,
        };
        self.see(followed, thread, method, weight);
        Some(followed)
    }

    fn see(&mut self, followed: Followed, thread: u64, method: &str, weight: u64) {
        let name = self.names.add(Name::native("a/A", method));
        let frame = Frame {
            kind: FrameKind::C2,
            bci: 0,
            id: u64::from(name.0),
        };
        let named = self.outer.name(7, &[frame], |_| {
            let pending = PendingFrame {
                code: Code::Named(name),
                kind: FileKind::C2,
                line: 1,
                bci: 0,
            };
            (pending, true)
        });
        let stack = self.alive.stack(named, false);
        let seen = Seen {
            time_ns: 100,
            thread,
            object: Allocation {
                size: 16,
                weight,
                class: 0,
                followed,
                is_told: true,
            },
            failure: None,
            context: &Context::default(),
        };
        (self.alive).add(&seen, stack, &self.threads, &self.virtuals);
    }

    /// Methods and weights of the report, and the batch.
    fn told(&mut self) -> (Vec<(String, u64)>, Batch) {
        let looked = Looked {
            at_ns: 500,
            collections: 9,
        };
        self.table.look(looked, &self.heap);
        let mut batch = Batch::default();
        self.alive.tell(&self.table, (100, 600), &mut batch);
        let name = |alive: &PendingAlive| {
            let (frames, _) = batch.frames(alive.of.stack.unwrap());
            let Code::Named(id) = frames[0].code else {
                panic!("a named frame");
            };
            (
                self.names.get(id).unwrap().name.clone(),
                alive.of.object.weight,
            )
        };
        let told = batch.alive().iter().map(name).collect();
        (told, batch)
    }
}

#[test]
fn surviving_objects_have_present_method_names() {
    let mut bench = Bench::new(8);
    let worker = bench.threads.add(ThreadName {
        comm: "worker".into(),
        ..ThreadName::default()
    });
    let x = bench.allocate(1, worker, "x", 100).unwrap();
    bench.virtuals.tell(VIRTUAL_KEY | 5, "guest");
    bench.allocate(2, VIRTUAL_KEY | 5, "y", 200);
    bench.allocate(3, worker, "z", 300);
    bench.heap.dead.borrow_mut().push(4);
    // A chunk begins. Names have other numbers in it, and the threads have exited.
    bench.threads.forget(&[worker]);
    bench.virtuals.clear();
    let old = std::mem::take(&mut bench.names);
    bench.names.add(Name::native("b/B", "other"));
    bench.alive.rename(&old, &mut bench.names);
    let (told, batch) = bench.told();
    assert_eq!(told, [("x".to_owned(), 100), ("y".to_owned(), 200)]);
    let [first, second] = batch.alive() else {
        panic!("two of them");
    };
    assert_eq!(
        (first.age_ns, first.collections, first.snapshot),
        (400, 7, 1)
    );
    assert_eq!(first.name.as_deref().unwrap().comm, "worker");
    assert_eq!(
        second.name.as_deref().unwrap().name.as_deref(),
        Some("guest")
    );
    let snapshot = batch.snapshots()[0];
    assert_eq!(
        (snapshot.number, snapshot.objects, snapshot.one_of),
        (1, 2, 1)
    );
    // Its place belongs to another object; an older snapshot that comes late changes nothing.
    bench.heap.dead.borrow_mut().push(2);
    for number in 0..6 {
        bench.allocate(number, worker, "w", 1);
    }
    bench.see(x, worker, "x", 100);
    let (told, batch) = bench.told();
    assert!(told.iter().all(|(name, _)| name != "x"), "{told:?}");
    assert_eq!((told.len(), batch.snapshots()[0].number), (7, 2));
}

#[test]
fn thinned_out_objects_weigh_more() {
    let mut bench = Bench::new(64);
    for number in 0..100 {
        bench.allocate(key(number), 0, "x", 100);
    }
    let (told, batch) = bench.told();
    let one_of = batch.snapshots()[0].one_of;
    assert!((2..=4).contains(&one_of), "{one_of}");
    assert!(told.iter().all(|(_, weight)| *weight == 100 * one_of));
    assert_eq!(batch.snapshots()[0].objects, told.len() as u64);
    assert_eq!(batch.snapshots()[0].chosen, 100);
}

#[test]
fn equal_stacks_are_kept_once_and_memory_is_bounded() {
    let mut bench = Bench::new(64);
    for number in 0..30 {
        bench.allocate(number, 0, "x", 1);
    }
    assert_eq!((bench.alive.stacks.len(), bench.alive.frames), (1, 1));
    bench.heap.dead.borrow_mut().extend(2..40);
    bench.told();
    bench.alive.tidy();
    assert_eq!((bench.alive.stacks.len(), bench.alive.frames), (0, 0));
    assert_eq!(bench.alive.bytes(), 0);
}
