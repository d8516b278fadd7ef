//! The JVM's counters for its monitoring tools (src/hotspot/share/runtime/perfMemory.hpp). They
//! exist even if libjvm has no symbols, unless they are disabled (`-XX:-UsePerfData`).

use super::layout::{Layout, present};
use crate::memory::{Fault, Memory};

/// Maximum number of entries searched; there are some 250.
const ENTRIES_MAX: u32 = 10_000;
/// Longer names are not of interest.
const NAME_MAX: usize = 48;
/// `0xcafec0c0`, in either byte order.
const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];

/// Addresses of some counters.
///
/// # Errors
/// [`Fault`] if the entries cannot be read.
pub fn find<M: Memory, const N: usize>(
    mem: &M,
    layout: &Layout,
    names: [&str; N],
) -> Result<[Option<u64>; N], Fault> {
    let mut found = [None; N];
    if !present(layout.perf_start) {
        return Ok(found);
    }
    let start = mem.word(layout.perf_start)?;
    let mut magic = [0; 4];
    if start == 0 || mem.read(start, &mut magic).is_err() || magic != MAGIC {
        return Ok(found);
    }
    // struct PerfDataPrologue: ... entry_offset at 24, num_entries at 28.
    let mut at = start.wrapping_add(u64::from(mem.u32(start.wrapping_add(24))?));
    let entries = mem.u32(start.wrapping_add(28))?.min(ENTRIES_MAX);
    for _ in 0..entries {
        // struct PerfDataEntry: length 0, name 4, elements of a vector 8, type 12, value 16.
        let length = mem.u32(at)?;
        if length < 20 {
            break;
        }
        let name = at.wrapping_add(u64::from(mem.u32(at.wrapping_add(4))?));
        let is_number = mem.u32(at.wrapping_add(8))? == 0;
        for (place, wanted) in found.iter_mut().zip(names) {
            if is_number && is_text(mem, name, wanted)? {
                let value = u64::from(mem.u32(at.wrapping_add(16))?);
                *place = Some(at.wrapping_add(value));
            }
        }
        at = at.wrapping_add(u64::from(length));
    }
    Ok(found)
}

/// Whether this text is at `addr`, with its terminator.
fn is_text<M: Memory>(mem: &M, addr: u64, wanted: &str) -> Result<bool, Fault> {
    let mut buf = [0; NAME_MAX];
    let Some(read) = buf.get_mut(..wanted.len() + 1) else {
        return Ok(false);
    };
    // A shorter name may be at the end of the memory.
    if mem.read(addr, read).is_err() {
        return Ok(false);
    }
    Ok(read.strip_suffix(&[0]) == Some(wanted.as_bytes()))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::hotspot::test_memory::Bytes;
    use std::vec::Vec;

    fn memory(entries: &[(&str, u64)]) -> Bytes {
        let mut data: Vec<u8> = MAGIC.to_vec();
        data.extend([1, 2, 0, 1]);
        data.extend([0; 16]);
        data.extend(32u32.to_le_bytes());
        data.extend((entries.len() as u32).to_le_bytes());
        for (name, value) in entries {
            let name_len = (name.len() + 1).next_multiple_of(8) as u32;
            let words = [24 + name_len + 8, 24, 0, 0, 24 + name_len, 0];
            words
                .iter()
                .for_each(|word| data.extend(word.to_le_bytes()));
            let mut text = name.as_bytes().to_vec();
            text.resize(name_len as usize, 0);
            data.extend(text);
            data.extend(value.to_le_bytes());
        }
        let mut memory = Bytes::at(0x5000, &0x8000u64.to_le_bytes());
        memory.add(0x8000, &data);
        memory
    }

    fn layout() -> Layout {
        Layout {
            perf_start: 0x5000,
            ..Layout::EMPTY
        }
    }

    #[test]
    fn counters_are_found_by_their_names() {
        let memory = memory(&[
            ("sun.rt.safepoints2", 3),
            ("sun.rt.safepoints", 7),
            ("a", 9),
        ]);
        let found = find(&memory, &layout(), ["a", "sun.rt.safepoints", "none"]).unwrap();
        let value = |at: Option<u64>| at.map(|at| memory.word(at).unwrap());
        assert_eq!(found.map(value), [Some(9), Some(7), None]);
    }

    #[test]
    fn other_memory_has_none() {
        let mut memory = Bytes::at(0x5000, &0x8000u64.to_le_bytes());
        memory.add(0x8000, &[0; 64]);
        assert_eq!(find(&memory, &layout(), ["a"]), Ok([None]));
        assert_eq!(find(&memory, &Layout::EMPTY, ["a"]), Ok([None]));
    }
}
