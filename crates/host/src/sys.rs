//! The boundary to the OS: every `unsafe` block of this crate.

/// Words of a processor mask. Longer masks are not supported.
pub(crate) const MASK_WORDS: usize = 128;

/// The kernel's clock ticks per second, the unit of `/proc/stat`.
pub(crate) fn ticks_a_second() -> u64 {
    // SAFETY: sysconf takes a number and has no other effects.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64
}

/// The mask of processors that the first thread of a process may run on (sched_getaffinity(2)).
pub(crate) fn affinity(pid: u32) -> Option<[u64; MASK_WORDS]> {
    let mut mask = [0u64; MASK_WORDS];
    let pid = libc::pid_t::try_from(pid).ok()?;
    // SAFETY: the mask is as long as is said, and any bits are valid words.
    let answer =
        unsafe { libc::sched_getaffinity(pid, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    (answer == 0).then_some(mask)
}
