//! Copies hide the live bytes, missing parts are faults, and borders are crossed byte by byte.

use super::*;
use std::vec::Vec;

/// Live memory whose byte at an address is the address's low byte, inverted; nothing below 16.
struct Inverted;

impl Memory for Inverted {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        let mut word = [0; 8];
        self.read(addr, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        for (at, byte) in (addr..).zip(buf) {
            if at < 16 {
                return Err(Fault { addr: at });
            }
            *byte = !(at as u8);
        }
        Ok(())
    }
}

const START: u64 = 0x1000;
const CHUNK: u64 = 0x1080;

/// 64 bytes copied at 0x1000 of a range that reaches to 0x1060; 32 bytes at 0x1080.
fn with_memory(check: impl Fn(&dyn Memory, &dyn Fn(u64) -> Result<u8, Fault>)) {
    let stack: Vec<u8> = (0..64).map(|n| n + 1).collect();
    let chunk: Vec<u8> = (0..32).map(|n| n + 101).collect();
    let regions = [
        Region {
            start: START,
            bytes: &stack,
            end: 0x1060,
        },
        Region::exact(CHUNK, &chunk),
    ];
    let expected = |addr: u64| match addr {
        0..16 => Err(Fault { addr }),
        START..0x1040 => Ok((addr - START + 1) as u8),
        0x1040..0x1060 => Err(Fault { addr }),
        CHUNK..0x10a0 => Ok((addr - CHUNK + 101) as u8),
        _ => Ok(!(addr as u8)),
    };
    check(&SnapshotMemory::new(regions, Inverted), &expected);
}

#[test]
fn every_read_agrees_with_the_bytes_one_by_one() {
    with_memory(|memory, expected| {
        for addr in (0..32).chain(0xfe0..0x10c0) {
            for len in 0..200u64 {
                let mut buf = std::vec![0; len as usize];
                let bytes: Result<Vec<u8>, Fault> = (addr..addr + len).map(expected).collect();
                assert_eq!(
                    memory.read(addr, &mut buf).map(|()| buf),
                    bytes,
                    "{len} at {addr:#x}"
                );
            }
        }
    });
}

#[test]
fn every_word_agrees_with_its_bytes() {
    with_memory(|memory, expected| {
        for addr in (0..32).chain(0xfe0..0x10c0) {
            let bytes: Result<Vec<u8>, Fault> = (addr..addr + 8).map(expected).collect();
            let word = memory.word(addr).map(|word| word.to_le_bytes().to_vec());
            assert_eq!(word, bytes, "{addr:#x}");
        }
    });
}

#[test]
fn nothing_copied_hides_the_whole_range() {
    let regions = [
        Region {
            start: START,
            bytes: &[],
            end: 0x2000,
        },
        Region::exact(0, &[]),
    ];
    let memory = SnapshotMemory::new(regions, Inverted);
    assert_eq!(memory.word(START), Err(Fault { addr: START }));
    assert_eq!(memory.word(START - 4), Err(Fault { addr: START }));
    assert!(memory.word(START - 8).is_ok());
    assert!(memory.word(0x2000).is_ok());
    assert_eq!(
        memory.word(0),
        Err(Fault { addr: 0 }),
        "an absent region hides nothing"
    );
}

#[test]
fn read_at_end_of_address_space_does_not_overflow() {
    let regions = [Region::exact(u64::MAX - 7, &[1; 4]), Region::exact(0, &[])];
    let memory = SnapshotMemory::new(regions, Refusing);
    assert!(memory.word(u64::MAX - 7).is_err());
    assert!(memory.word(u64::MAX).is_err());
    assert!(memory.read(u64::MAX - 7, &mut [0; 4]).is_ok());
}

struct Refusing;

impl Memory for Refusing {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        Err(Fault { addr })
    }

    fn read(&self, addr: u64, _buf: &mut [u8]) -> Result<(), Fault> {
        Err(Fault { addr })
    }
}
