//! Compiled methods of every JDK's layout: undamaged, each place has the scopes that were written;
//! damaged in any way, reading ends.
#![no_main]

#[path = "../../crates/walker/tests/common/mod.rs"]
mod common;

use common::debug_info::{AGES, Place, compiled};
use libfuzzer_sys::fuzz_target;

/// More makes the search deeper, not different.
const PLACES_MAX: usize = 200;

fuzz_target!(|input: (Vec<Place>, u8, Vec<(u16, u8)>, u64)| {
    let (mut places, choice, damage, pc) = input;
    places.truncate(PLACES_MAX);
    let age = AGES[usize::from(choice) % AGES.len()];
    let mut method = compiled(age, choice >> 7, &places);
    method.check();
    let mut bytes: Vec<&mut u8> = method.memory.each_mut().collect();
    let len = bytes.len();
    for (place, value) in damage {
        *bytes[usize::from(place) % len] = value;
    }
    let pcs: Vec<u64> = method.expected.iter().map(|(pc, _)| *pc).collect();
    for at in pcs.into_iter().chain([pc]) {
        method.check_damaged(at);
    }
});
