//! x86-64: the loads that may fault, raw system calls, the interrupted registers.
//!
//! Must not call anything: everything here runs inside signal handlers.

use core::arch::{asm, global_asm};

// `rep movsb` is one instruction with one pc, and on a fault rcx holds the number of bytes left.
// The landings are where the fault handler continues the interrupted code.
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
    "mov rax, qword ptr [rdi]",
    "mov edx, 1",
    "ret",
    "dwell_load_landing:",
    "xor eax, eax",
    "xor edx, edx",
    "ret",
    ".cfi_endproc",
    ".size dwell_load_u64, . - dwell_load_u64",
    ".p2align 4",
    ".globl dwell_load_thread_pointer",
    ".hidden dwell_load_thread_pointer",
    ".type dwell_load_thread_pointer,@function",
    "dwell_load_thread_pointer:",
    ".cfi_startproc",
    "mov rax, qword ptr fs:[0]",
    "ret",
    ".cfi_endproc",
    ".size dwell_load_thread_pointer, . - dwell_load_thread_pointer",
    ".p2align 4",
    ".globl dwell_copy",
    ".hidden dwell_copy",
    ".type dwell_copy,@function",
    ".globl dwell_copy_at",
    ".hidden dwell_copy_at",
    ".globl dwell_copy_landing",
    ".hidden dwell_copy_landing",
    "dwell_copy:",
    ".cfi_startproc",
    "mov rcx, rdx",
    "dwell_copy_at:",
    "rep movsb",
    "dwell_copy_landing:",
    "mov rax, rcx",
    "ret",
    ".cfi_endproc",
    ".size dwell_copy, . - dwell_copy",
    // The bytes that debuggers and unwinders recognise as the end of a signal frame. The rule says
    // where in the `ucontext` at rsp the kernel saved the register of each DWARF number. A handler
    // returns to the first byte, and unwinders look up a return address one byte earlier. That is
    // why a `nop` precedes it.
    ".macro dwell_saved_at register, offset",
    ".cfi_escape 0x10, \\register, 3, 0x77, (\\offset % 128) + 128, \\offset / 128",
    ".endm",
    ".p2align 4",
    ".globl dwell_restore_rt",
    ".hidden dwell_restore_rt",
    ".type dwell_restore_rt,@function",
    ".cfi_startproc simple",
    ".cfi_signal_frame",
    ".cfi_escape 0x0f, 4, 0x77, 0xa0, 0x01, 0x06", // the CFA is *(rsp + 160), the saved rsp
    "dwell_saved_at 0, 144",
    "dwell_saved_at 1, 136",
    "dwell_saved_at 2, 152",
    "dwell_saved_at 3, 128",
    "dwell_saved_at 4, 112",
    "dwell_saved_at 5, 104",
    "dwell_saved_at 6, 120",
    "dwell_saved_at 7, 160",
    "dwell_saved_at 8, 40",
    "dwell_saved_at 9, 48",
    "dwell_saved_at 10, 56",
    "dwell_saved_at 11, 64",
    "dwell_saved_at 12, 72",
    "dwell_saved_at 13, 80",
    "dwell_saved_at 14, 88",
    "dwell_saved_at 15, 96",
    "dwell_saved_at 16, 168",
    "nop",
    "dwell_restore_rt:",
    ".byte 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00",
    "syscall",
    ".size dwell_restore_rt, . - dwell_restore_rt",
    ".cfi_endproc",
    ".popsection",
);

unsafe extern "C" {
    /// See [`load_u64`].
    fn dwell_load_u64();
    /// See [`thread_pointer`]; its landing is that of [`load_u64`].
    fn dwell_load_thread_pointer();
    /// Copies `len` bytes and returns how many were *not* copied because `src` or `dst` faulted.
    pub fn dwell_copy(dst: *mut u8, src: u64, len: usize) -> usize;
    static dwell_load_landing: u8;
    static dwell_copy_at: u8;
    static dwell_copy_landing: u8;
    fn dwell_restore_rt();
}

/// Loads 8 bytes; `None` if they cannot be read.
///
/// # Safety
/// The fault handler must be installed.
#[inline]
pub unsafe fn load_u64(addr: u64) -> Option<u64> {
    let (value, ok): (u64, u64);
    // SAFETY: the function reads 8 bytes at rdi into rax, says in rdx whether it could, and touches
    // no other state except flags and the word of stack that the call itself uses; a fault goes on
    // at its landing, as the caller promises. A direct call, so that the graph of what handlers
    // reach can be followed.
    unsafe {
        asm!(
            "call {load}",
            load = sym dwell_load_u64,
            in("rdi") addr,
            out("rax") value,
            out("rdx") ok,
        );
    }
    (ok != 0).then_some(value)
}

/// Where code with a fault at `pc` may continue, if `pc` is one of the three loads of this file.
#[inline]
pub fn landing_for(pc: u64) -> Option<u64> {
    let loads = [
        dwell_load_u64 as *const (),
        dwell_load_thread_pointer as *const (),
    ];
    if loads.iter().any(|load| *load as u64 == pc) {
        return Some(&raw const dwell_load_landing as u64);
    }
    if pc == &raw const dwell_copy_at as u64 {
        return Some(&raw const dwell_copy_landing as u64);
    }
    None
}

/// The code that ends a signal frame, for `SA_RESTORER`. Without that flag, this kernel has no code
/// to return to. Kernels of other processors have their own, and the result is `None` there.
pub fn restorer() -> Option<usize> {
    Some(dwell_restore_rt as *const () as usize)
}

/// The general registers of the interrupted code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)] // the field names are the registers' names
pub struct Registers {
    pub rip: u64,
    pub rsp: u64,
    pub rbp: u64,
    pub rax: u64,
    pub rbx: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rflags: u64,
}

impl Registers {
    /// The registers saved in a signal frame.
    #[inline]
    pub fn of(context: &libc::ucontext_t) -> Self {
        let gregs = &context.uc_mcontext.gregs;
        let reg = |index: i32| gregs.get(index as usize).copied().unwrap_or(0) as u64;
        Self {
            rip: reg(libc::REG_RIP),
            rsp: reg(libc::REG_RSP),
            rbp: reg(libc::REG_RBP),
            rax: reg(libc::REG_RAX),
            rbx: reg(libc::REG_RBX),
            rcx: reg(libc::REG_RCX),
            rdx: reg(libc::REG_RDX),
            rsi: reg(libc::REG_RSI),
            rdi: reg(libc::REG_RDI),
            r8: reg(libc::REG_R8),
            r9: reg(libc::REG_R9),
            r10: reg(libc::REG_R10),
            r11: reg(libc::REG_R11),
            r12: reg(libc::REG_R12),
            r13: reg(libc::REG_R13),
            r14: reg(libc::REG_R14),
            r15: reg(libc::REG_R15),
            rflags: reg(libc::REG_EFL),
        }
    }

    /// A register set of which only these are known.
    #[inline]
    pub fn at(pc: u64, sp: u64, fp: u64) -> Self {
        Self {
            rip: pc,
            rsp: sp,
            rbp: fp,
            ..Self::default()
        }
    }

    /// The registers [`PERF_REGISTERS`] of a perf sample.
    pub fn of_perf([rax, rbx, rcx, rdx, rbp, rsp, rip, r13]: [u64; PERF_REGISTERS.len()]) -> Self {
        // In a system call, which saves its return address in rcx. The calling code may end there,
        // as the code that ends a signal frame does.
        let in_call = rcx == rip;
        Self {
            rax,
            rbx,
            rcx,
            rdx,
            r13,
            ..Self::at(rip.wrapping_sub(u64::from(in_call)), rsp, rbp)
        }
    }

    /// The first registers of a walk.
    #[inline]
    pub fn for_walk(&self) -> dwell_walker::Regs {
        dwell_walker::Regs {
            pc: self.rip,
            sp: self.rsp,
            fp: self.rbp,
            rax: self.rax,
            rbx: self.rbx,
            rcx: self.rcx,
            rdx: self.rdx,
            r13: self.r13,
        }
    }

    /// Where the interrupted code was.
    #[inline]
    pub fn pc(&self) -> u64 {
        self.rip
    }

    /// The interrupted code's stack pointer.
    #[inline]
    pub fn sp(&self) -> u64 {
        self.rsp
    }

    /// The interrupted code's frame pointer.
    #[inline]
    pub fn fp(&self) -> u64 {
        self.rbp
    }
}

/// ax, bx, cx, dx, bp, sp, ip, r13 (asm/perf_regs.h): those that a walk needs.
pub const PERF_REGISTERS: [u32; 8] = [0, 1, 2, 3, 6, 7, 8, 21];

/// `syscall`, the instruction that makes a system call.
pub const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];

/// The interrupted pc in a signal frame.
#[inline]
pub fn interrupted_pc(context: &libc::ucontext_t) -> u64 {
    context
        .uc_mcontext
        .gregs
        .get(libc::REG_RIP as usize)
        .copied()
        .unwrap_or(0) as u64
}

/// Continues the interrupted code at `pc`.
#[inline]
pub fn set_interrupted_pc(context: &mut libc::ucontext_t, pc: u64) {
    if let Some(slot) = context.uc_mcontext.gregs.get_mut(libc::REG_RIP as usize) {
        *slot = pc as i64;
    }
}

/// The end of a program's memory, but for memory that it asks for beyond (5-level page tables).
pub const ADDRESSES_END: u64 = 1 << 47;

/// Bytes below the stack pointer that leaf code may use without moving it.
pub const RED_ZONE_BYTES: u64 = 128;

/// The thread pointer. glibc and musl put the thread's control block at the top of the stacks they
/// make. So it bounds the stack of a thread whose bounds are not registered. 0 if the thread has
/// no thread pointer (yet): a thread made by a system call has the one that call was given.
///
/// # Safety
/// The fault handler must be installed.
#[inline]
pub unsafe fn thread_pointer() -> u64 {
    let value: u64;
    // SAFETY: the function reads the word at fs:0, which the x86-64 TLS ABI says is the thread
    // pointer itself, into rax; where that word cannot be read it goes on at the landing of
    // `load_u64`, as the caller promises, which zeroes rax and rdx. It touches no other state
    // except flags and the word of stack that the call itself uses.
    unsafe {
        asm!(
            "call {load}",
            load = sym dwell_load_thread_pointer,
            out("rax") value,
            out("rdx") _,
        );
    }
    value
}

/// Whether [`tls_base`] may be called: from Linux 5.9 on the kernel reports that in a bit of
/// `AT_HWCAP2`.
pub fn may_read_tls_base() -> bool {
    const FSGSBASE: libc::c_ulong = 1 << 1;
    // SAFETY: takes a number; an unknown one gives 0.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & FSGSBASE != 0 }
}

/// Where the running thread's thread-local storage is, without a load.
///
/// # Safety
/// [`may_read_tls_base`] must have said that this may be called.
#[inline]
pub unsafe fn tls_base() -> u64 {
    let value: u64;
    // SAFETY: reads a register that the kernel lets programs read, as the caller promises.
    unsafe { asm!("rdfsbase {}", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// One system call with up to six arguments; negative results are `-errno`. Does not touch `errno`.
///
/// # Safety
/// The arguments must be valid for the call; memory that it writes must be owned by the caller.
#[inline]
pub unsafe fn syscall(number: i64, args: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = args;
    let result: isize;
    // SAFETY: the kernel clobbers rax, rcx and r11 only; all three are declared. What the call does
    // to memory is the caller's promise.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Prefetches the cache line at `address`, which will be read soon. Any address is allowed: a
/// prefetch does not fault (Intel SDM, volume 2, PREFETCHh).
#[inline]
pub fn fetch_ahead(address: usize) {
    // SAFETY: reads and writes nothing that the program can see.
    unsafe {
        asm!(
            "prefetcht0 byte ptr [{}]",
            in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_in_system_call_begins_at_its_call_site() {
        // ax, bx, cx, dx, bp, sp, ip, r13.
        let regs = Registers::of_perf([1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((regs.pc(), regs.sp(), regs.fp()), (7, 6, 5));
        assert_eq!((regs.rax, regs.rcx, regs.r13), (1, 3, 8));
        let walk = regs.for_walk();
        assert_eq!((walk.pc, walk.sp, walk.fp, walk.r13), (7, 6, 5, 8));
        assert_eq!([walk.rax, walk.rbx, walk.rcx, walk.rdx], [1, 2, 3, 4]);
        let regs = Registers::of_perf([1, 2, 7, 4, 5, 6, 7, 8]);
        assert_eq!((regs.rip, regs.rcx), (6, 7));
    }
}
