//! The JVM's flags, read from its own table (src/hotspot/share/runtime/flags/jvmFlag.hpp).

use super::layout::{Layout, present};
use super::names;
use crate::memory::{Fault, Memory};

/// Flags looked through at most; JDK 25 has about 1500.
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

/// Whether the ZGC before generations runs: up to 20, and in 21 to 23 without `ZGenerational`.
#[must_use]
pub fn has_views<M: Memory>(mem: &M, layout: &Layout) -> bool {
    let uses_zgc = boolean(mem, layout, "UseZGC").ok().flatten() == Some(true);
    uses_zgc && !has_colored_references(mem, layout)
}
