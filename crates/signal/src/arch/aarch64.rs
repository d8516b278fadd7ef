//! aarch64: the loads that may fault, raw system calls, the interrupted registers.
//!
//! Must not call anything: everything here runs inside signal handlers. The kernel has its own code
//! to return from a handler (in its vDSO).

use core::arch::{asm, global_asm};

// The copy moves 32 bytes at a time. A fault there continues with single bytes, so that the copy
// ends at the first byte that cannot be read or written. x2 holds the number of bytes left. The
// pointers and x2 only change after a piece has been stored.
global_asm!(
    ".pushsection .text.dwell_load,\"ax\",@progbits",
    ".p2align 4",
    ".globl dwell_load_u64",
    ".hidden dwell_load_u64",
    ".type dwell_load_u64,@function",
    ".globl dwell_load_landing",
    ".hidden dwell_load_landing",
    "dwell_load_u64:",
    ".cfi_startproc",
    "ldr x0, [x0]",
    "mov x1, #1",
    "ret",
    "dwell_load_landing:",
    "mov x0, #0",
    "mov x1, #0",
    "ret",
    ".cfi_endproc",
    ".size dwell_load_u64, . - dwell_load_u64",
    ".p2align 4",
    ".globl dwell_copy",
    ".hidden dwell_copy",
    ".type dwell_copy,@function",
    ".globl dwell_copy_bytes",
    ".hidden dwell_copy_bytes",
    ".globl dwell_copy_landing",
    ".hidden dwell_copy_landing",
    "dwell_copy:",
    ".cfi_startproc",
    "cmp x2, #32",
    "b.lo dwell_copy_bytes",
    "1:",
    "ldp x3, x4, [x1]",
    "ldp x5, x6, [x1, #16]",
    "stp x3, x4, [x0]",
    "stp x5, x6, [x0, #16]",
    "add x1, x1, #32",
    "add x0, x0, #32",
    "sub x2, x2, #32",
    "cmp x2, #32",
    "b.hs 1b",
    "dwell_copy_bytes:",
    "cbz x2, dwell_copy_landing",
    "2:",
    "ldrb w3, [x1]",
    "strb w3, [x0]",
    "add x1, x1, #1",
    "add x0, x0, #1",
    "subs x2, x2, #1",
    "b.ne 2b",
    "dwell_copy_landing:",
    "mov x0, x2",
    "ret",
    ".cfi_endproc",
    ".size dwell_copy, . - dwell_copy",
    ".popsection",
);

unsafe extern "C" {
    /// See [`load_u64`].
    fn dwell_load_u64();
    /// Copies `len` bytes and returns how many were *not* copied because `src` or `dst` faulted.
    pub fn dwell_copy(dst: *mut u8, src: u64, len: usize) -> usize;
    static dwell_load_landing: u8;
    static dwell_copy_bytes: u8;
    static dwell_copy_landing: u8;
}

/// Loads 8 bytes; `None` if they cannot be read.
///
/// # Safety
/// The fault handler must be installed.
#[inline]
pub unsafe fn load_u64(addr: u64) -> Option<u64> {
    let (value, ok): (u64, u64);
    // SAFETY: the function reads 8 bytes at x0 into x0, says in x1 whether it could, and touches no
    // other state than x30, in which the call leaves its return address; a fault goes on at its
    // landing, as the caller promises.
    unsafe {
        asm!(
            "bl {load}",
            load = sym dwell_load_u64,
            inlateout("x0") addr => value,
            lateout("x1") ok,
            lateout("x30") _,
            options(nostack, preserves_flags),
        );
    }
    (ok != 0).then_some(value)
}

/// Where code with a fault at `pc` may continue, if `pc` is in one of the loads of this file.
#[inline]
pub fn landing_for(pc: u64) -> Option<u64> {
    if pc == dwell_load_u64 as *const () as u64 {
        return Some(&raw const dwell_load_landing as u64);
    }
    let begin = dwell_copy as *const () as u64;
    let bytes = &raw const dwell_copy_bytes as u64;
    let landing = &raw const dwell_copy_landing as u64;
    if pc >= begin && pc < bytes {
        return Some(bytes);
    }
    (pc >= bytes && pc < landing).then_some(landing)
}

/// The code that ends a signal frame, for `SA_RESTORER`: none, as this kernel has its own.
pub fn restorer() -> Option<usize> {
    None
}

/// The general registers of the interrupted code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Registers {
    /// x0 to x30.
    pub x: [u64; 31],
    /// The stack pointer.
    pub sp: u64,
    /// The interrupted instruction.
    pub pc: u64,
}

/// Number of x29, the frame pointer.
const FP: usize = 29;

impl Registers {
    /// The registers saved in a signal frame.
    #[inline]
    pub fn of(context: &libc::ucontext_t) -> Self {
        let saved = &context.uc_mcontext;
        Self {
            x: saved.regs,
            sp: saved.sp,
            pc: saved.pc,
        }
    }

    /// A register set of which only these are known.
    #[inline]
    pub fn at(pc: u64, sp: u64, fp: u64) -> Self {
        let mut x = [0; 31];
        x[FP] = fp;
        Self { x, sp, pc }
    }

    /// The registers [`PERF_REGISTERS`] of a perf sample.
    pub fn of_perf([x12, x13, x19, x20, x22, fp, lr, sp, pc]: [u64; PERF_REGISTERS.len()]) -> Self {
        let mut regs = Self::at(pc, sp, fp);
        regs.x[12] = x12;
        regs.x[13] = x13;
        regs.x[19] = x19;
        regs.x[20] = x20;
        regs.x[22] = x22;
        regs.x[30] = lr;
        regs
    }

    /// The first registers of a walk.
    #[inline]
    pub fn for_walk(&self) -> dwell_walker::Regs {
        let x = &self.x;
        dwell_walker::Regs {
            pc: self.pc,
            sp: self.sp,
            fp: x[FP],
            lr: x[30],
            x12: x[12],
            x13: x[13],
            x19: x[19],
            x20: x[20],
            x22: x[22],
        }
    }

    /// Where the interrupted code was.
    #[inline]
    pub fn pc(&self) -> u64 {
        self.pc
    }

    /// The interrupted code's stack pointer.
    #[inline]
    pub fn sp(&self) -> u64 {
        self.sp
    }

    /// The interrupted code's frame pointer.
    #[inline]
    pub fn fp(&self) -> u64 {
        self.x[FP]
    }
}

/// x12, x13, x19, x20, x22, x29, x30, sp, pc (asm/perf_regs.h): those that a walk needs.
pub const PERF_REGISTERS: [u32; 9] = [12, 13, 19, 20, 22, 29, 30, 31, 32];

/// `svc #0`, the instruction that makes a system call.
pub const SYSTEM_CALL: [u8; 4] = [0x01, 0x00, 0x00, 0xd4];

/// The interrupted pc in a signal frame.
#[inline]
pub fn interrupted_pc(context: &libc::ucontext_t) -> u64 {
    context.uc_mcontext.pc
}

/// Continues the interrupted code at `pc`.
#[inline]
pub fn set_interrupted_pc(context: &mut libc::ucontext_t, pc: u64) {
    context.uc_mcontext.pc = pc;
}

/// The end of a program's memory, but for memory that it asks for beyond (addresses of 52 bits).
/// The kernel maps libraries and stacks just below.
pub const ADDRESSES_END: u64 = 1 << 48;

/// Bytes below the stack pointer that leaf code may use without moving it (AAPCS64, 6.4.5.1: none).
pub const RED_ZONE_BYTES: u64 = 0;

/// The thread pointer. glibc and musl put the thread's control block at the top of the stacks they
/// make, just below this address. So it bounds the stack of a thread whose bounds are not
/// registered. 0 if the thread has no thread pointer (yet).
///
/// # Safety
/// None: a register is read. The function is unsafe as on processors where it is a load.
#[inline]
pub unsafe fn thread_pointer() -> u64 {
    let value: u64;
    // SAFETY: reads a register that programs may read.
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// Whether [`tls_base`] may be called: always.
pub fn may_read_tls_base() -> bool {
    true
}

/// Where the running thread's thread-local storage is, without a load.
///
/// # Safety
/// As for [`thread_pointer`].
#[inline]
pub unsafe fn tls_base() -> u64 {
    // SAFETY: the caller's promise.
    unsafe { thread_pointer() }
}

/// One system call with up to six arguments; negative results are `-errno`. Does not touch `errno`.
///
/// # Safety
/// The arguments must be valid for the call; memory that it writes must be owned by the caller.
#[inline]
pub unsafe fn syscall(number: i64, args: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = args;
    let result: isize;
    // SAFETY: the kernel changes x0 only. What the call does to memory is the caller's promise.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    result
}

/// Prefetches the cache line at `address`, which will be read soon. Any address is allowed: a
/// prefetch does not fault (Arm ARM, PRFM).
#[inline]
pub fn fetch_ahead(address: usize) {
    // SAFETY: reads and writes nothing that the program can see.
    unsafe {
        asm!(
            "prfm pldl1keep, [{}]",
            in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_sample_has_registers_by_number() {
        let regs = Registers::of_perf(PERF_REGISTERS.map(u64::from));
        assert_eq!((regs.pc(), regs.sp(), regs.fp()), (32, 31, 29));
        let walk = regs.for_walk();
        assert_eq!((walk.pc, walk.sp, walk.fp, walk.lr), (32, 31, 29, 30));
        let others = [walk.x12, walk.x13, walk.x19, walk.x20, walk.x22];
        assert_eq!(others, [12, 13, 19, 20, 22]);
    }

    #[test]
    fn faults_in_copy_continue_bytewise_and_then_end() {
        let bytes = &raw const dwell_copy_bytes as u64;
        let landing = &raw const dwell_copy_landing as u64;
        let begin = dwell_copy as *const () as u64;
        assert_eq!(landing_for(begin + 8), Some(bytes));
        assert_eq!(landing_for(bytes + 4), Some(landing));
        assert_eq!(landing_for(landing), None);
        assert_eq!(landing_for(begin - 4), None);
    }
}
