//! Whether a sample was taken in the kernel, if the kernel has not recorded the place.
//!
//! A timer's signal that comes in the kernel's tick reaches its thread on its way back to user
//! mode. The pc is right behind the instruction that has made the system call, or at it, if the
//! call is restarted. So CPU time in the kernel is recorded as such with timers, too. Page faults
//! and interrupts are not seen.

use dwell_signal::slots::{Reason, SlotHeader};
use dwell_signal::{Live, SYSTEM_CALL};
use dwell_walker::Memory;

/// Whether the thread of the snapshot was in a system call, without kernel frames.
pub fn is_unseen(live: Live, header: &SlotHeader) -> bool {
    // Only a thread's own clock interrupts it in the middle of its work.
    let is_by_clock = header.reason == Reason::CpuTime && header.points > 0;
    is_by_clock && header.kernel_unseen && has_called(live, header.regs.pc())
}

fn has_called(live: Live, pc: u64) -> bool {
    const LEN: usize = SYSTEM_CALL.len();
    let mut code = [0; 2 * LEN];
    let begin = pc.wrapping_sub(LEN as u64);
    if live.read(begin, &mut code).is_err() {
        return false;
    }
    let (before, at) = code.split_at(LEN);
    before == SYSTEM_CALL || at == SYSTEM_CALL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pc_at_or_behind_syscall_is_in_kernel() {
        const LEN: usize = SYSTEM_CALL.len();
        let mut code = [0x90u8; 4 * LEN];
        code[LEN..2 * LEN].copy_from_slice(&SYSTEM_CALL);
        let live = Live::install().unwrap();
        let call = code[LEN..].as_ptr() as u64;
        let len = LEN as u64;
        assert!(has_called(live, call + len), "behind it");
        assert!(has_called(live, call), "it is made again");
        assert!(!has_called(live, call + 1) && !has_called(live, call + 2 * len));
        assert!(!has_called(live, 8), "nothing can be read there");
    }
}
