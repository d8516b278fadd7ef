//! Properties of the table of followed objects, on simulated heaps.

use super::*;
use std::collections::HashSet;
use std::sync::Mutex;

/// A heap: references are numbers of objects, from 2 on, and some have died.
#[derive(Default)]
struct Heap {
    made: AtomicUsize,
    dead: Mutex<HashSet<usize>>,
    held: Mutex<HashSet<usize>>,
}

impl Heap {
    fn kill(&self, reference: usize) {
        self.dead.lock().unwrap().insert(reference);
    }

    fn held(&self) -> usize {
        self.held.lock().unwrap().len()
    }
}

impl References for Heap {
    fn make(&self) -> usize {
        let reference = self.made.fetch_add(1, Ordering::Relaxed) + 2;
        assert!(self.held.lock().unwrap().insert(reference));
        reference
    }

    fn is_alive(&self, reference: usize) -> bool {
        !self.dead.lock().unwrap().contains(&reference)
    }

    fn give_back(&self, reference: usize) {
        assert!(self.held.lock().unwrap().remove(&reference), "{reference}");
    }
}

fn followed(put: Put) -> Option<Followed> {
    match put {
        Put::Followed(place, serial) => Some(Followed {
            place,
            serial,
            collections: 0,
        }),
        Put::Thinned | Put::Lost => None,
    }
}

fn opened(places: usize, heap: &Heap) -> Table {
    let table = Table::of(places);
    table.open(heap);
    table
}

#[test]
fn dead_objects_free_places_and_live_ones_stay() {
    let heap = Heap::default();
    let table = opened(4, &heap);
    let all: Vec<Followed> = (0..4)
        .map(|n| followed(table.put(n, &heap)).unwrap())
        .collect();
    heap.kill(3);
    // No check has happened yet: the object may be alive.
    assert!(all.iter().all(|object| table.has(object, 0)));
    let fifth = followed(table.put(4, &heap)).unwrap();
    assert_eq!(fifth.place, all[1].place);
    assert!(!table.has(&all[1], 0) && table.has(&fifth, 0));
    heap.kill(4);
    table.look(
        Looked {
            at_ns: 7,
            collections: 3,
        },
        &heap,
    );
    assert_eq!(table.looked().collections, 3);
    let there: Vec<bool> = all.iter().map(|object| table.has(object, 0)).collect();
    assert_eq!(there, [true, false, false, true]);
    assert_eq!(table.state().followed, 3);
    assert_eq!(table.level(), 0);
    table.close(&heap);
    assert_eq!((heap.held(), table.put(0, &heap)), (0, Put::Lost));
}

#[test]
fn full_table_halves_limit_and_doubles_weights() {
    let heap = Heap::default();
    let table = opened(4, &heap);
    let half = u32::MAX >> 1;
    let keys = [1, half, half + 1, u32::MAX];
    let all = keys.map(|key| followed(table.put(key, &heap)).unwrap());
    assert_eq!(table.put(half + 9, &heap), Put::Thinned);
    assert_eq!(table.state().one_of, 2);
    let there = all.map(|object| table.has(&object, table.level()));
    assert_eq!(there, [true, true, false, false]);
    // Their places are free, and no others.
    let more = [0, 1].map(|key| followed(table.put(key, &heap)).unwrap());
    assert!(more.iter().all(|object| table.has(object, 1)));
    assert!(!all[2..].iter().any(|object| table.has(object, 0)));
    assert_eq!((heap.held(), table.state().followed), (4, 4));
    // Only the least of keys: no halving helps.
    assert_eq!(followed(table.put(0, &heap)).map(|_| ()), Some(()));
    for _ in 0..40 {
        table.put(0, &heap);
    }
    assert!(table.state().lost > 0);
    table.open(&heap);
    assert_eq!((heap.held(), table.level(), table.state().lost), (0, 0, 0));
}

#[test]
fn forgotten_object_frees_only_its_own_place() {
    let heap = Heap::default();
    let table = opened(2, &heap);
    let first = followed(table.put(5, &heap)).unwrap();
    table.forget(&first, &heap);
    table.forget(&first, &heap);
    assert!(!table.has(&first, 0));
    let second = [6, 7].map(|key| followed(table.put(key, &heap)).unwrap());
    // Its place is another one's by now.
    table.forget(&first, &heap);
    assert!(second.iter().all(|object| table.has(object, 0)));
    assert_eq!(heap.held(), 2);
    assert_eq!((table.state().chosen, table.state().lost), (3, 1));
}

/// The table can follow a fifth of a population, half of which dies early. The weights of the
/// survivors add up to the number of all survivors in the mean. The same holds for each tenth of
/// the time in which they were allocated. 200 tables, keys from their numbers.
///
/// After L halvings a survivor is followed with a chance of 2^-L, independently of the others, and
/// stands for 2^L. For n survivors that adds up to n, with a variance of no more than n (2^L - 1).
/// The mean of 200 tables has a 200th of that. Bound: six standard deviations, for one of eleven
/// sums a chance of less than 1e-7.
#[test]
fn survivor_weights_add_up_for_any_time_of_allocation() {
    const TABLES: u64 = 200;
    const OBJECTS: u64 = 2_000;
    let mut tenths = [0.0; 10];
    let (mut alive, mut most) = ([0.0; 10], 0);
    for round in 0..TABLES {
        let heap = Heap::default();
        let table = opened(200, &heap);
        let mut all = Vec::new();
        for number in 0..OBJECTS {
            let put = table.put(key(round << 32 | number), &heap);
            let lives = key(number | 1 << 50).is_multiple_of(2);
            if let Some(object) = followed(put) {
                if !lives {
                    heap.kill(heap.made.load(Ordering::Relaxed) + 1);
                }
                all.push((number, object));
            }
            alive[(number * 10 / OBJECTS) as usize] += f64::from(u8::from(lives));
        }
        table.look(Looked::default(), &heap);
        let level = table.level();
        most = most.max(level);
        for (number, object) in all {
            if table.has(&object, level) {
                tenths[(number * 10 / OBJECTS) as usize] += f64::from(1u32 << level);
            }
        }
        assert_eq!(table.state().lost, 0);
    }
    assert!((2..=4).contains(&most), "halved {most} times");
    let excess = f64::from((1u32 << most) - 1);
    let sums = tenths
        .iter()
        .zip(&alive)
        .map(|(told, truth)| (*told, *truth));
    let all = (tenths.iter().sum(), alive.iter().sum());
    for (told, truth) in sums.chain([all]) {
        let bound = 6.0 * f64::sqrt(truth * excess);
        assert!(
            (told - truth).abs() < bound,
            "{told} of {truth}, +- {bound}"
        );
        // The test would detect a weight that is not doubled, or doubled for some only.
        assert!(bound < truth / 3.0);
    }
}

#[test]
fn many_threads_share_few_places() {
    let heap = Heap::default();
    let table = opened(64, &heap);
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let (heap, table) = (&heap, &table);
            scope.spawn(move || {
                for number in 0..2_000 {
                    let key = key(thread << 32 | number);
                    if let Some(object) = followed(table.put(key, heap)) {
                        match number % 3 {
                            0 => table.forget(&object, heap),
                            1 => table.look(Looked::default(), heap),
                            _ => {}
                        }
                    }
                }
            });
        }
    });
    assert!(heap.held() <= 64);
    // Objects allocated before the last halving may still be alive.
    table.look(Looked::default(), &heap);
    assert_eq!(heap.held() as u64, table.state().followed);
    table.close(&heap);
    assert_eq!(heap.held(), 0);
}
