//! Stubs, adapters and virtual call stubs. A call leaves the return address in x30, and most stubs
//! have no frame, so that it is still there. The others' own code leads to it, see [`way_out`].

use super::{Regs, encoding, ending, linked, return_address, way_out};
use crate::hotspot::codecache::{Blob, BlobKind};
use crate::hotspot::machine::{Caller, Checks, WayOut, is_generated_caller};
use crate::memory::{Fault, Memory};
use crate::native::NativeRegs;

/// Maximum frame size of a stub that has a frame.
const STUB_FRAME_MAX: u64 = 4096;
/// Maximum number of instructions of a static call stub: a barrier, two numbers of three parts, and
/// the jump (compiledIC_aarch64.cpp, `emit_to_interp_stub`).
const STATIC_STUB_MAX: u64 = 8;

/// The caller by the link register, before any of the stub's code has run.
fn leaf(regs: &Regs) -> NativeRegs {
    NativeRegs {
        pc: return_address(regs.lr),
        sp: regs.sp,
        fp: regs.fp,
    }
}

fn certain(caller: NativeRegs) -> Option<Caller> {
    Some(Caller::Certain(caller.into()))
}

/// The caller of an interrupted stub.
///
/// # Errors
/// [`Fault`] if the stack cannot be read. `Ok(None)` if no candidate is a return address.
pub fn interrupted_caller<M: Memory>(
    mem: &M,
    blob: &Blob,
    regs: &Regs,
    checks: &impl Checks,
) -> Result<Option<Caller>, Fault> {
    let caller = leaf(regs);
    match blob.kind {
        BlobKind::Adapter => return Ok(adapter_caller(regs, checks).and_then(certain)),
        // These stubs have no frame anywhere, and only jump.
        BlobKind::Vtable => {
            let found = checks.is_return(caller.pc).then_some(caller);
            return Ok(found.and_then(certain));
        }
        _ => {}
    }
    if regs.pc == blob.code_begin && checks.is_return(caller.pc) {
        return Ok(certain(caller));
    }
    let jumps = blob.kind != BlobKind::Interpreter;
    if let Some(found) = way_out::caller(mem, regs, jumps, checks) {
        return Ok(Some(Caller::Certain(found)));
    }
    // A stub that has called or been called from another one has an address in a stub there.
    if checks.is_method(caller.pc) && is_generated_caller(checks, caller) {
        return Ok(Some(Caller::Likely(caller)));
    }
    let at = NativeRegs {
        pc: regs.pc,
        ..caller
    };
    if let Some(found) = likely_caller(mem, blob, at, checks)? {
        return Ok(Some(found));
    }
    let found = is_generated_caller(checks, caller).then_some(caller);
    Ok(found.map(Caller::Likely))
}

/// Adapters do not touch the link register. The way into the interpreter sets the caller's sp
/// before it makes room for arguments (sharedRuntime_aarch64.cpp, `gen_c2i_adapter`).
fn adapter_caller(regs: &Regs, checks: &impl Checks) -> Option<NativeRegs> {
    let is_near = |sp: &u64| sp & 15 == 0 && sp.wrapping_sub(regs.sp) < STUB_FRAME_MAX;
    let senders = [regs.x19, regs.x13].into_iter().filter(is_near);
    let mut places = senders.chain([regs.sp]);
    let at = |sp| NativeRegs { sp, ..leaf(regs) };
    places.find_map(|sp| Some(at(sp)).filter(|it| is_generated_caller(checks, *it)))
}

/// The caller of a stub that has made a call (`at` is after the call).
///
/// # Errors
/// As for [`interrupted_caller`].
pub fn calling_caller<M: Memory>(
    mem: &M,
    blob: &Blob,
    at: NativeRegs,
    at_anchor: bool,
    checks: &impl Checks,
) -> Result<Option<Caller>, Fault> {
    let framed = framed_caller(mem, blob, at).ok().flatten();
    let framed = framed.filter(|caller| is_generated_caller(checks, *caller));
    let by_size = framed.map(WayOut::from);
    let by_code = || way_out::caller_after_call(mem, at, checks);
    let found = if at_anchor {
        by_size.or_else(by_code)
    } else {
        by_code().or(by_size)
    };
    match found {
        Some(found) => Ok(Some(Caller::Certain(found))),
        None => likely_caller(mem, blob, at, checks),
    }
}

/// The caller by the frame pointer if it points to the frame, or by the usual size of the frame.
fn likely_caller<M: Memory>(
    mem: &M,
    blob: &Blob,
    at: NativeRegs,
    checks: &impl Checks,
) -> Result<Option<Caller>, Fault> {
    let has_fp = at.fp >= at.sp && at.fp & 15 == 0 && at.fp.wrapping_sub(at.sp) <= STUB_FRAME_MAX;
    let linked = if has_fp {
        Some(linked(mem, at.fp)?)
    } else {
        None
    };
    let mut candidates = linked.into_iter().chain(framed_caller(mem, blob, at)?);
    let found = candidates.find(|caller| is_generated_caller(checks, *caller));
    Ok(found.map(Caller::Likely))
}

fn framed_caller<M: Memory>(
    mem: &M,
    blob: &Blob,
    at: NativeRegs,
) -> Result<Option<NativeRegs>, Fault> {
    if blob.frame_bytes == 0 {
        return Ok(None);
    }
    ending(mem, at.sp.wrapping_add(blob.frame_bytes)).map(Some)
}

/// The caller of a static call stub in `blob`: numbers are moved to x12 and x8, and `br x8` jumps.
#[must_use]
pub fn static_call_caller<M: Memory>(mem: &M, blob: &Blob, regs: &Regs) -> Option<NativeRegs> {
    const JUMP: u32 = 0xd61f_0100;
    const BARRIER: u32 = 0xd503_3fdf;
    let caller = leaf(regs);
    let is_called = (blob.code_begin..regs.pc).contains(&caller.pc)
        && encoding::is_call(encoding::at(mem, caller.pc.wrapping_sub(encoding::BYTES)).ok()?);
    if !is_called {
        return None;
    }
    let mut moves_method = false;
    for i in 0..STATIC_STUB_MAX {
        let next = encoding::at(mem, regs.pc.wrapping_add(i * encoding::BYTES)).ok()?;
        match encoding::moves_number(next) {
            Some(12) => moves_method = true,
            Some(8) => {}
            None if next == JUMP => {
                let before = encoding::at(mem, regs.pc.wrapping_sub(encoding::BYTES)).ok()?;
                let is_between = encoding::moves_number(before).is_some();
                return (moves_method || is_between).then_some(caller);
            }
            None if next == BARRIER && i == 0 => {}
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::test_memory::Bytes;
    extern crate std;
    use std::vec::Vec;

    const CODE: u64 = 0x1000;
    const STACK: u64 = 0x7f00_0000_0000;
    const CALLER: u64 = 0x1004;

    struct Callers(u64);

    impl Checks for Callers {
        fn is_code(&self, _: u64) -> bool {
            true
        }

        fn is_return(&self, pc: u64) -> bool {
            pc == CALLER
        }

        fn is_method(&self, pc: u64) -> bool {
            self.is_return(pc)
        }

        fn is_caller(&self, caller: NativeRegs) -> bool {
            caller.pc == CALLER && (self.0 == 0 || caller.sp == self.0)
        }
    }

    fn memory(codes: &[u32]) -> Bytes {
        let bytes: Vec<u8> = codes.iter().flat_map(|code| code.to_le_bytes()).collect();
        let mut mem = Bytes::at(CODE, &bytes);
        mem.add_words(STACK, &[1, 2, 3, 4, 9, CALLER, 7, 8]);
        mem
    }

    const fn blob(kind: BlobKind, code_begin: u64, frame_bytes: u64) -> Blob {
        Blob {
            addr: 0,
            kind,
            code_begin,
            frame_bytes,
        }
    }

    fn regs() -> Regs {
        Regs {
            pc: CODE + 8,
            sp: STACK,
            fp: 7,
            lr: CALLER,
            ..Regs::default()
        }
    }

    fn found(caller: Result<Option<Caller>, Fault>) -> Option<(bool, u64, u64)> {
        match caller.unwrap()? {
            Caller::Certain(out) => Some((true, out.caller.sp, out.caller.fp)),
            Caller::Likely(caller) => Some((false, caller.sp, caller.fp)),
        }
    }

    #[test]
    fn adapter_has_the_callers_sp_in_a_register() {
        let (mem, adapter) = (memory(&[0; 8]), blob(BlobKind::Adapter, CODE, 0));
        let of = |sp, x19, x13| {
            let regs = Regs { x19, x13, ..regs() };
            found(interrupted_caller(&mem, &adapter, &regs, &Callers(sp)))
        };
        let expected = |sp| Some((true, sp, 7));
        assert_eq!(of(STACK, 1, 2), expected(STACK));
        assert_eq!(of(STACK + 64, STACK + 64, 2), expected(STACK + 64));
        assert_eq!(of(STACK + 64, 1, STACK + 64), expected(STACK + 64));
        assert_eq!(of(STACK + 64, 1, STACK - 64), None, "below sp");
    }

    #[test]
    fn stub_without_frame_returns_to_its_link_register() {
        let mem = memory(&[0x8b01_0000, 0x9400_0000, 0x8b01_0000, 0xd65f_03c0]);
        let stub = blob(BlobKind::Stub, CODE + 8, 0);
        let of = |regs: &Regs| found(interrupted_caller(&mem, &stub, regs, &Callers(0)));
        assert_eq!(of(&regs()), Some((true, STACK, 7)));
        let later = Regs {
            pc: CODE + 12,
            ..regs()
        };
        assert_eq!(of(&later), Some((true, STACK, 7)));
        let other = Regs { lr: 3, ..later };
        assert_eq!(of(&other), None);
    }

    #[test]
    fn stub_with_frame_is_left_by_code_or_size() {
        // ldp x29, x30, [sp, 32]; add sp, sp, 48; ret; then code that cannot be followed.
        let mem = memory(&[0, 0, 0xa942_7bfd, 0x9100_c3ff, 0xd65f_03c0, 0, 0, 0]);
        let stub = blob(BlobKind::Stub, CODE, 48);
        let of = |pc, fp, at_anchor| {
            let at = NativeRegs { pc, sp: STACK, fp };
            found(calling_caller(&mem, &stub, at, at_anchor, &Callers(0)))
        };
        assert_eq!(of(CODE + 8, 7, false), Some((true, STACK + 48, 9)));
        assert_eq!(of(CODE + 8, 7, true), Some((true, STACK + 48, 9)));
        assert_eq!(of(CODE + 20, 7, false), Some((true, STACK + 48, 9)));
        let unknown = blob(BlobKind::Stub, CODE, 0);
        let at = NativeRegs {
            pc: CODE + 20,
            sp: STACK,
            fp: STACK + 32,
        };
        let likely = found(calling_caller(&mem, &unknown, at, false, &Callers(0)));
        assert_eq!(likely, Some((false, STACK + 48, 9)), "by the frame pointer");
    }

    #[test]
    fn static_call_stub_has_the_caller_in_its_link_register() {
        // bl; nop; isb; mov x12, ..; mov x8, ..; br x8
        let codes = [
            0x9400_0002,
            0xd503_201f,
            0xd503_3fdf,
            0xd282_000c,
            0xf2a2_000c,
            0xf2c2_000c,
            0xd282_0008,
            0xf2a2_0008,
            0xf2c2_0008,
            0xd61f_0100,
        ];
        let mem = memory(&codes);
        let method = blob(BlobKind::Nmethod, CODE, 32);
        let at = |index: u64, lr| {
            let regs = Regs {
                pc: CODE + 4 * index,
                lr,
                ..regs()
            };
            static_call_caller(&mem, &method, &regs).map(|it| (it.pc, it.sp))
        };
        for index in 2..=9 {
            assert_eq!(at(index, CALLER), Some((CALLER, STACK)), "{index}");
        }
        assert_eq!(at(1, CALLER), None, "before it");
        assert_eq!(at(4, CALLER + 4), None, "no call");
    }
}
