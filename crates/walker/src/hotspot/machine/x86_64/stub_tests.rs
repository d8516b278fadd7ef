//! Tests of how callers of stubs and adapters are found.

extern crate std;
use super::*;
use crate::hotspot::test_memory::Bytes;
use std::vec::Vec;

const CODE: u64 = 0x1000;
const STACK: u64 = 0x2000;

/// Every address is code. These are callers, with any frames.
struct Callers<'a>(&'a [u64]);

impl Checks for Callers<'_> {
    fn is_code(&self, _: u64) -> bool {
        true
    }

    fn is_return(&self, pc: u64) -> bool {
        self.0.contains(&pc)
    }

    fn is_method(&self, pc: u64) -> bool {
        self.is_return(pc)
    }

    fn is_caller(&self, caller: NativeRegs) -> bool {
        self.is_return(caller.pc)
    }
}

fn certain(caller: NativeRegs) -> Option<Caller> {
    Some(Caller::Certain(caller.into()))
}

fn words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn room_for_arguments_does_not_hide_the_caller_of_an_adapter() {
    // lea r13, [rsp + 8]; pop rax; sub rsp, 0x20; push rax; mov [rsp + 24], rsi
    let mut code = [0x90u8; 64];
    let adapter = [
        0x4c, 0x8d, 0x6c, 0x24, 0x08, 0x58, 0x48, 0x83, 0xec, 0x20, 0x50, 0x48, 0x89,
    ];
    code[16..16 + adapter.len()].copy_from_slice(&adapter);
    let mut mem = Bytes::at(CODE, &code);
    mem.add(STACK, &words(&[0xca11, 0, 0, 0, 0, 0, 0, 0]));
    let blob = Blob {
        addr: CODE,
        kind: BlobKind::Adapter,
        code_begin: CODE,
        frame_bytes: 0,
    };
    let caller_at = |pc: u64| {
        let regs = Regs {
            pc: CODE + pc,
            sp: STACK,
            r13: STACK + 0x28,
            ..Regs::default()
        };
        interrupted_caller(&mem, &blob, &regs, &Callers(&[0xca11])).unwrap()
    };
    let caller = |words: u64| {
        certain(NativeRegs {
            pc: 0xca11,
            sp: STACK + words * 8,
            fp: 0,
        })
    };
    assert_eq!(caller_at(16), caller(1), "r13 is the caller's own");
    assert_eq!(caller_at(27), caller(5));
}

#[test]
fn adapter_caller_found_below_registers_saved_by_a_barrier() {
    const CALLER: u64 = 0xca11;
    let mut mem = Bytes::at(CODE, &[0x90u8; 64]);
    // A vector register, and saved registers: one with the return address, one with a value like
    // flags. Then the flags and the return address.
    let stack = [0x407e_0000, 7, CALLER, 0x246, 8, 0x246, CALLER, 9];
    let mut all = Vec::from(stack);
    all.resize(1024, 0);
    mem.add(STACK, &words(&all));
    let blob = Blob {
        addr: CODE,
        kind: BlobKind::Adapter,
        code_begin: CODE,
        frame_bytes: 0,
    };
    let regs = Regs {
        pc: CODE + 16,
        sp: STACK,
        fp: 0xb9,
        r13: CALLER,
        ..Regs::default()
    };
    let expected = certain(NativeRegs {
        pc: CALLER,
        sp: STACK + 56,
        fp: 0xb9,
    });
    let callers = Callers(&[CALLER]);
    let found = interrupted_caller(&mem, &blob, &regs, &callers);
    assert_eq!(found, Ok(expected));
    let below = NativeRegs {
        pc: CODE + 16,
        sp: STACK,
        fp: 0xb9,
    };
    assert_eq!(
        calling_caller(&mem, &blob, below, false, &callers),
        Ok(expected)
    );
}

#[test]
fn static_call_stub_has_the_call_as_caller() {
    // call CODE + 32; ...; mov rbx, imm64; jmp
    let mut code = [0x90u8; 64];
    code[16..21].copy_from_slice(&[0xe8, 32 - 21, 0, 0, 0]);
    code[32..34].copy_from_slice(&[0x48, 0xbb]);
    code[42] = 0xe9;
    let mut mem = Bytes::at(CODE, &code);
    mem.add(STACK, &words(&[CODE + 21]));
    let blob = Blob {
        addr: CODE,
        kind: BlobKind::Nmethod,
        code_begin: CODE,
        frame_bytes: 32,
    };
    let caller = |mem: &Bytes, blob: &Blob, pc: u64| {
        let regs = Regs {
            pc: CODE + pc,
            sp: STACK,
            ..Regs::default()
        };
        static_call_caller(mem, blob, &regs).map(|caller| (caller.pc - CODE, caller.sp - STACK))
    };
    let at = |pc: u64| caller(&mem, &blob, pc);
    assert_eq!(at(32), Some((21, 8)));
    assert_eq!(at(42), Some((21, 8)));
    assert_eq!(at(16), None);
    assert_eq!(at(33), None);
    code[17] += 1;
    let returning = |to: u64| {
        let mut other = Bytes::at(CODE, &code);
        other.add(STACK, &words(&[CODE + to]));
        other
    };
    assert_eq!(
        caller(&returning(21), &blob, 32),
        Some((21, 8)),
        "linked anew"
    );
    assert_eq!(caller(&returning(22), &blob, 32), None, "no call");
    let behind = Blob {
        code_begin: CODE + 22,
        ..blob
    };
    assert_eq!(
        caller(&returning(21), &behind, 32),
        None,
        "another method's call"
    );
}

#[test]
fn a_poll_is_known_before_its_pc_is_on_the_stack() {
    const POLL: u64 = 0x5000;
    let mut code = [0x90u8; 16];
    code[..5].copy_from_slice(&[0x53, 0x55, 0x48, 0x8b, 0xec]);
    let mut mem = Bytes::at(CODE, &code);
    // The saved rbp, and rbx in the slot of the pc.
    mem.add(STACK, &words(&[0xb9, 0xb8, 0]));
    let blob = Blob {
        addr: CODE,
        kind: BlobKind::Stub,
        code_begin: CODE,
        frame_bytes: 0,
    };
    let at = |pc: u64, sp: u64, fp: u64| {
        let regs = Regs {
            pc: CODE + pc,
            sp,
            fp,
            ..Regs::default()
        };
        polling_caller(&mem, &blob, &regs, POLL)
    };
    let caller = Some(NativeRegs {
        pc: POLL,
        sp: STACK + 16,
        fp: 0xb9,
    });
    assert_eq!(at(0, STACK + 16, 0xb9), caller);
    assert_eq!(at(1, STACK + 8, 0xb9), caller);
    assert_eq!(at(2, STACK, 0xb9), caller);
    assert_eq!(at(5, STACK, STACK), caller);
    assert_eq!(at(12, STACK - 64, STACK), caller);
    let regs = Regs::default();
    assert_eq!(polling_caller(&mem, &blob, &regs, 0), None, "never polled");
}

/// The frame's end is known by rbp, or by its usual size. The way that leads there is unknown.
#[test]
fn unfollowable_stub_has_only_a_likely_caller() {
    // add rsp, [rdi]
    let mut code = [0x90u8; 64];
    code[16..19].copy_from_slice(&[0x48, 0x03, 0x27]);
    let mut mem = Bytes::at(CODE, &code);
    mem.add(STACK, &words(&[0, 0, 0xf9, 0xca11, 0xfa, 0xca12, 0, 0]));
    let at = |fp: u64, frame_bytes: u64, callers: &[u64]| {
        let blob = Blob {
            addr: CODE,
            kind: BlobKind::Stub,
            code_begin: CODE,
            frame_bytes,
        };
        let regs = Regs {
            pc: CODE + 16,
            sp: STACK,
            fp,
            ..Regs::default()
        };
        interrupted_caller(&mem, &blob, &regs, &Callers(callers)).unwrap()
    };
    let likely = |pc: u64, sp: u64, fp: u64| Some(Caller::Likely(NativeRegs { pc, sp, fp }));
    let both = [0xca11, 0xca12];
    let linked = likely(0xca11, STACK + 32, 0xf9);
    let framed = likely(0xca12, STACK + 48, 0xfa);
    assert_eq!(at(STACK + 16, 0, &both), linked);
    assert_eq!(at(STACK + 16, 48, &both), linked);
    assert_eq!(at(STACK + 16, 48, &[0xca12]), framed);
    assert_eq!(at(7, 48, &both), framed);
    assert_eq!(at(7, 0, &both), None);
    assert_eq!(at(STACK - 8, 0, &both), None, "rbp is below");
}

/// A stub that has called the VM has the frame size of its blob.
#[test]
fn called_vm_returns_to_a_frame_of_the_blobs_size() {
    let mut mem = Bytes::at(CODE, &[0xf4u8; 64]);
    mem.add(STACK, &words(&[0, 0xca11, 0xf9, 0xca11, 0, 0, 0, 0]));
    let at = |frame_bytes: u64| {
        let blob = Blob {
            addr: CODE,
            kind: BlobKind::Stub,
            code_begin: CODE,
            frame_bytes,
        };
        let regs = NativeRegs {
            pc: CODE + 9,
            sp: STACK,
            fp: 7,
        };
        calling_caller(&mem, &blob, regs, true, &Callers(&[0xca11])).unwrap()
    };
    let expected = certain(NativeRegs {
        pc: 0xca11,
        sp: STACK + 32,
        fp: 0xf9,
    });
    assert_eq!(at(32), expected);
    assert_eq!([at(24), at(0)], [None; 2]);
}

/// The frame of an older method is at rbp, because compiled code does not change it.
#[test]
fn caller_of_a_virtual_call_stub_is_at_rsp() {
    let mem = Bytes::at(STACK, &words(&[0xca11, 7, 0xf9, 0xca12, 0, 0, 0, 0]));
    let blob = Blob {
        addr: CODE,
        kind: BlobKind::Vtable,
        code_begin: CODE,
        frame_bytes: 0,
    };
    let regs = Regs {
        pc: CODE + 9,
        sp: STACK,
        fp: STACK + 16,
        ..Regs::default()
    };
    let found = |callers: &[u64]| interrupted_caller(&mem, &blob, &regs, &Callers(callers));
    let expected = certain(NativeRegs {
        pc: 0xca11,
        sp: STACK + 8,
        fp: STACK + 16,
    });
    assert_eq!(found(&[0xca11, 0xca12]), Ok(expected));
    assert_eq!(found(&[0xca12]), Ok(None), "no other is looked for");
}

#[test]
fn arguments_pushed_for_a_stub_are_not_in_callers_frame() {
    const CALLER: u64 = 0x4000;
    // push rsi; push r8; call CODE
    let mut code = [0x90u8; 32];
    let distance = (CODE as i32 - (CALLER as i32 + 32)).to_le_bytes();
    code[24..28].copy_from_slice(&[0x56, 0x41, 0x50, 0xe8]);
    code[28..].copy_from_slice(&distance);
    let mut mem = Bytes::at(CALLER, &code);
    // push rax; pop rax; ret
    let mut stub = [0x90u8; 64];
    stub[16..19].copy_from_slice(&[0x50, 0x58, 0xc3]);
    mem.add(CODE, &stub);
    let back = CALLER + 32;
    mem.add(STACK, &words(&[1, back, 2, 3, 0, 0, 0, 0]));
    let found = |code_begin: u64, fits: &dyn Fn(u64) -> bool| {
        let blob = Blob {
            addr: CODE,
            kind: BlobKind::Stub,
            code_begin,
            frame_bytes: 0,
        };
        let regs = Regs {
            pc: CODE + 17,
            sp: STACK,
            fp: 0x77,
            ..Regs::default()
        };
        let found = interrupted_caller(&mem, &blob, &regs, &Fitting(back, fits)).unwrap();
        let Some(Caller::Certain(WayOut { caller, .. })) = found else {
            panic!("{found:?}");
        };
        assert_eq!((caller.pc, caller.fp), (back, 0x77));
        (caller.sp - STACK) / 8
    };
    assert_eq!(found(CODE, &|_| true), 4);
    assert_eq!(found(CODE + 8, &|_| true), 2, "another stub is called");
    // A register saved by the caller hides the caller's own caller.
    assert_eq!(found(CODE, &|_| false), 4);
    // The last byte of another instruction.
    assert_eq!(found(CODE, &|sp| sp == STACK + 24), 3);
    assert_eq!(found(CODE, &|sp| sp == STACK + 16), 2);
}

/// One return address, with frames that are accepted by their sp.
struct Fitting<'a>(u64, &'a dyn Fn(u64) -> bool);

impl Checks for Fitting<'_> {
    fn is_code(&self, _: u64) -> bool {
        true
    }

    fn is_return(&self, pc: u64) -> bool {
        pc == self.0
    }

    fn is_method(&self, pc: u64) -> bool {
        self.is_return(pc)
    }

    fn is_caller(&self, caller: NativeRegs) -> bool {
        self.is_return(caller.pc) && self.1(caller.sp)
    }
}

#[test]
fn entry_barrier_cookie_is_not_a_return_address() {
    let mem = Bytes::at(STACK, &words(&[1, u64::MAX, 3, 4, 5]));
    assert_eq!(return_slot(&mem, STACK), Ok(STACK + 16));
    assert_eq!(return_slot(&mem, STACK + 16), Ok(STACK + 24));
}

/// Registers take at most a page; a value like flags above that is another thing.
#[test]
fn saved_flags_lie_within_a_page() {
    let found = |slot: usize, flags: u64| {
        let mut stack = std::vec![0u64; 600];
        (stack[slot], stack[slot + 1]) = (flags, 0xca11);
        let mem = Bytes::at(STACK, &words(&stack));
        let caller = saving_caller(&mem, STACK, 7, &|caller| caller.pc == 0xca11).unwrap();
        caller.map(|it| ((it.sp - STACK) / 8, it.fp))
    };
    assert_eq!(found(0, 0x202), Some((2, 7)));
    assert_eq!(found(511, 0x246), Some((513, 7)));
    assert_eq!(found(512, 0x202), None);
    for flags in [0, 0x200, 0x2, 0x1_0202, 0x20a] {
        assert_eq!(found(3, flags), None, "{flags:x}");
    }
}

/// Notes each read.
struct Asked<'a>(&'a Bytes, std::cell::RefCell<Vec<u64>>);

impl Memory for Asked<'_> {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        self.0.word(addr)
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        self.1.borrow_mut().push(addr);
        self.0.read(addr, buf)
    }
}

/// Addresses beyond the reach of a direct call are not read, to the byte.
#[test]
fn code_is_read_only_where_a_call_could_lead_from() {
    const FAR: u64 = 0x7f00_0000_0000;
    let mem = Bytes::at(FAR, &[0x90; 64]);
    let read = |pc: u64| {
        let asked = Asked(&mem, std::cell::RefCell::default());
        assert_eq!(words_pushed_for(&asked, pc, FAR), None);
        asked.1.into_inner() == [pc.wrapping_sub(16)]
    };
    for pc in [FAR + 20, FAR - (1 << 31), FAR + (1 << 31)] {
        assert!(read(pc), "{pc:x}");
    }
    for pc in [
        0,
        5,
        u64::MAX,
        0xc012_3456,
        FAR - (1 << 31) - 1,
        FAR + (1 << 31) + 1,
    ] {
        assert!(!read(pc), "{pc:x}");
    }
}
