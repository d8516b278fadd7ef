//! Room on a thread's alternate signal stack. A thread that has one gets our handler there, and a
//! load that faults adds a second signal frame. If that does not fit, the kernel ends the process.
//! Rust's threads have 8 KiB, and a frame with the state of AVX-512 takes 3.3 KiB.
//!
//! Async-signal-safe but for [`needed`].

/// Maximum plausible size of a stack of which only the beginning is known.
pub(crate) const GUESSED_STACK_MAX_BYTES: u64 = 8 << 20;
/// Stack used by the handler and a walk, with a reserve: 4 KiB were measured.
const OWN_BYTES: u64 = if cfg!(debug_assertions) {
    24 << 10
} else {
    5 << 10
};
/// A signal frame if the kernel does not report its size.
const FRAME_BYTES: u64 = 4 << 10;

/// How much room a handler needs below its own signal frame.
pub(crate) fn needed() -> u64 {
    // SAFETY: reads the process's auxiliary vector; 0 if there is no such entry.
    let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) };
    let frame = if frame == 0 { FRAME_BYTES } else { frame };
    frame.wrapping_add(OWN_BYTES)
}

/// Whether a handler with `frame` is on an alternate stack with less room than `needed`.
#[inline]
pub(crate) fn is_short(frame: &libc::ucontext_t, needed: u64) -> bool {
    let stack = &frame.uc_stack;
    let at = core::ptr::from_ref(frame) as u64;
    let (lo, bytes) = (stack.ss_sp as u64, stack.ss_size as u64);
    let below = at.wrapping_sub(lo);
    stack.ss_flags & libc::SS_DISABLE == 0 && below < bytes && below < needed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_counts_only_on_the_alternate_stack() {
        // SAFETY: all zeroes is a valid ucontext_t.
        let mut frame: libc::ucontext_t = unsafe { std::mem::zeroed() };
        let at = core::ptr::from_ref(&frame) as usize;
        let mut with = |below: usize, bytes: usize, flags: i32| {
            frame.uc_stack = libc::stack_t {
                ss_sp: (at - below) as *mut libc::c_void,
                ss_flags: flags,
                ss_size: bytes,
            };
            is_short(&frame, 6000)
        };
        assert!(with(5000, 8192, 0));
        assert!(!with(6000, 8192, 0), "room enough");
        assert!(!with(5000, 4096, 0), "on another stack");
        assert!(!with(5000, 8192, libc::SS_DISABLE), "there is none");
        assert!(needed() > OWN_BYTES);
        // A page of our own, and a frame with the state of AVX-512.
        let least = [OWN_BYTES, FRAME_BYTES].map(|bytes| bytes >> 10);
        assert!(least.iter().all(|kib| *kib >= 4), "{least:?}");
    }
}
