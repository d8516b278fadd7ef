//! The JVM's flags, read from its own table (src/hotspot/share/runtime/flags/jvmFlag.hpp).

use super::layout::{Layout, present};
use super::names;
use crate::memory::{Fault, Memory};

/// Maximum number of flags searched; JDK 25 has about 1500.
const FLAGS_MAX: u64 = 10_000;

/// The address of a flag's value.
///
/// # Errors
/// [`Fault`] if the table cannot be read.
pub fn address<M: Memory>(mem: &M, layout: &Layout, name: &str) -> Result<Option<u64>, Fault> {
    if !present(layout.flags_table) || !present(layout.sizeof_flag) {
        return Ok(None);
    }
    let table = mem.word(layout.flags_table)?;
    let count = mem.word(layout.flags_count)?.min(FLAGS_MAX);
    let mut buf = [0u8; 64];
    for i in 0..count {
        let flag = table.wrapping_add(i * layout.sizeof_flag);
        let text = mem.word(flag.wrapping_add(layout.flag_name))?;
        if text != 0 && names::c_string(mem, text, &mut buf)? == name.as_bytes() {
            return mem.word(flag.wrapping_add(layout.flag_addr)).map(Some);
        }
    }
    Ok(None)
}

/// The value of a boolean flag.
///
/// # Errors
/// [`Fault`] if the table cannot be read.
pub fn boolean<M: Memory>(mem: &M, layout: &Layout, name: &str) -> Result<Option<bool>, Fault> {
    match address(mem, layout, name)? {
        Some(at) => mem.u8(at).map(|v| Some(v != 0)),
        None => Ok(None),
    }
}

/// Whether references in the heap are coloured: ZGC since 24, and 21 to 23 with `ZGenerational`.
/// (The older ZGC has its colours in bits of the address, and maps its heap once for each; see
/// [`has_views`].)
#[must_use]
pub fn has_colored_references<M: Memory>(mem: &M, layout: &Layout) -> bool {
    let flag = |name| boolean(mem, layout, name).ok().flatten();
    present(layout.z_load_good)
        && flag("UseZGC") == Some(true)
        && flag("ZGenerational") != Some(false)
}

/// Whether the non-generational ZGC runs: up to 20, and in 21 to 23 without `ZGenerational`.
#[must_use]
pub fn has_views<M: Memory>(mem: &M, layout: &Layout) -> bool {
    let uses_zgc = boolean(mem, layout, "UseZGC").ok().flatten() == Some(true);
    uses_zgc && !has_colored_references(mem, layout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::test_memory::Bytes;

    /// Three flags of 32 bytes; the second has no name, like the last one of the real table.
    fn memory(zgc: u8, generational: u8) -> (Bytes, Layout) {
        let mut layout = Layout::EMPTY;
        (layout.flags_table, layout.flags_count) = (0x1000, 0x1008);
        (layout.sizeof_flag, layout.flag_name, layout.flag_addr) = (32, 8, 16);
        let mut mem = Bytes::of_words(&[
            (0x1000, &[0x2000, 3]),
            (0x2000, &[1, 0x3000, 0x4000, 9]),
            (0x2020, &[1, 0, 0x4008, 9]),
            (0x2040, &[1, 0x3010, 0x4010, 9]),
            (0x2060, &[1, 0x3020, 0x4018, 9]),
        ]);
        mem.add(0x3000, b"UseZGC\0");
        mem.add(0x3010, b"ZGenerational\0");
        mem.add(0x3020, b"Behind\0");
        mem.add(0x4000, &[zgc]);
        mem.add(0x4010, &[generational]);
        (mem, layout)
    }

    #[test]
    fn flags_are_found_by_their_names() {
        let (mem, mut layout) = memory(1, 0);
        assert_eq!(address(&mem, &layout, "UseZGC"), Ok(Some(0x4000)));
        assert_eq!(address(&mem, &layout, "ZGenerational"), Ok(Some(0x4010)));
        assert_eq!(address(&mem, &layout, "UseZ"), Ok(None));
        assert_eq!(
            address(&mem, &layout, "Behind"),
            Ok(None),
            "three are counted"
        );
        assert_eq!(boolean(&mem, &layout, "UseZGC"), Ok(Some(true)));
        assert_eq!(boolean(&mem, &layout, "ZGenerational"), Ok(Some(false)));
        assert_eq!(boolean(&mem, &layout, "Other"), Ok(None));
        assert!(boolean(&Bytes::default(), &layout, "UseZGC").is_err());
        layout.sizeof_flag = super::super::layout::ABSENT;
        assert_eq!(address(&mem, &layout, "UseZGC"), Ok(None));
        layout.sizeof_flag = 32;
        layout.flags_table = super::super::layout::ABSENT;
        assert_eq!(address(&mem, &layout, "UseZGC"), Ok(None));
    }

    #[test]
    fn running_zgc_known_by_two_flags_and_a_field() {
        for (zgc, generational, has_field, colored, views) in [
            (1, 1, true, true, false),
            (1, 0, true, false, true),
            (0, 1, true, false, false),
            (1, 1, false, false, true),
            (0, 0, false, false, false),
        ] {
            let (mem, mut layout) = memory(zgc, generational);
            if has_field {
                layout.z_load_good = 0x5000;
            }
            let what = (zgc, generational, has_field);
            assert_eq!(has_colored_references(&mem, &layout), colored, "{what:?}");
            assert_eq!(has_views(&mem, &layout), views, "{what:?}");
        }
    }
}
