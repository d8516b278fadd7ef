//! x86-64: the registers of stopped and of sampled threads.

use dwell_walker::Regs;

/// Registers in a sample, in the order of their numbers (asm/perf_regs.h).
pub const PERF_REGISTERS: [u32; 8] = [
    0,  // ax
    1,  // bx
    2,  // cx
    3,  // dx
    6,  // bp
    7,  // sp
    8,  // ip
    21, // r13
];

/// The registers [`PERF_REGISTERS`] of a sample.
pub fn of_sample([rax, rbx, rcx, rdx, fp, sp, pc, r13]: [u64; PERF_REGISTERS.len()]) -> Regs {
    Regs {
        pc,
        sp,
        fp,
        rax,
        rbx,
        rcx,
        rdx,
        r13,
    }
}

/// The registers of a stopped thread.
pub fn of_stopped(regs: &libc::user_regs_struct) -> Regs {
    Regs {
        pc: regs.rip,
        sp: regs.rsp,
        fp: regs.rbp,
        rax: regs.rax,
        rbx: regs.rbx,
        rcx: regs.rcx,
        rdx: regs.rdx,
        r13: regs.r13,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_has_registers_by_number() {
        let regs = of_sample(PERF_REGISTERS.map(u64::from));
        assert_eq!([regs.rax, regs.rbx, regs.rcx, regs.rdx], [0, 1, 2, 3]);
        assert_eq!([regs.fp, regs.sp, regs.pc, regs.r13], [6, 7, 8, 21]);
    }
}
