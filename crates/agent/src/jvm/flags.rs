//! The JVM's flags, read from (and, for one flag, written to) its own table
//! (src/hotspot/share/runtime/flags/jvmFlag.hpp).

use dwell_walker::hotspot::layout::{Layout, present};
use dwell_walker::hotspot::names;
use dwell_walker::{Fault, Memory};

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

/// Makes the compilers record debug information between safepoints from now on, so that the
/// innermost frame of code compiled later is exact. Costs about a tenth of the code cache's size.
pub fn enable_debug_non_safepoints<M: Memory>(mem: &M, layout: &Layout) {
    if let Ok(Some(at)) = address(mem, layout, "DebugNonSafepoints")
        && mem.u8(at) == Ok(0)
    {
        // SAFETY: the VM's own table says that a `bool` flag lives at this address, in libjvm's
        // writable data, for as long as libjvm is loaded; it was just read as 0. The compilers only
        // read the flag, and a byte store cannot tear.
        unsafe { std::sync::atomic::AtomicU8::from_ptr(at as *mut u8) }
            .store(1, std::sync::atomic::Ordering::Relaxed);
    }
}
