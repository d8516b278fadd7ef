//! Compares compiled unwind tables of real libraries with two independent oracles, at the start,
//! middle and end of every row: gimli's own evaluation of the same programs, and framehop, by
//! stepping both over the same made-up stack.

mod common;
mod oracle;

use std::cell::Cell;
use std::ops::Range;
use std::path::Path;

use dwell_native::elf::Elf;
use dwell_native::unwind::{Rule, UnwindTable};
use dwell_walker::machine::{Host, Machine as _};
use dwell_walker::memory::{Fault, Memory};
use dwell_walker::native::{NativeRegs, NativeStep};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};
use gimli::{CfaRule, LittleEndian, RegisterRule, UnwindSection, X86_64};
use oracle::Expected;

/// Rows of a JVM that the table may not support (functions that realign their stack for vectors).
const JVM_UNSUPPORTED_ROWS_MAX: u32 = 10;
/// Rows of other libraries that the table may not support, in per cent. OpenSSL's assembly has the
/// most by far: it keeps its old rsp in any free register or stack slot.
const OTHER_UNSUPPORTED_PERCENT_MAX: u32 = 2;

/// First, middle and last address of a range.
fn probes(addresses: &Range<u64>) -> [u64; 3] {
    let len = addresses.end - addresses.start;
    [
        addresses.start,
        addresses.start + len / 2,
        addresses.end - 1,
    ]
}

fn offset(elf: &Elf<'_>, svma: u64) -> u32 {
    u32::try_from(svma - elf.base_svma()).unwrap()
}

fn compare_with_gimli(path: &Path, elf: &Elf<'_>, table: &UnwindTable, rows: &[Expected]) {
    assert!(!rows.is_empty(), "{}", path.display());
    for expected in rows {
        for svma in probes(&expected.addresses) {
            let found = table.lookup(offset(elf, svma));
            assert_eq!(
                found,
                expected.rule_at(svma),
                "{} at {svma:#x}",
                path.display()
            );
        }
    }
}

/// A stack of different words, each computed from its address alone.
struct MadeUpStack {
    reads: Cell<u64>,
}

impl MadeUpStack {
    fn at(&self, address: u64) -> u64 {
        self.reads.set(self.reads.get() + 1);
        // Odd multiplier: a bijection, so two addresses never hold the same word. The low bit
        // keeps it from being zero, which would mean the end of the stack.
        address.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
    }
}

impl Memory for MadeUpStack {
    fn word(&self, address: u64) -> Result<u64, Fault> {
        Ok(self.at(address))
    }

    fn read(&self, addr: u64, _: &mut [u8]) -> Result<(), Fault> {
        // Native unwinding reads whole words only.
        Err(Fault { addr })
    }
}

fn framehop_for(elf: &Elf<'_>, len: u64) -> UnwinderX86_64<Vec<u8>> {
    let section = elf.eh_frame().unwrap();
    let mut unwinder = UnwinderX86_64::new();
    let end = section.svma + section.data.len() as u64;
    unwinder.add_module(Module::new(
        "module".to_string(),
        elf.base_svma()..elf.base_svma() + len,
        elf.base_svma(),
        ExplicitModuleSectionInfo {
            base_svma: elf.base_svma(),
            eh_frame_svma: Some(section.svma..end),
            eh_frame: Some(section.data.to_vec()),
            ..Default::default()
        },
    ));
    unwinder
}

fn compare_with_framehop(path: &Path, elf: &Elf<'_>, table: &UnwindTable, rows: &[Expected]) {
    let len = elf
        .segments()
        .iter()
        .map(|s| s.vaddr + s.mem_len)
        .max()
        .unwrap();
    let unwinder = framehop_for(elf, len - elf.base_svma());
    let mut cache: CacheX86_64 = CacheX86_64::new();
    let stack = MadeUpStack {
        reads: Cell::new(0),
    };
    // Every row of a small library, an even selection of a large one, because each costs a DWARF
    // run.
    let stride = rows.len() / 20_000 + 1;
    for expected in rows.iter().step_by(stride) {
        for pc in probes(&expected.addresses) {
            let rule = table.lookup(offset(elf, pc));
            // framehop does not evaluate CFA expressions that read memory, such as that of a signal
            // frame.
            if matches!(rule, Rule::Unsupported | Rule::SignalFrame) {
                continue;
            }
            let (sp, fp) = (0x7fff_1000_0000, 0x7fff_1000_4000);
            let ours = Host
                .unwind(&stack, rule, NativeRegs { pc, sp, fp }, None)
                .unwrap();
            let ours = match ours {
                NativeStep::Caller(regs) | NativeStep::Interrupted(regs) => Some(regs),
                NativeStep::End => None,
                NativeStep::NoRule => panic!("{} has no rule at {pc:#x}", path.display()),
            };
            let mut regs = UnwindRegsX86_64::new(pc, sp, fp);
            let address = FrameAddress::from_instruction_pointer(pc);
            let mut read = |address| Ok(stack.at(address));
            let caller = unwinder
                .unwind_frame(address, &mut regs, &mut cache, &mut read)
                .unwrap();
            let theirs = caller.map(|pc| NativeRegs {
                pc,
                sp: regs.sp(),
                fp: regs.bp(),
            });
            assert_eq!(ours, theirs, "{} at {pc:#x}, rule {rule:?}", path.display());
        }
    }
    assert!(stack.reads.get() > 0);
}

fn compare(path: &Path, unsupported_max: impl Fn(u32) -> u32) {
    let data = std::fs::read(path).unwrap();
    let elf = Elf::parse(&data).unwrap();
    let table = elf.unwind_table().unwrap();
    let stats = table.stats();
    let rows = oracle::expected_rows(elf.eh_frame().unwrap());
    assert_eq!(stats.fdes_skipped, 0, "{}: {stats:?}", path.display());
    assert!(!stats.is_truncated, "{}: {stats:?}", path.display());
    assert!(
        table.rows().is_sorted_by(|a, b| a.offset < b.offset),
        "{}",
        path.display()
    );
    let unsupported_max = unsupported_max(stats.rows_raw);
    assert!(
        stats.rows_unsupported <= unsupported_max,
        "{}: {stats:?}",
        path.display()
    );
    compare_with_gimli(path, &elf, &table, &rows);
    compare_with_framehop(path, &elf, &table, &rows);
    println!("{}: {} rows agree, {stats:?}", path.display(), rows.len());
}

#[test]
fn tables_of_jvms_agree_with_the_oracles() {
    for path in common::jvm_libraries() {
        compare(&path, |_| JVM_UNSUPPORTED_ROWS_MAX);
    }
}

#[test]
fn tables_of_own_and_system_libraries_agree_with_oracles() {
    let all = common::mapped_libraries()
        .into_iter()
        .chain(common::system_libraries());
    for path in all {
        compare(&path, |rows| {
            10 + rows * OTHER_UNSUPPORTED_PERCENT_MAX / 100
        });
    }
}

/// Every row of the whole table, at its start, in its middle and at its end.
#[test]
fn rules_looked_up_one_by_one_are_those_of_the_whole_table() {
    let all = common::jvm_libraries().into_iter();
    let all = all.chain(common::mapped_libraries());
    for path in all.chain(common::system_libraries()) {
        let data = std::fs::read(&path).unwrap();
        let elf = Elf::parse(&data).unwrap();
        let direct = elf.direct();
        let direct = direct.unwrap_or_else(|| panic!("{}", path.display()));
        let whole = elf.unwind_table().unwrap();
        let ends = whole.rows().iter().skip(1).map(|row| row.offset);
        let end = whole.rows().last().unwrap().offset.saturating_add(4096);
        for (row, to) in whole.rows().iter().zip(ends.chain([end])) {
            for at in [row.offset, row.offset.midpoint(to), to - 1] {
                let found = direct.rule_in(&data, at);
                assert_eq!(found, whole.lookup(at), "{} at {at:#x}", path.display());
            }
        }
        for at in [0, 1, whole.rows()[0].offset - 1, u32::MAX] {
            let found = direct.rule_in(&data, at);
            assert_eq!(found, whole.lookup(at), "{} at {at:#x}", path.display());
        }
        println!("{}: {} rows", path.display(), whole.rows().len());
    }
}

/// Runs a DWARF expression over the made-up stack.
fn evaluate(expression: &[u8], regs: NativeRegs, stack: &MadeUpStack) -> u64 {
    let encoding = gimli::Encoding {
        address_size: 8,
        format: gimli::Format::Dwarf32,
        version: 4,
    };
    let bytes = gimli::EndianSlice::new(expression, LittleEndian);
    let mut evaluation = gimli::Expression(bytes).evaluation(encoding);
    let mut result = evaluation.evaluate().unwrap();
    loop {
        result = match result {
            gimli::EvaluationResult::Complete => break,
            gimli::EvaluationResult::RequiresRegister {
                register: X86_64::RSP,
                ..
            } => evaluation
                .resume_with_register(gimli::Value::Generic(regs.sp))
                .unwrap(),
            gimli::EvaluationResult::RequiresMemory { address, .. } => {
                let word = gimli::Value::Generic(stack.at(address));
                evaluation.resume_with_memory(word).unwrap()
            }
            other => panic!("unexpected need: {other:?}"),
        };
    }
    evaluation.value_result().unwrap().to_u64(u64::MAX).unwrap()
}

fn libc() -> Vec<u8> {
    let libraries = common::mapped_libraries();
    let libc = libraries
        .iter()
        .find(|path| path.to_string_lossy().contains("libc.so"));
    std::fs::read(libc.expect("this test program uses a shared libc")).unwrap()
}

#[test]
fn signal_frame_rule_equals_its_expressions() {
    let data = libc();
    let elf = Elf::parse(&data).unwrap();
    let table = elf.unwind_table().unwrap();
    let row = table
        .rows()
        .iter()
        .find(|row| row.rule == Rule::SignalFrame.encode())
        .unwrap();
    let pc = elf.base_svma() + u64::from(row.offset);

    let section = elf.eh_frame().unwrap();
    let frame = gimli::EhFrame::new(section.data, LittleEndian);
    let bases = gimli::BaseAddresses::default().set_eh_frame(section.svma);
    let mut context = gimli::UnwindContext::new();
    let theirs = frame
        .unwind_info_for_address(&bases, &mut context, pc, gimli::EhFrame::cie_from_offset)
        .unwrap();
    let saved_at = |register| match theirs.register(register) {
        Some(RegisterRule::Expression(expression)) => expression.get(&frame).unwrap().0.slice(),
        other => panic!("{other:?}"),
    };
    let CfaRule::Expression(cfa) = theirs.cfa() else {
        panic!("{:?}", theirs.cfa())
    };

    let stack = MadeUpStack {
        reads: Cell::new(0),
    };
    let regs = NativeRegs {
        pc,
        sp: 0x7fff_1000_0000,
        fp: 0x7fff_1000_4000,
    };
    let expected = NativeRegs {
        pc: stack.at(evaluate(saved_at(X86_64::RA), regs, &stack)),
        sp: evaluate(cfa.get(&frame).unwrap().0.slice(), regs, &stack),
        fp: stack.at(evaluate(saved_at(X86_64::RBP), regs, &stack)),
    };
    let ours = Host.unwind(&stack, Rule::SignalFrame, regs, None).unwrap();
    assert_eq!(ours, NativeStep::Interrupted(expected));
}

#[test]
fn libc_has_a_plt_ends_of_stacks_and_gaps() {
    let data = libc();
    let table = Elf::parse(&data).unwrap().unwind_table().unwrap();
    for rule in [Rule::Plt, Rule::End, Rule::Gap] {
        assert!(
            table.rows().iter().any(|row| row.rule == rule.encode()),
            "{rule:?}"
        );
    }
}
