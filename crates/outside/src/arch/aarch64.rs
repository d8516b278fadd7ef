//! aarch64: the registers of stopped and of sampled threads.

use dwell_walker::Regs;

/// Registers in a sample, in the order of their numbers (asm/perf_regs.h): x12, x13, x19, x20, x22,
/// x29, x30, sp, pc.
pub const PERF_REGISTERS: [u32; 9] = [12, 13, 19, 20, 22, 29, 30, 31, 32];

/// The registers [`PERF_REGISTERS`] of a sample.
pub fn of_sample([x12, x13, x19, x20, x22, fp, lr, sp, pc]: [u64; PERF_REGISTERS.len()]) -> Regs {
    Regs {
        pc,
        sp,
        fp,
        lr,
        x12,
        x13,
        x19,
        x20,
        x22,
    }
}

/// The registers of a stopped thread.
pub fn of_stopped(regs: &libc::user_regs_struct) -> Regs {
    let x = &regs.regs;
    Regs {
        pc: regs.pc,
        sp: regs.sp,
        fp: x[29],
        lr: x[30],
        x12: x[12],
        x13: x[13],
        x19: x[19],
        x20: x[20],
        x22: x[22],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_has_registers_by_number() {
        let regs = of_sample(PERF_REGISTERS.map(u64::from));
        assert_eq!([regs.x12, regs.x13, regs.x19], [12, 13, 19]);
        assert_eq!([regs.x20, regs.x22], [20, 22]);
        assert_eq!([regs.fp, regs.lr, regs.sp, regs.pc], [29, 30, 31, 32]);
    }
}
