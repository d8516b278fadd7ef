//! The registers at the start of a walk. Unwinding by rules needs only three of them:
//! [`NativeRegs`](crate::native::NativeRegs).

/// The registers of an interrupted thread that the walk uses (x86-64).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Regs {
    /// rip.
    pub pc: u64,
    /// rsp.
    pub sp: u64,
    /// rbp.
    pub fp: u64,
    /// rax: a return address in some method entries.
    pub rax: u64,
    /// rbx: the callee's `Method*` in method entries.
    pub rbx: u64,
    /// rcx: an exception handler's address at the end of C1's exception stub.
    pub rcx: u64,
    /// rdx: the return address at the end of C2's rethrow stub.
    pub rdx: u64,
    /// r13: the interpreter's bytecode pointer; in method entries the caller's sp.
    pub r13: u64,
}
