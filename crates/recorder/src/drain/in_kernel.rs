//! Whether a sample was taken in the kernel, if the kernel has not recorded the place.
//!
//! A timer's signal that comes in the kernel's tick reaches its thread on its way back to user
//! mode. The pc is right behind the instruction that has made the system call, or at it, if the
//! call is restarted. So CPU time in the kernel is recorded as such with timers, too. Page faults
//! and interrupts are not seen.

use dwell_signal::Live;
use dwell_signal::slots::{Reason, SlotHeader};
use dwell_walker::Memory;

/// `syscall` of x86-64, read as a number.
const SYSCALL: u16 = 0x050f;

/// Whether the thread of the snapshot was in a system call, without kernel frames.
pub fn is_unseen(live: Live, header: &SlotHeader) -> bool {
    // Only a thread's own clock interrupts it in the middle of its work.
    let is_by_clock = header.reason == Reason::CpuTime && header.points > 0;
    is_by_clock && header.kernel_unseen && has_called(live, header.regs.rip)
}

fn has_called(live: Live, rip: u64) -> bool {
    // Both of them, behind and at it.
    let code = live.u32(rip.wrapping_sub(2)).unwrap_or(0);
    is_system_call(code as u16) || is_system_call((code >> 16) as u16)
}

fn is_system_call(code: u16) -> bool {
    code == SYSCALL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pc_at_or_behind_syscall_is_in_kernel() {
        // nop; syscall; cmp rax, ..., as the C library has it.
        let code = [0x90u8, 0x0f, 0x05, 0x48, 0x3d, 0x00, 0xf0, 0xff, 0xff];
        let live = Live::install().unwrap();
        let at = code.as_ptr() as u64;
        assert!(has_called(live, at + 3), "behind it");
        assert!(has_called(live, at + 1), "it is made again");
        assert!(!has_called(live, at + 2) && !has_called(live, at + 4));
        assert!(!has_called(live, 8), "nothing can be read there");
    }
}
