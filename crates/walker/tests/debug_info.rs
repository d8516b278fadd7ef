//! Debug information of compiled code, encoded by HotSpot's definitions and read back, also from
//! damaged memory.
#![allow(missing_docs)]

mod common;

use common::debug_info::{AGES, Age, Compiled, IMMUTABLE, Place, compiled};
use common::{Bytes, unsigned5};
use dwell_walker::hotspot::nmethod::Nmethod;
use dwell_walker::hotspot::scope::{self, Stream};
use proptest::collection::vec;
use proptest::prelude::*;

const START: u64 = 0x1000;

fn number() -> impl Strategy<Value = u32> {
    // Numbers of every length, not only the longest.
    (any::<u32>(), 0..32u32).prop_map(|(value, shift)| value >> shift)
}

fn memory(bytes: Vec<u8>) -> Bytes {
    let mut memory = Bytes::default();
    memory.add(START, bytes);
    memory
}

fn places() -> impl Strategy<Value = Vec<Place>> {
    vec((any::<u8>(), vec((any::<u8>(), any::<i32>()), 0..8)), 0..20)
}

fn method(places: &[Place], age: usize, base: u8) -> Compiled {
    compiled(AGES[age], base, places)
}

#[test]
fn the_largest_numbers_take_five_bytes() {
    for base in [0, 1] {
        for value in [u32::MAX, u32::MAX - 1, i32::MAX as u32, 1 << 31] {
            let mut bytes = Vec::new();
            unsigned5::encode(value, base, &mut bytes);
            assert_eq!(bytes.len(), 5);
            let memory = memory(bytes);
            let mut stream = Stream::new(&memory, START, 0).with_base(base);
            assert_eq!(stream.unsigned(), Ok(value));
        }
    }
}

#[test]
fn a_caller_that_is_no_earlier_scope_ends_the_method() {
    // After three `PcDesc`s of 16 bytes and a byte for offset 0 come the scope of the caller (three
    // numbers, all short, and three more), then that of the callee.
    let (outer, inner) = (1, 7);
    for (scope, sender, wanted) in [(outer, outer, 2), (outer, inner, 2), (inner, inner, 1)] {
        let mut method = compiled(Age::Mutable, 0, &[(9, vec![(1, 10), (2, 20)])]);
        let mut stream = method.memory.range_mut(IMMUTABLE).skip(3 * 16);
        *stream.nth(usize::from(scope)).unwrap() = sender;
        drop(stream);
        let nmethod = Nmethod::load(&method.memory, &method.layout, &method.blob).unwrap();
        let (scopes, _) = method.scopes(&nmethod, method.expected[0].0);
        assert_eq!(scopes.len(), wanted, "{scope} says {sender}: {scopes:?}");
    }
}

proptest! {
    #[test]
    fn numbers_follow_each_other(values in vec(number(), 0..40), base in 0..2u8, skip in 0..20u8) {
        let mut bytes = vec![0xff; usize::from(skip)];
        values.iter().for_each(|value| unsigned5::encode(*value, base, &mut bytes));
        let memory = memory(bytes);
        let mut stream = Stream::new(&memory, START, u64::from(skip)).with_base(base);
        for value in values {
            prop_assert_eq!(stream.unsigned(), Ok(value));
        }
    }

    #[test]
    fn signed_numbers_follow_each_other(values in vec(any::<i32>(), 0..40), base in 0..2u8) {
        let mut bytes = Vec::new();
        for value in &values {
            unsigned5::encode(unsigned5::zigzag(*value), base, &mut bytes);
        }
        let memory = memory(bytes);
        let mut stream = Stream::new(&memory, START, 0).with_base(base);
        for value in values {
            prop_assert_eq!(stream.signed(), Ok(value));
        }
    }

    #[test]
    fn any_bytes_are_numbers_until_they_end(
        words in vec(any::<[u8; 8]>(), 0..8), base in 0..2u8,
    ) {
        let bytes = words.concat();
        let memory = memory(bytes.clone());
        let mut stream = Stream::new(&memory, START, 0).with_base(base);
        let mut rest = &bytes[..];
        while let Some((value, len)) = unsigned5::decode(rest, base) {
            prop_assert_eq!(stream.unsigned(), Ok(value));
            rest = &rest[len..];
        }
        let excluded = rest.iter().take(unsigned5::LENGTH_MAX).any(|byte| *byte < base);
        prop_assert!(excluded || stream.unsigned().is_err());
    }

    #[test]
    fn written_scope_is_read_back(
        sender in number(), index in 0..40u32, bci in any::<i32>(), base in 0..2u8,
    ) {
        let mut bytes = Vec::new();
        for number in [sender, index, bci.wrapping_add(1) as u32] {
            unsigned5::encode(number, base, &mut bytes);
        }
        let mut memory = memory(bytes);
        memory.add(0x2000, (1..=40u64).flat_map(u64::to_le_bytes).collect());
        let got = scope::read(&memory, base, START, 0, 0x2000);
        let method = u64::from(index);
        prop_assert_eq!(got, Ok(scope::Scope { sender, method, bci }));
    }

    #[test]
    fn each_place_of_a_method_has_its_scopes(
        places in places(), age in 0..AGES.len(), base in 0..2u8,
    ) {
        method(&places, age, base).check();
    }

    #[test]
    fn damaged_debug_information_is_read_to_an_end(
        places in places(),
        age in 0..AGES.len(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        at in any::<prop::sample::Index>(),
    ) {
        let mut method = method(&places, age, 1);
        {
            let mut bytes: Vec<&mut u8> = method.memory.each_mut().collect();
            for (place, value) in damage {
                let place = place.index(bytes.len());
                *bytes[place] = value;
            }
        }
        let pcs: Vec<u64> = method.expected.iter().map(|(pc, _)| *pc).collect();
        let pc = pcs.get(at.index(pcs.len() + 1)).copied().unwrap_or(u64::MAX);
        method.check_damaged(pc);
    }
}
