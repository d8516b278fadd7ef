//! The registers of a walk, by machine.

use dwell_walker::machine::{Aarch64, Machine as _, X86_64, aarch64, x86_64};
use dwell_walker::native::NativeRegs;

/// The registers of an interrupted thread, on one of the machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registers {
    /// x86-64.
    X86_64(x86_64::Regs),
    /// aarch64.
    Aarch64(aarch64::Regs),
}

impl From<x86_64::Regs> for Registers {
    fn from(regs: x86_64::Regs) -> Registers {
        Registers::X86_64(regs)
    }
}

impl From<aarch64::Regs> for Registers {
    fn from(regs: aarch64::Regs) -> Registers {
        Registers::Aarch64(regs)
    }
}

const NAME_X86_64: &str = "x86-64";
const NAME_AARCH64: &str = "aarch64";

impl Registers {
    /// The registers of the machine with this name, all 0.
    #[must_use]
    pub fn of_machine(name: &str) -> Option<Registers> {
        match name {
            NAME_X86_64 => Some(x86_64::Regs::default().into()),
            NAME_AARCH64 => Some(aarch64::Regs::default().into()),
            _ => None,
        }
    }

    /// Name of the machine.
    #[must_use]
    pub const fn machine(&self) -> &'static str {
        match self {
            Registers::X86_64(_) => NAME_X86_64,
            Registers::Aarch64(_) => NAME_AARCH64,
        }
    }

    /// pc, sp and frame pointer.
    #[must_use]
    pub fn start(&self) -> NativeRegs {
        match self {
            Registers::X86_64(regs) => X86_64.start(regs),
            Registers::Aarch64(regs) => Aarch64.start(regs),
        }
    }

    /// The registers in the order of the file.
    pub(crate) fn values(&self) -> Vec<u64> {
        match self {
            Registers::X86_64(r) => {
                vec![r.pc, r.sp, r.fp, r.rax, r.rbx, r.r13, r.rcx, r.rdx]
            }
            Registers::Aarch64(r) => {
                vec![r.pc, r.sp, r.fp, r.lr, r.x12, r.x13, r.x19, r.x20, r.x22]
            }
        }
    }

    /// Replaces all registers; files of older versions have no rcx and rdx.
    pub(crate) fn set(&mut self, values: &[u64]) -> bool {
        match (self, values) {
            (Registers::X86_64(regs), [pc, sp, fp, rax, rbx, r13, rest @ ..]) => {
                let (rcx, rdx) = match rest {
                    [] => (0, 0),
                    [rcx, rdx] => (*rcx, *rdx),
                    _ => return false,
                };
                *regs = x86_64::Regs {
                    pc: *pc,
                    sp: *sp,
                    fp: *fp,
                    rax: *rax,
                    rbx: *rbx,
                    rcx,
                    rdx,
                    r13: *r13,
                };
            }
            (Registers::Aarch64(regs), [pc, sp, fp, lr, x12, x13, x19, x20, x22]) => {
                *regs = aarch64::Regs {
                    pc: *pc,
                    sp: *sp,
                    fp: *fp,
                    lr: *lr,
                    x12: *x12,
                    x13: *x13,
                    x19: *x19,
                    x20: *x20,
                    x22: *x22,
                };
            }
            _ => return false,
        }
        true
    }
}
