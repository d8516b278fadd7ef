//! Writes to a flag of the JVM, the only one that the agent sets.

use dwell_walker::Memory;
use dwell_walker::hotspot::flags;
use dwell_walker::hotspot::layout::Layout;

/// Makes the compilers record debug information between safepoints from now on, so that the
/// innermost frame of code compiled later is exact. Costs about a tenth of the code cache's size.
pub fn enable_debug_non_safepoints<M: Memory>(mem: &M, layout: &Layout) {
    if let Ok(Some(at)) = flags::address(mem, layout, "DebugNonSafepoints")
        && mem.u8(at) == Ok(0)
    {
        // SAFETY: the VM's own table says that a `bool` flag lives at this address, in libjvm's
        // writable data, for as long as libjvm is loaded; it was just read as 0. The compilers only
        // read the flag, and a byte store cannot tear.
        unsafe { std::sync::atomic::AtomicU8::from_ptr(at as *mut u8) }
            .store(1, std::sync::atomic::Ordering::Relaxed);
    }
}
