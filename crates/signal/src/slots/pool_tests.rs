//! The pool under several threads: no slot ever has two owners, none gets lost.

use super::*;
use crate::slots::Reason;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::vec::Vec;

const SPECS: [ClassSpec; 3] = [
    ClassSpec {
        capacity_bytes: 256,
        count: 8,
    },
    ClassSpec {
        capacity_bytes: 1000,
        count: 4,
    },
    ClassSpec {
        capacity_bytes: 4096,
        count: 2,
    },
];

fn pool(specs: &[ClassSpec]) -> SlotPool {
    let bytes = SlotPool::region_bytes(specs).unwrap();
    let region = crate::sys::map_zeroed(bytes).unwrap();
    // SAFETY: fresh zeroed pages of the size asked for, never unmapped.
    unsafe { SlotPool::new(region, specs) }.unwrap()
}

#[test]
fn takes_the_smallest_class_that_fits_then_larger_ones() {
    let pool = pool(&SPECS);
    let capacities = |needed: usize| -> Vec<usize> {
        let taken: Vec<_> = core::iter::from_fn(|| pool.take(needed)).collect();
        let capacities = taken.iter().map(OwnedSlot::capacity).collect();
        taken
            .into_iter()
            .for_each(|slot| assert!(pool.release(slot)));
        capacities
    };
    let small = capacities(200);
    assert_eq!(small.len(), 14);
    assert!(small.is_sorted() && small[0] >= 256 && small[7] < 1000 && small[12] >= 4096);
    let middle = capacities(1000);
    assert_eq!(
        middle.len(),
        6,
        "no stack without its root while others wait"
    );
    assert!(middle.is_sorted() && middle[0] >= 1000);
    assert_eq!(
        capacities(1 << 20).len(),
        2,
        "what fits nowhere is cut to the largest"
    );
}

#[test]
fn freed_slots_are_used_again_first() {
    let pool = pool(&SPECS);
    let mut first = pool.take(1).unwrap();
    let second = pool.take(1).unwrap();
    let address = first.data() as usize;
    assert!(pool.release(second));
    assert!(pool.release(first));
    assert_eq!(pool.take(1).unwrap().data() as usize, address);
}

#[test]
fn slots_do_not_overlap_and_are_aligned() {
    let pool = pool(&SPECS);
    let mut ranges: Vec<(usize, usize)> = core::iter::from_fn(|| pool.take(1))
        .map(|mut slot| {
            let start = slot.header() as *mut SlotHeader as usize;
            assert_eq!(start % 64, 0);
            (start, slot.data() as usize + slot.capacity())
        })
        .collect();
    ranges.sort_unstable();
    assert_eq!(ranges.len(), 14);
    assert!(ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    let bytes = SlotPool::region_bytes(&SPECS).unwrap();
    assert!(ranges[13].1 <= pool.links + bytes);
}

#[test]
fn drains_in_order_and_frees() {
    let pool = pool(&SPECS);
    for round in 0..3u64 {
        for number in 0..10 {
            let mut slot = pool.take(1).unwrap();
            slot.header().time_ns = round * 100 + number;
            slot.header().reason = Reason::CpuTime;
            assert!(pool.publish(slot));
        }
        let mut times = Vec::new();
        assert_eq!(pool.drain(|slot| times.push(slot.header().time_ns)), 10);
        assert_eq!(times, (round * 100..round * 100 + 10).collect::<Vec<_>>());
    }
    assert_eq!(core::iter::from_fn(|| pool.take(1)).count(), 14);
}

#[test]
fn next_drain_takes_left_slots_first() {
    let pool = pool(&SPECS);
    let publish = |time_ns| {
        let mut slot = pool.take(1).unwrap();
        slot.header().time_ns = time_ns;
        assert!(pool.publish(slot));
    };
    (0..6).for_each(publish);
    let mut times = Vec::new();
    pool.drain_while(|slot| {
        times.push(slot.header().time_ns);
        times.len() < 2
    });
    assert_eq!(times, [0, 1]);
    assert!(pool.has_rest());
    (6..9).for_each(publish);
    pool.drain_while(|slot| {
        times.push(slot.header().time_ns);
        times.len() < 3
    });
    assert_eq!(times, [0, 1, 2]);
    assert_eq!(pool.drain(|slot| times.push(slot.header().time_ns)), 6);
    assert_eq!(times, (0..9).collect::<Vec<_>>());
    assert!(!pool.has_rest());
    assert_eq!(core::iter::from_fn(|| pool.take(1)).count(), 14);
}

#[test]
fn a_visitor_that_unwinds_loses_no_slot() {
    let pool = pool(&SPECS);
    for _ in 0..10 {
        assert!(pool.publish(pool.take(1).unwrap()));
    }
    let unwinding = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        pool.drain(|_| std::panic::resume_unwind(std::boxed::Box::new(())))
    }));
    assert!(unwinding.is_err());
    assert_eq!(core::iter::from_fn(|| pool.take(1)).count(), 14);
}

#[test]
fn refuses_impossible_classes() {
    let class = |capacity_bytes, count| ClassSpec {
        capacity_bytes,
        count,
    };
    assert_eq!(
        SlotPool::region_bytes(&[class(1, 1); crate::config::CLASSES_MAX + 1]),
        None
    );
    assert_eq!(SlotPool::region_bytes(&[class(1, u32::MAX)]), None);
    assert_eq!(SlotPool::region_bytes(&[class(usize::MAX, 1)]), None);
    assert_eq!(
        SlotPool::region_bytes(&[class(usize::MAX / 4, 1 << 20)]),
        None
    );
}

/// Producers write a pattern over the whole slot; the drainer checks it. A slot with two owners
/// would show a mixed pattern, a lost one would be missing at the end.
#[test]
fn many_producers_one_drainer() {
    const PRODUCERS: u64 = 4;
    const ROUNDS: u64 = 50_000;
    let pool = pool(&SPECS);
    let done = AtomicBool::new(false);
    let published = AtomicU64::new(0);
    let mut seen = [0u64; PRODUCERS as usize];
    let mut newest = [0u64; PRODUCERS as usize];
    let mut visit = |slot: &Slot<'_>| {
        let header = slot.header();
        let producer = header.user as usize;
        assert!(
            slot.stack()
                .iter()
                .all(|byte| *byte == header.time_ns as u8)
        );
        assert!(
            header.time_ns > newest[producer],
            "one producer's slots come in order"
        );
        newest[producer] = header.time_ns;
        seen[producer] += 1;
    };
    std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let (pool, published) = (&pool, &published);
            scope.spawn(move || produce(pool, published, producer, ROUNDS));
        }
        scope.spawn(|| {
            while published.load(Ordering::Acquire) < PRODUCERS * ROUNDS {
                pool.drain(&mut visit);
                std::thread::yield_now();
            }
            done.store(true, Ordering::Release);
        });
    });
    pool.drain(&mut visit);
    assert_eq!(seen, [ROUNDS; PRODUCERS as usize]);
    assert_eq!(core::iter::from_fn(|| pool.take(1)).count(), 14);
}

fn produce(pool: &SlotPool, published: &AtomicU64, producer: u64, rounds: u64) {
    let mut number = 1;
    while number <= rounds {
        let Some(mut slot) = pool.take((number % 5000) as usize) else {
            std::thread::yield_now();
            continue;
        };
        if number % 7 == 3 {
            assert!(pool.release(slot));
            slot = match pool.take(1) {
                Some(slot) => slot,
                None => continue,
            };
        }
        let (data, capacity) = (slot.data(), slot.capacity());
        // SAFETY: the slot's own data, of which it is the only owner.
        unsafe { data.write_bytes(number as u8, capacity) };
        let header = slot.header();
        (header.user, header.time_ns, header.stack_len) = (producer, number, capacity as u32);
        header.reason = Reason::CpuTime;
        assert!(pool.publish(slot));
        published.fetch_add(1, Ordering::Release);
        number += 1;
    }
}

#[test]
fn give_back_memory_empties_free_slots_and_keeps_their_order() {
    let specs = [ClassSpec {
        capacity_bytes: 16 << 10,
        count: 3,
    }];
    let pool = pool(&specs);
    let (first, mut held) = (pool.take(1).unwrap(), pool.take(1).unwrap());
    let mut first = first;
    let middle = 8 << 10;
    for slot in [&mut first, &mut held] {
        slot.header().tid = 7;
        // SAFETY: within the slot's data, and the slot is ours.
        unsafe { slot.data().wrapping_add(middle).write(9) };
    }
    let id = first.id;
    assert!(pool.release(first));
    pool.give_back_memory(crate::sys::page_bytes());
    let read = |slot: &mut OwnedSlot| {
        // SAFETY: as above.
        unsafe { slot.data().wrapping_add(middle).read() }
    };
    assert_eq!(read(&mut held), 9, "one that is taken");
    let mut first = pool.take(1).unwrap();
    assert_eq!((first.id, first.header().tid), (id, 7));
    assert_eq!(read(&mut first), 0);
    assert!(pool.take(1).is_some() && pool.take(1).is_none());
}

#[test]
fn whole_pages_exclude_shared_pages_of_each_size() {
    let (kib, at) = (1 << 10, 1 << 20);
    // A slot's data from 1 KiB after a page on, 70 KiB long.
    let of = |page_bytes| whole_pages(at + kib, 70 * kib, page_bytes);
    assert_eq!(of(4 * kib), (at + 4 * kib, at + 68 * kib));
    assert_eq!(of(16 * kib), (at + 16 * kib, at + 64 * kib));
    assert_eq!(of(64 * kib), (at + 64 * kib, at + 64 * kib), "no page");
    assert_eq!(whole_pages(at, 64 * kib, 64 * kib), (at, at + 64 * kib));
}
