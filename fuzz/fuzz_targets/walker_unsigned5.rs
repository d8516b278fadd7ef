//! Numbers in UNSIGNED5 come back as they were written, and any bytes mean what HotSpot's
//! definition says.
#![no_main]

#[path = "../../crates/walker/tests/common/mod.rs"]
mod common;

use common::{Bytes, unsigned5};
use dwell_walker::hotspot::scope::Stream;
use libfuzzer_sys::fuzz_target;

const START: u64 = 0x1000;

fuzz_target!(|input: (Vec<(u32, u8)>, Vec<u8>, bool)| {
    let (numbers, any, is_old) = input;
    let base = u8::from(!is_old);
    // Shifted, so that there are numbers of each length.
    let numbers: Vec<u32> = numbers
        .iter()
        .map(|(number, by)| number >> (by % 32))
        .collect();
    let mut bytes = Vec::new();
    for number in &numbers {
        let before = bytes.len();
        unsigned5::encode(*number, base, &mut bytes);
        assert!(bytes.len() - before <= unsigned5::LENGTH_MAX);
        unsigned5::encode(unsigned5::zigzag(number.cast_signed()), base, &mut bytes);
    }
    let whole = memory(bytes);
    let mut stream = Stream::new(&whole, START, 0).with_base(base);
    for number in numbers {
        assert_eq!(stream.unsigned(), Ok(number));
        assert_eq!(stream.signed(), Ok(number.cast_signed()));
    }
    check_any(any, base);
});

fn memory(bytes: Vec<u8>) -> Bytes {
    let mut memory = Bytes::default();
    memory.add(START, bytes);
    memory
}

fn check_any(mut bytes: Vec<u8>, base: u8) {
    bytes.resize(bytes.len().next_multiple_of(8), 0xff);
    let memory = memory(bytes.clone());
    let mut stream = Stream::new(&memory, START, 0).with_base(base);
    let mut rest = &bytes[..];
    while let Some((value, len)) = unsigned5::decode(rest, base) {
        assert_eq!(stream.unsigned(), Ok(value));
        rest = &rest[len..];
    }
    // Excluded bytes mean nothing, but reading them ends, with a fault at the end of the memory.
    for _ in 0..=rest.len() {
        let _ = stream.unsigned();
    }
    assert!(stream.unsigned().is_err());
    assert!(memory.reads() <= bytes.len() as u64 / 8 + rest.len() as u64 + 2);
}
