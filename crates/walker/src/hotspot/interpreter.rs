//! Interpreter frames: slots relative to the frame pointer. Those of the caller's sp, of the last
//! sp and of the method are the same on x86-64 and aarch64 (frame_x86.hpp, frame_aarch64.hpp).

use super::codecache::CodeCache;
use super::layout::Layout;
use super::method;
use crate::hotspot::machine::Machine;
use crate::memory::{Fault, Memory};
use crate::native::NativeRegs;

/// Slot of the caller's sp before it was extended for locals.
pub(crate) const SENDER_SP: u64 = 8;
/// Slot of the sp during a call; 0 while the frame does not call.
pub(crate) const LAST_SP: u64 = 16;
/// An adapter moves the return address by at most this.
const MOVED_WORDS_MAX: u64 = 256;
/// Slot of the `Method*`.
pub(crate) const METHOD: u64 = 24;
/// The contents of an interpreter frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interpreted {
    /// The `Method*`; 0 if it can no longer be read.
    pub method: u64,
    /// Bytecode index, -1 if unknown.
    pub bci: i32,
    /// The caller's pc.
    pub caller_pc: u64,
    /// The caller's sp.
    pub caller_sp: u64,
    /// The caller's frame pointer.
    pub caller_fp: u64,
}

/// Reads the links of a frame at `fp` whose method is not filled in yet. Deoptimisation first lays
/// out skeletons of interpreter frames (sharedRuntime_x86_64.cpp, `generate_deopt_blob`).
///
/// # Errors
/// [`Fault`] if a slot cannot be read. `Ok(None)` if the slots are invalid.
pub fn read_skeleton<M: Memory>(
    machine: impl Machine,
    mem: &M,
    fp: u64,
    is_return: impl Fn(u64) -> bool,
) -> Result<Option<NativeRegs>, Fault> {
    let caller = machine.linked(mem, fp)?;
    let sp = machine.interpreted_sp(fp, mem.word(fp.wrapping_sub(SENDER_SP))?);
    let found = sp.map(|sp| NativeRegs { sp, ..caller });
    Ok(found.filter(|caller| is_return(caller.pc)))
}

/// Reads the complete frame at `fp`. `live_bcp` is the bytecode pointer of an interrupted frame.
///
/// # Errors
/// [`Fault`] if a slot cannot be read. `Ok(None)` if the slots are invalid.
pub fn read_frame<M: Memory>(
    machine: impl Machine,
    mem: &M,
    layout: &Layout,
    fp: u64,
    live_bcp: Option<u64>,
) -> Result<Option<Interpreted>, Fault> {
    let method = mem.word(fp.wrapping_sub(METHOD))?;
    if !method::is_plausible(mem, layout, method) {
        return Ok(None);
    }
    let code = method::code(mem, layout, method)?;
    let slot = fp.wrapping_add(layout.extra.interpreter_bcp as u64);
    let saved = mem.word(slot).ok().and_then(|bcp| code.bci(bcp));
    let bci = live_bcp
        .and_then(|bcp| code.bci(bcp))
        .or(saved)
        .unwrap_or(-1);
    let caller = machine.linked(mem, fp)?;
    let sp = machine.interpreted_sp(fp, mem.word(fp.wrapping_sub(SENDER_SP))?);
    Ok(sp.map(|caller_sp| Interpreted {
        method,
        bci,
        caller_pc: caller.pc,
        caller_sp,
        caller_fp: caller.fp,
    }))
}

/// Whether there is a frame at `fp` that calls and will have `sp` when that call returns.
#[must_use]
pub fn is_frame<M: Memory>(machine: impl Machine, mem: &M, sp: u64, fp: u64) -> bool {
    let calls = || -> Result<bool, Fault> {
        // While deoptimisation lays out frames, only the frame pointer and the caller's sp are set.
        let linked = fp >= sp && {
            let slot = mem.word(fp.wrapping_sub(SENDER_SP))?;
            machine.interpreted_sp(fp, slot).is_some()
        };
        Ok(fp & 7 == 0 && linked)
    };
    calls().unwrap_or(false)
}

/// Whether there is a frame at `fp` although its method cannot be read: its fixed slots point to
/// each other. A call may just have returned to it.
///
/// # Errors
/// [`Fault`] if a slot cannot be read.
pub fn has_form<M: Memory>(
    machine: impl Machine,
    mem: &M,
    layout: &Layout,
    sp: u64,
    fp: u64,
) -> Result<bool, Fault> {
    let last = mem.word(fp.wrapping_sub(LAST_SP))?;
    Ok((last == 0 || slot_address(fp, last) == sp) && has_links(machine, mem, layout, sp, fp)?)
}

/// The same for a frame in a call that will have `sp` when that call returns, or more if an adapter
/// took arguments from it.
///
/// # Errors
/// [`Fault`] if a slot cannot be read.
pub fn has_called<M: Memory>(
    machine: impl Machine,
    mem: &M,
    layout: &Layout,
    sp: u64,
    fp: u64,
) -> Result<bool, Fault> {
    let last = slot_address(fp, mem.word(fp.wrapping_sub(LAST_SP))?);
    Ok(last >= sp && last < fp && has_links(machine, mem, layout, sp, fp)?)
}

/// Whether the fixed slots of a frame at `fp` point to each other.
///
/// # Errors
/// [`Fault`] if a slot cannot be read.
pub fn has_links<M: Memory>(
    machine: impl Machine,
    mem: &M,
    layout: &Layout,
    sp: u64,
    fp: u64,
) -> Result<bool, Fault> {
    let bcp = fp.wrapping_add(layout.extra.interpreter_bcp as u64);
    // The bottom of the expression stack. Only monitors (of two words) are above it.
    let bottom = slot_address(fp, mem.word(bcp.wrapping_sub(8))?);
    let locals = slot_address(fp, mem.word(bcp.wrapping_add(8))?);
    let sender = mem.word(fp.wrapping_sub(SENDER_SP))?;
    let monitors = bcp.wrapping_sub(8).wrapping_sub(bottom);
    Ok(fp & 7 == 0
        && fp > sp
        && bottom >= sp
        && bottom < bcp
        && monitors.is_multiple_of(16)
        && locals > fp
        && machine.interpreted_sp(fp, sender).is_some()
        && mem.word(fp.wrapping_sub(METHOD))? != 0)
}

/// The return address and sp of the call of the frame at `fp`, if the method can be read and the
/// frame is in a call. The frame notes its sp for the call, and the return address is below it and
/// above `sp`. It may be deeper if an adapter has moved it.
///
/// # Errors
/// [`Fault`] if a slot cannot be read.
pub fn read_calling<M: Memory>(
    machine: impl Machine,
    mem: &M,
    layout: &Layout,
    code: &CodeCache,
    sp: u64,
    fp: u64,
) -> Result<Option<NativeRegs>, Fault> {
    let Some(frame) = read_frame(machine, mem, layout, fp, None)? else {
        return Ok(None);
    };
    let last = slot_address(fp, mem.word(fp.wrapping_sub(LAST_SP))?);
    let fits = frame.bci >= 0 && code.contains(frame.caller_pc);
    if !fits || last & 7 != 0 || last <= sp || last >= fp {
        return Ok(None);
    }
    let (begin, end) = code.interpreter();
    for i in 1..=MOVED_WORDS_MAX {
        let at = last.wrapping_sub(i * 8);
        if at < sp {
            break;
        }
        let pc = mem.word(at)?;
        if pc > begin && pc < end {
            return Ok(Some(NativeRegs { pc, sp: last, fp }));
        }
    }
    Ok(None)
}

/// sp of the caller of the frame at `fp`.
///
/// # Errors
/// [`Fault`] if it cannot be read. `Ok(None)` if the slot is invalid.
pub fn sender_sp<M: Memory>(machine: impl Machine, mem: &M, fp: u64) -> Result<Option<u64>, Fault> {
    let slot = mem.word(fp.wrapping_sub(SENDER_SP))?;
    Ok(machine.interpreted_sp(fp, slot))
}

/// An address in a slot of a frame: absolute, or (since 21) in words from the frame pointer.
pub(super) fn slot_address(fp: u64, value: u64) -> u64 {
    const WORDS_MAX: u64 = 1 << 17;
    if value.wrapping_add(WORDS_MAX) < 2 * WORDS_MAX {
        fp.wrapping_add(value.wrapping_mul(8))
    } else {
        value
    }
}

/// Maximum number of codelets searched; the interpreter has about 300.
const CODELETS_MAX: u32 = 4096;

/// The head of an `InterpreterCodelet` (interpreter.hpp).
struct Codelet {
    /// Its whole size, in bytes.
    size: u64,
    description: Field,
}

/// The address of a description.
enum Field {
    /// Not read yet.
    At(u64),
    /// Already read.
    Is(u64),
}

impl Codelet {
    /// Reads the head at `at`: `_size`, then `_description`, or (21, 25, 27; not 8) the reverse. A
    /// size is an int below the number of bytes left of the interpreter; an address never is.
    fn read<M: Memory>(mem: &M, at: u64, left: u64) -> Result<Option<Codelet>, Fault> {
        let first = mem.word(at)?;
        let size = |word: u64| Some(word & 0xffff_ffff).filter(|size| (1..=left).contains(size));
        if first >> 32 == 0
            && let Some(size) = size(first)
        {
            let description = Field::At(at.wrapping_add(8));
            return Ok(Some(Codelet { size, description }));
        }
        let second = size(mem.word(at.wrapping_add(8))?);
        let description = Field::Is(first);
        Ok(second.map(|size| Codelet { size, description }))
    }

    /// Whether its description is that of a method entry point.
    fn is_entry<M: Memory>(&self, mem: &M) -> Result<bool, Fault> {
        const ENTRY: [u8; 8] = *b"method e";
        /// Since 25 those of native methods have a description of their own.
        const NATIVE_ENTRY: [u8; 8] = *b"native m";
        let description = match self.description {
            Field::At(slot) => mem.word(slot)?,
            Field::Is(description) => description,
        };
        let mut text = [0u8; ENTRY.len()];
        mem.read(description, &mut text)?;
        Ok(text == ENTRY || text == NATIVE_ENTRY)
    }
}

/// Whether pc is in a codelet of a method entry point; false if it cannot be read.
pub(crate) fn in_entry<M: Memory>(mem: &M, code: &CodeCache, pc: u64) -> bool {
    is_in_entry(mem, code, pc).unwrap_or(false)
}

fn is_in_entry<M: Memory>(mem: &M, code: &CodeCache, pc: u64) -> Result<bool, Fault> {
    let (mut at, end) = code.interpreter();
    for _ in 0..CODELETS_MAX {
        if at >= end {
            break;
        }
        let Some(codelet) = Codelet::read(mem, at, end - at)? else {
            break;
        };
        if pc < at + codelet.size {
            return codelet.is_entry(mem);
        }
        at += codelet.size;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::machine::X86_64;
    use crate::hotspot::test_memory::Bytes;

    const STACK: u64 = 0x7f00_0000_0000;

    /// A frame at STACK + 0x100 in the form of 9 to 20 (addresses) or later (words from rbp).
    fn frame(in_words: bool, change: Option<(u64, u64)>) -> Bytes {
        let fp = STACK + 0x100;
        let link = |addr: u64| match in_words {
            true => (addr.wrapping_sub(fp) as i64 / 8) as u64,
            false => addr,
        };
        let slots = [
            (72, link(fp - 72)),
            (64, 0xbc),
            (56, link(fp + 24)),
            (24, 0xdead_0008),
            (16, 0),
            (8, fp + 32),
        ];
        let mut words = [0u64; 0x40];
        for (below, value) in slots.into_iter().chain(change) {
            words[(0x100 - below as usize) / 8] = value;
        }
        let bytes = words.map(u64::to_le_bytes);
        Bytes::at(STACK, bytes.as_flattened())
    }

    #[test]
    fn a_frame_is_known_by_its_links_when_its_method_is_gone() {
        let layout = Layout::EMPTY;
        let fp = STACK + 0x100;
        for in_words in [false, true] {
            let has =
                |change, sp| has_form(X86_64, &frame(in_words, change), &layout, sp, fp).unwrap();
            assert!(has(None, STACK));
            assert!(!has(None, fp - 64), "rsp is above the expression stack");
            assert!(!has(Some((72, fp - 64)), STACK), "half a monitor");
            assert!(!has(Some((56, fp - 24)), STACK), "locals below rbp");
            assert!(!has(Some((8, fp - 8)), STACK), "a caller's sp below rbp");
            assert!(!has(Some((24, 0)), STACK), "no method");
            assert!(!has(Some((16, fp - 80)), STACK), "it calls");
            assert!(has(Some((16, fp - 80)), fp - 80), "it was returned to");
            let called = frame(in_words, Some((16, fp - 80)));
            assert!(has_called(X86_64, &called, &layout, fp - 88, fp).unwrap());
            assert!(!has_called(X86_64, &called, &layout, fp - 72, fp).unwrap());
        }
    }

    const METHOD_AT: u64 = 0x4000;
    const BYTECODES: u64 = 0x5018;
    const FP: u64 = STACK + 0x100;

    /// Made-up offsets of a method, its bytecodes, its constants and its class.
    fn with_methods() -> Layout {
        let mut layout = Layout::EMPTY;
        (layout.method_const, layout.sizeof_const_method) = (8, 24);
        (
            layout.const_constants,
            layout.const_code_size,
            layout.const_name_index,
        ) = (0, 8, 16);
        (layout.pool_holder, layout.pool_length, layout.klass_name) = (0, 8, 8);
        layout
    }

    /// A stack of 64 words with a frame of [`METHOD_AT`]. `changes` replaces slots, by their
    /// distance below rbp.
    fn stack(changes: &[(i64, u64)]) -> Bytes {
        let mut words = [0u64; 64];
        let slots = [
            (-8, 0xca11),
            (0, FP + 0x60),
            (8, FP + 0x20),
            (16, FP - 0x80),
            (24, METHOD_AT),
            (64, BYTECODES + 3),
        ];
        for (below, value) in slots.iter().chain(changes) {
            words[(0x100 - below) as usize / 8] = *value;
        }
        let mut mem = Bytes::of_words(&[
            (STACK, &words),
            (METHOD_AT, &[0, 0x5000]),
            // Five bytecodes.
            (0x5000, &[0x6000, 5, 0, 0]),
            (0x6000, &[0x7000, 1]),
            (0x7000, &[0, 0x8000]),
        ]);
        mem.add(0x5020, &[0; 8]);
        mem
    }

    #[test]
    fn frame_gives_method_bytecode_and_caller() {
        let layout = with_methods();
        let of =
            |changes: &[(i64, u64)], live| read_frame(X86_64, &stack(changes), &layout, FP, live);
        let expected = |bci| {
            Ok(Some(Interpreted {
                method: METHOD_AT,
                bci,
                caller_pc: 0xca11,
                caller_sp: FP + 0x20,
                caller_fp: FP + 0x60,
            }))
        };
        assert_eq!(of(&[], None), expected(3));
        assert_eq!(of(&[], Some(BYTECODES + 4)), expected(4), "r13 is newer");
        assert_eq!(
            of(&[], Some(BYTECODES + 5)),
            expected(3),
            "r13 is another's"
        );
        assert_eq!(of(&[(64, BYTECODES + 5)], None), expected(-1));
        assert_eq!(
            of(&[(8, FP)], None),
            Ok(None),
            "the caller's stack is above"
        );
        assert!(of(&[(8, FP + 8)], None).is_ok_and(|frame| frame.is_some()));
        assert_eq!(of(&[(24, METHOD_AT + 8)], None), Ok(None), "no method");
    }

    #[test]
    fn a_skeleton_has_links_only() {
        let of =
            |changes: &[(i64, u64)]| read_skeleton(X86_64, &stack(changes), FP, |pc| pc == 0xca11);
        let expected = NativeRegs {
            pc: 0xca11,
            sp: FP + 0x20,
            fp: FP + 0x60,
        };
        assert_eq!(of(&[]), Ok(Some(expected)));
        assert_eq!(of(&[(-8, 0xca12)]), Ok(None), "no return address");
        assert_eq!(of(&[(8, FP)]), Ok(None));
        assert!(of(&[(8, FP + 8)]).is_ok_and(|frame| frame.is_some()));
        let mem = stack(&[]);
        assert!(is_frame(X86_64, &mem, FP, FP) && is_frame(X86_64, &mem, FP - 8, FP));
        assert!(!is_frame(X86_64, &mem, FP + 8, FP), "rbp is below rsp");
        assert!(!is_frame(X86_64, &mem, STACK, FP + 4));
        assert!(!is_frame(X86_64, &stack(&[(8, FP)]), STACK, FP));
        assert!(!is_frame(X86_64, &mem, STACK, 0x10_0000), "no memory");
    }

    #[test]
    fn a_frame_that_calls_is_found_by_its_return_address() {
        use super::super::codecache::CODE_CACHE_WORDS;
        const BEGIN: u64 = 0xc000;
        let layout = with_methods();
        let mut words = [0; CODE_CACHE_WORDS];
        words[..2].copy_from_slice(&[0xc000, 0xc900]);
        words[CODE_CACHE_WORDS - 3..].copy_from_slice(&[BEGIN, BEGIN + 0x100, 0]);
        let code = CodeCache::from_words(&words);
        let last = FP - 0x80;
        let of = |changes: &[(i64, u64)], sp| {
            let mut all = [(-8, 0xca11), (16, last), (0x88, BEGIN + 1)].to_vec();
            all.extend(changes);
            read_calling(X86_64, &stack(&all), &layout, &code, sp, FP).unwrap()
        };
        let found = |pc| {
            Some(NativeRegs {
                pc,
                sp: last,
                fp: FP,
            })
        };
        let called = (-8, 0xc800);
        assert_eq!(of(&[called], STACK), found(BEGIN + 1));
        assert_eq!(of(&[called], last - 8), found(BEGIN + 1), "right below");
        assert_eq!(of(&[called], last), None, "rsp is above that");
        // Deeper, where an adapter may have moved it, but not below rsp.
        let moved = [called, (0x88, 0), (0x98, BEGIN + 0xff)];
        assert_eq!(of(&moved, last - 24), found(BEGIN + 0xff));
        assert_eq!(of(&moved, last - 16), None);
        for pc in [BEGIN, BEGIN + 0x100, 0xca11] {
            assert_eq!(of(&[called, (0x88, pc)], STACK + 0x40), None, "{pc:x}");
        }
        assert_eq!(of(&[], STACK), None, "the caller is no code of the VM's");
        assert_eq!(
            of(&[called, (64, BYTECODES + 5)], STACK),
            None,
            "no bytecode"
        );
        assert_eq!(of(&[called, (24, 0)], STACK), None, "no method");
        for at in [last + 4, FP, FP + 8] {
            assert_eq!(of(&[called, (16, at)], STACK), None, "{at:x}");
        }
        // In words from rbp, as since 21.
        assert_eq!(
            of(&[called, (16, 16u64.wrapping_neg())], STACK),
            found(BEGIN + 1)
        );
    }
}
