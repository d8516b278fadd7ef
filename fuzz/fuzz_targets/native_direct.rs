//! Rules looked up one by one in a search table and a section that were well-formed at first: the
//! lookup ends, whatever is read later.
#![no_main]

use dwell_native::unwind::{Direct, Searched, Section};
use dwell_walker::memory::{Fault, Memory};
use libfuzzer_sys::fuzz_target;

const HEADER_SVMA: u64 = 0x1000;
const SECTION_SVMA: u64 = 0x2000;
/// Three functions of 64 bytes.
const STARTS: [u64; 3] = [0x4000, 0x4040, 0x4090];

/// Whatever bytes, at any address, as often as they fit.
struct Anywhere<'a> {
    bytes: &'a [u8],
    from: u64,
}

impl Memory for Anywhere<'_> {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        let mut word = [0; 8];
        self.read(addr, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        for (at, byte) in (addr.wrapping_sub(self.from)..).zip(buf) {
            let at = usize::try_from(at).map_err(|_| Fault { addr })?;
            *byte = *self.bytes.get(at).ok_or(Fault { addr })?;
        }
        Ok(())
    }
}

fn well_formed() -> (Vec<u8>, Vec<u8>) {
    let cie = [
        0x14, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, // its head
        0x0c, 7, 8, 0x90, 1, 0, 0,
    ];
    let (mut frame, mut header) = (cie.to_vec(), vec![1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0]);
    header.extend((STARTS.len() as u32).to_le_bytes());
    for start in STARTS {
        let at = frame.len() as u64;
        for address in [start, SECTION_SVMA + at] {
            header.extend((address.wrapping_sub(HEADER_SVMA) as u32).to_le_bytes());
        }
        let here = SECTION_SVMA + at + 8;
        let words = [0x1c, at as u32 + 4, start.wrapping_sub(here) as u32, 64];
        frame.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        // Advances by 4, CFA + 16; the other bytes are room for longer programs.
        frame.extend([0, 0x44, 0x0e, 16]);
        frame.extend([0; 12]);
    }
    (header, frame)
}

fuzz_target!(|input: (bool, u8, &[u8])| {
    let (is_section, from, bytes) = input;
    let (header, frame) = well_formed();
    let both = [&header[..], &frame].concat();
    let (header, frame) = both.split_at(header.len());
    let section = |data, svma| Section { data, svma };
    let searched = Searched {
        base_svma: 0,
        header: section(header, HEADER_SVMA),
        eh_frame: section(frame, SECTION_SVMA),
        text: &[],
    };
    let direct = Direct::of(&searched).expect("well-formed");
    // With the bytes in the place of the section, the search table is as it was.
    let mut memory = bytes.to_vec();
    let mut start = (header.as_ptr() as u64).wrapping_sub(u64::from(from));
    if is_section {
        memory.splice(0..0, header.iter().copied());
        start = header.as_ptr() as u64;
    }
    let memory = Anywhere {
        bytes: &memory,
        from: start,
    };
    for start in STARTS {
        for into in [0, 3, 4, 63, 64, 80] {
            let _ = direct.rule(&memory, (start + into) as u32);
        }
    }
});
