//! Records are found, read and recycled correctly: compared with a model, and from many threads.
#![allow(missing_docs)]

use dwell_context::by_thread::BUCKET;
use dwell_context::{Acquired, Context, Handle, LABELS_MAX, RECORD_WORDS, Slab};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

fn slab(records: usize, buckets: usize) -> Slab<'static> {
    let words: Vec<AtomicU64> = (0..records * RECORD_WORDS)
        .map(|_| AtomicU64::new(0))
        .collect();
    let entries: Vec<AtomicU32> = (0..buckets * BUCKET).map(|_| AtomicU32::new(0)).collect();
    Slab::new(words.leak(), entries.leak()).expect("a power of two")
}

fn held(acquired: Acquired) -> Handle {
    match acquired {
        Acquired::Held(handle) => handle,
        Acquired::Full => panic!("full"),
    }
}

/// A context with the same number in all of its parts.
fn of(number: u64) -> Context {
    let half = number as u32 | 1;
    let mut labels = [0; LABELS_MAX];
    for (place, label) in labels.iter_mut().enumerate() {
        *label = if number >> (place % 8) & 1 == 0 {
            0
        } else {
            half
        };
    }
    Context {
        trace_hi: number,
        trace_lo: number,
        span: number,
        local_root: number,
        endpoint: half,
        active: 1,
        labels,
    }
}

#[derive(Clone, Debug)]
enum Step {
    Acquire(u64),
    Write(u64, u64),
    End(u64),
    Release(usize),
    ReleaseAgain(usize),
}

fn step() -> impl Strategy<Value = Step> {
    // Includes ids that share buckets and bits.
    let id = prop_oneof![1u64..6, (0u64..4).prop_map(|n| 3 + (n << 2)), Just(1 << 40)];
    prop_oneof![
        3 => id.clone().prop_map(Step::Acquire),
        3 => (id.clone(), any::<u64>()).prop_map(|(id, number)| Step::Write(id, number)),
        1 => id.prop_map(Step::End),
        2 => any::<usize>().prop_map(Step::Release),
        1 => any::<usize>().prop_map(Step::ReleaseAgain),
    ]
}

proptest! {
    #[test]
    fn slab_behaves_like_a_map(steps in prop::collection::vec(step(), 1..200)) {
        let slab = slab(8, 4);
        let mut model: HashMap<u64, (usize, Option<Context>)> = HashMap::new();
        let mut holds: Vec<(u64, Handle)> = Vec::new();
        let mut past: Vec<Handle> = Vec::new();
        for step in steps {
            match step {
                Step::Acquire(id) => match slab.acquire(id) {
                    Acquired::Held(handle) => {
                        prop_assert_ne!(handle.to_bits(), 0);
                        prop_assert_eq!(Handle::from_bits(handle.to_bits()), handle);
                        let fits = |(a, b): &(u64, Handle)| (*a == id) == (*b == handle);
                        prop_assert!(holds.iter().all(fits));
                        model.entry(id).or_insert((0, None)).0 += 1;
                        holds.push((id, handle));
                    }
                    Acquired::Full => prop_assert!(model.len() >= 8 && !model.contains_key(&id)),
                },
                Step::Write(id, number) => {
                    if let Some((_, handle)) = holds.iter().find(|(known, _)| *known == id) {
                        slab.record(handle.place).expect("a record").write(&of(number));
                        model.get_mut(&id).expect("held").1 = Some(of(number));
                    }
                }
                Step::End(id) => {
                    if let Some((_, handle)) = holds.iter().find(|(known, _)| *known == id) {
                        slab.record(handle.place).expect("a record").write(&Context::default());
                        model.get_mut(&id).expect("held").1 = None;
                    }
                }
                Step::Release(which) if !holds.is_empty() => {
                    let (id, handle) = holds.swap_remove(which % holds.len());
                    prop_assert!(slab.release(handle));
                    let entry = model.get_mut(&id).expect("held");
                    entry.0 -= 1;
                    if entry.0 == 0 {
                        model.remove(&id);
                        past.push(handle);
                    }
                }
                Step::ReleaseAgain(which) if !past.is_empty() => {
                    prop_assert!(!slab.release(past[which % past.len()]));
                }
                Step::Release(_) | Step::ReleaseAgain(_) => {}
            }
            prop_assert_eq!(slab.held() as usize, model.len());
            for id in (0..20).chain([1 << 40]) {
                let expected = model.get(&id).and_then(|(_, context)| *context);
                prop_assert_eq!(slab.context_here(id), expected);
                prop_assert_eq!(slab.context_of(id), expected);
            }
            let mut shown = HashMap::new();
            slab.for_each(|id, context| { shown.insert(id, *context); });
            let expected: HashMap<u64, Context> = model
                .iter()
                .filter_map(|(id, (_, context))| Some((*id, (*context)?)))
                .collect();
            prop_assert_eq!(shown, expected);
        }
    }
}

#[test]
fn full_slab_and_full_bucket_refuse_and_recover() {
    let small = slab(3, 1);
    let handles: Vec<_> = (1..=3).map(|id| held(small.acquire(id))).collect();
    assert_eq!(small.acquire(4), Acquired::Full);
    assert!(small.release(handles[1]));
    assert!(matches!(small.acquire(4), Acquired::Held(_)));
    assert_eq!(small.acquire(0), Acquired::Full);
    let crowded = slab(64, 1);
    let handles: Vec<_> = (1..=BUCKET as u64)
        .map(|id| held(crowded.acquire(id)))
        .collect();
    for _ in 0..100 {
        assert_eq!(crowded.acquire(99), Acquired::Full);
    }
    assert!(crowded.release(handles[0]));
    assert!(matches!(crowded.acquire(99), Acquired::Held(_)));
    assert_eq!(crowded.held() as usize, BUCKET);
}

/// A reader on another thread sees one of the written contexts, whole, and never another thread's.
/// Without the second read of the sequence number this fails at once.
#[test]
fn readers_never_see_half_of_a_change() {
    const WRITERS: u64 = 3;
    let slab = slab(64, 16);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 1..=WRITERS {
            let (slab, stop) = (&slab, &stop);
            scope.spawn(move || {
                let mut number = writer << 56;
                while !stop.load(Ordering::Relaxed) {
                    let handle = held(slab.acquire(writer));
                    let record = slab.record(handle.place).expect("a record");
                    for _ in 0..50 {
                        number += 1;
                        record.write(&of(number));
                        assert_eq!(slab.context_here(writer), Some(of(number)));
                    }
                    record.write(&Context::default());
                    assert!(slab.release(handle));
                }
            });
        }
        let _end = EndOnDrop(&stop);
        let mut seen = 0u64;
        while seen < 200_000 {
            for id in 1..=WRITERS {
                if let Some(context) = slab.context_of(id) {
                    assert_eq!(context, of(context.span), "torn");
                    assert_eq!(context.span >> 56, id, "another thread's");
                    seen += 1;
                }
            }
            slab.for_each(|id, context| assert_eq!(context.span >> 56, id));
        }
    });
    assert_eq!(slab.held(), 0);
}

/// Ends the writers, also if a check fails.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Records pass from thread to thread, and two threads never have the same one.
#[test]
fn many_threads_share_few_records() {
    const THREADS: u64 = 4;
    let slab = slab(6, 64);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let slab = &slab;
            scope.spawn(move || {
                for round in 0..20_000u64 {
                    // As with virtual threads: each id is used once.
                    let id = 1 + round * THREADS + thread;
                    let handle = held(slab.acquire(id));
                    let record = slab.record(handle.place).expect("a record");
                    assert_eq!(slab.context_here(id), None, "a record begins empty");
                    record.write(&of(id));
                    assert_eq!(slab.context_of(id), Some(of(id)));
                    assert!(slab.release(handle));
                    assert!(!slab.release(handle));
                    assert_eq!(slab.context_of(id), None);
                }
            });
        }
    });
    assert_eq!(slab.held(), 0);
}
