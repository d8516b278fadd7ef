//! Walks as files: registers and the memory that one walk read, to replay anywhere.
//!
//! [`Recorder`] stands between a walker and its memory and notes each read. [`Frozen`] is the
//! result: text (see [`Frozen::to_text`]), and a memory to walk again. So a failed walk of a
//! production JVM becomes a small file that can be replayed on any machine. The walker is tested on
//! the frames of every JDK without that JDK. A file holds addresses and stack words, like a small
//! part of a core dump.
#![forbid(unsafe_code)]

mod noted;
mod registers;
mod text;

pub use noted::Recorder;
pub use registers::Registers;
pub use text::ParseError;

use dwell_walker::hotspot::layout::Layout;
use dwell_walker::hotspot::{CodeCache, layout};
use dwell_walker::machine::{Aarch64, Machine, X86_64};
use dwell_walker::native::{NativeCode, Rule};
use dwell_walker::{Fault, Frame, Memory, ThreadContext, Walk, Walker};
use std::collections::BTreeMap;

/// Properties of a native address: its rule, and whether it is in the JVM's library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativePc {
    /// The packed rule; `None` if no module covers the address.
    pub rule: Option<u32>,
    /// Whether it is in libjvm.
    pub is_vm: bool,
}

/// One walk, frozen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frozen {
    /// A description of its origin, for readers.
    pub origin: String,
    /// HotSpot's layout.
    pub layout: Layout,
    /// The code cache, as words.
    pub code: [u64; dwell_walker::hotspot::codecache::CODE_CACHE_WORDS],
    /// The interrupted registers, which name the machine.
    pub regs: Registers,
    /// The thread.
    pub thread: ThreadContext,
    /// The aligned words that were read; `None` where the read failed.
    pub words: BTreeMap<u64, Option<u64>>,
    /// The native addresses that the walk asked about.
    pub native: BTreeMap<u64, NativePc>,
    /// Frames of the walk, one line each: a replay must yield the same.
    pub frames: Vec<Frame>,
    /// The outcome: `complete` or a failure's name.
    pub outcome: String,
}

impl Memory for Frozen {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        let aligned = addr & !7;
        let one = |at: u64| self.words.get(&at).copied().flatten().ok_or(Fault { addr });
        let low = one(aligned)?;
        match addr & 7 {
            0 => Ok(low),
            n => {
                let high = one(aligned.wrapping_add(8))?;
                Ok((low >> (n * 8)) | (high << (64 - n * 8)))
            }
        }
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        for (i, byte) in buf.iter_mut().enumerate() {
            *byte = self.u8(addr.wrapping_add(i as u64))?;
        }
        Ok(())
    }
}

impl NativeCode for Frozen {
    fn rule(&self, pc: u64) -> Option<Rule> {
        self.native.get(&pc).and_then(|n| n.rule).map(Rule::decode)
    }

    fn is_vm(&self, pc: u64) -> bool {
        self.native.get(&pc).is_some_and(|n| n.is_vm)
    }
}

impl Frozen {
    /// Repeats the walk, into `frames`.
    pub fn walk(&self, frames: &mut [Frame]) -> Walk {
        self.walk_over(self, frames)
    }

    /// Repeats the walk over `mem`, which serves the words of this walk in its own way, such as
    /// with faults.
    pub fn walk_over<M: Memory>(&self, mem: &M, frames: &mut [Frame]) -> Walk {
        self.walk_over_both(mem, self, frames)
    }

    /// Repeats the walk over a `mem` and a map of native code that serve the data of this walk.
    pub fn walk_over_both<M: Memory, N: NativeCode>(
        &self,
        mem: &M,
        native: &N,
        frames: &mut [Frame],
    ) -> Walk {
        match self.regs {
            Registers::X86_64(regs) => self.walk_on(X86_64, regs, mem, native, frames),
            Registers::Aarch64(regs) => self.walk_on(Aarch64, regs, mem, native, frames),
        }
    }

    fn walk_on<M: Memory, N: NativeCode, P: Machine>(
        &self,
        machine: P,
        regs: P::Regs,
        mem: &M,
        native: &N,
        frames: &mut [Frame],
    ) -> Walk {
        let code = CodeCache::from_words(&self.code);
        let walker = Walker {
            machine,
            mem,
            layout: &self.layout,
            code: &code,
            native,
            cache: None,
        };
        walker.walk(regs, &self.thread, frames)
    }
}

/// Names and values that are in none of the tables, in the order of the file.
fn extra_values(extra: &layout::Extra) -> [(&'static str, u64); 20] {
    [
        ("interpreter_bcp", extra.interpreter_bcp as u64),
        ("unsigned5_base", u64::from(extra.unsigned5_base)),
        (
            "frame_complete_short",
            u64::from(extra.frame_complete_short),
        ),
        ("return_barrier", extra.return_barrier),
        ("cont_entry", extra.cont_entry),
        ("cont_return_pc", extra.cont_return_pc),
        ("chunk_tail", extra.chunk.cont_tail),
        ("chunk_sp", extra.chunk.sp),
        ("chunk_size", extra.chunk.size),
        ("chunk_bottom", extra.chunk.bottom),
        ("chunk_argsize", extra.chunk.argsize),
        ("chunk_parent", extra.chunk.parent),
        ("chunk_stack", extra.chunk.stack),
        ("narrow_oops", u64::from(extra.chunk.narrow_oops)),
        ("colored_oops", u64::from(extra.chunk.colored_oops)),
        ("z_bad_mask_at", extra.moves.bad_mask_at),
        ("z_offset_mask_value", extra.moves.offset_mask),
        ("z_young", extra.moves.young),
        ("z_old", extra.moves.old),
        ("z_good_mask_at", extra.moves.good_mask_at),
    ]
}

fn set_extra(extra: &mut layout::Extra, name: &str, value: u64) -> bool {
    match name {
        "interpreter_bcp" => extra.interpreter_bcp = value as i64,
        "unsigned5_base" => extra.unsigned5_base = value as u8,
        "frame_complete_short" => extra.frame_complete_short = value != 0,
        "return_barrier" => extra.return_barrier = value,
        "cont_entry" => extra.cont_entry = value,
        "cont_return_pc" => extra.cont_return_pc = value,
        "chunk_tail" => extra.chunk.cont_tail = value,
        "chunk_sp" => extra.chunk.sp = value,
        "chunk_size" => extra.chunk.size = value,
        "chunk_bottom" => extra.chunk.bottom = value,
        "chunk_argsize" => extra.chunk.argsize = value,
        "chunk_parent" => extra.chunk.parent = value,
        "chunk_stack" => extra.chunk.stack = value,
        "colored_oops" => extra.chunk.colored_oops = value != 0,
        "narrow_oops" => extra.chunk.narrow_oops = value != 0,
        "z_bad_mask_at" => extra.moves.bad_mask_at = value,
        "z_offset_mask_value" => extra.moves.offset_mask = value,
        "z_young" => extra.moves.young = value,
        "z_old" => extra.moves.old = value,
        "z_good_mask_at" => extra.moves.good_mask_at = value,
        _ => return false,
    }
    true
}
