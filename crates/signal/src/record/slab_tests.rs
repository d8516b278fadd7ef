//! The slab gives each of thousands of threads its own record, and detects old uses.

use super::*;
use std::collections::BTreeSet;
use std::vec::Vec;

fn registration(tid: i32) -> Registration {
    Registration {
        tid,
        seed: 3,
        ..Registration::default()
    }
}

#[test]
fn ten_thousand_threads_have_records_of_their_own() {
    static SLAB: Slab = Slab::new();
    const LANES: i32 = 4;
    const EACH: i32 = 2600;
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            scope.spawn(move || {
                for number in 0..EACH {
                    let tid = lane * EACH + number;
                    let record = SLAB.begin(&registration(tid)).unwrap();
                    assert!(record.is_live());
                    assert_eq!(record.tid(), tid);
                }
            });
        }
    });
    let live: Vec<_> = SLAB.iter().filter(|record| record.is_live()).collect();
    let tids: BTreeSet<i32> = live.iter().map(|record| record.tid()).collect();
    let indices: BTreeSet<u32> = live.iter().map(|record| record.index()).collect();
    assert_eq!(tids.len(), (LANES * EACH) as usize);
    assert_eq!(indices.len(), tids.len());
    for record in live {
        assert!(core::ptr::eq(SLAB.get(record.index()).unwrap(), record));
    }
}

#[test]
fn a_recycled_record_is_another_generation() {
    static SLAB: Slab = Slab::new();
    let record = SLAB.begin(&registration(7)).unwrap();
    let cookie = record.cookie();
    assert!(cookie.is_generation(record.generation()));
    assert!(!SLAB.recycle(record), "it has not ended");
    record.state.store(ENDED, Ordering::Release);
    assert!(SLAB.recycle(record));
    assert!(!SLAB.recycle(record), "once");
    let again = SLAB.begin(&registration(8)).unwrap();
    assert!(core::ptr::eq(record, again), "last in, first out");
    assert!(!cookie.is_generation(again.generation()));
    assert_eq!((again.tid(), again.samples(), again.points()), (8, 0, 0));
}

#[test]
fn indices_that_no_record_has_are_refused() {
    static SLAB: Slab = Slab::new();
    assert!(SLAB.get(0).is_none());
    SLAB.begin(&registration(1)).unwrap();
    assert!(SLAB.get(1023).is_some());
    for index in [1024, 1 << 20, u32::MAX] {
        assert!(SLAB.get(index).is_none());
    }
}

/// Only records that a thread gets are touched in a chunk.
#[test]
fn unused_records_are_not_read() {
    static SLAB: Slab = Slab::new();
    assert_eq!(SLAB.iter().count(), 0);
    for had in 1..=1030 {
        let record = SLAB.begin(&registration(1)).unwrap();
        assert_eq!(record.index(), had - 1);
        assert_eq!(SLAB.iter().count(), had as usize);
    }
    for (from, left) in [(0, 1030), (1000, 30), (1029, 1), (1030, 0), (u32::MAX, 0)] {
        let mut rest = SLAB.iter_from(from).map(ThreadRecord::index);
        assert!(rest.next().is_none_or(|index| index == from));
        assert_eq!(SLAB.iter_from(from).count(), left);
    }
    let first = SLAB.get(3).unwrap();
    first.state.store(ENDED, Ordering::Release);
    assert!(SLAB.recycle(first));
    assert!(core::ptr::eq(SLAB.begin(&registration(2)).unwrap(), first));
    assert_eq!(SLAB.iter().count(), 1030);
}

#[test]
fn one_holder_at_a_time() {
    static SLAB: Slab = Slab::new();
    let record = SLAB.begin(&registration(1)).unwrap();
    let guard = record.try_lock().unwrap();
    assert!(record.try_lock().is_none());
    drop(guard);
    assert!(record.lock().is_some());
    assert!(record.try_lock().is_some(), "given back by the line above");
}
