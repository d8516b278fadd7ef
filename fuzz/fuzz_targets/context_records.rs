//! Any bytes as records and table of contexts: what Java writes is foreign, too. No panic, and
//! whatever is found belongs to the id that was asked for.
#![no_main]

use dwell_context::by_thread::BUCKET;
use dwell_context::{Acquired, Handle, RECORD_WORDS, Slab};
use libfuzzer_sys::fuzz_target;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const RECORDS: usize = 4;
const BUCKETS: usize = 2;

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.iter().copied().chain(std::iter::repeat(0));
    let mut number = |len: usize| {
        (0..len).fold(0u64, |sum, _| {
            sum << 8 | u64::from(bytes.next().unwrap_or(0))
        })
    };
    let words: Vec<_> = (0..RECORDS * RECORD_WORDS)
        .map(|_| AtomicU64::new(number(8)))
        .collect();
    let entries: Vec<_> = (0..BUCKETS * BUCKET)
        .map(|_| AtomicU32::new(number(4) as u32))
        .collect();
    let Some(slab) = Slab::new(&words, &entries) else {
        return;
    };
    for _ in 0..16 {
        let id = number(1);
        match number(1) % 5 {
            0 => {
                if let Acquired::Held(handle) = slab.acquire(id) {
                    assert!((handle.place as usize) < RECORDS);
                }
            }
            1 => {
                let _ = slab.release(Handle::from_bits(number(8)));
            }
            2 => {
                let _ = (slab.context_of(id), slab.context_here(id));
            }
            3 => slab.for_each(|id, _| assert_ne!(id, 0)),
            _ => {
                let place = number(1) as usize % words.len();
                words[place].store(number(8), Ordering::Relaxed);
            }
        }
    }
});
