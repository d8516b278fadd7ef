//! Names of kernel functions in a file with random access, saved by a reader of `/proc/kallsyms`
//! for later readers. Must not open it.
//!
//! The kernel prints its whole list for any name, which takes 40 ms and more of CPU time. Within
//! one boot, the list changes only where modules and generated code do. So the file records its
//! boot and its modules. A reader with the same modules may use all names. A reader with other
//! modules may use those of the kernel's own code. The file has no names of generated code (BPF
//! programs, trampolines), and none after the last function of a module or of the kernel. Such
//! addresses need the list itself.
//!
//! Layout, integers little-endian:
//! - a header of [`HEAD_LEN`] bytes: magic, number of blocks, number of the kernel's own blocks,
//!   boot, modules, check of the index of blocks
//! - the index: for each block its first address, offset and length of its text, and its check
//! - the text: lines as the kernel prints them, ascending within either kind of blocks
//!
//! A line without a name ends the function before it. A block whose check fails gives no names.

use super::{FUNCTION_LEN_MAX, Kernel, Line};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt;

const MAGIC: [u8; 8] = *b"dwellks3";
const HEAD_LEN: usize = 64;
const BLOCK_LEN: usize = 20;
/// Length of a block's text. It may exceed this by one line.
const TEXT_LEN: usize = 2048;
/// Longer texts are invalid: the longest line has some 600 bytes (`KSYM_NAME_LEN`,
/// include/linux/kallsyms.h).
const TEXT_LEN_MAX: usize = 8192;
const BLOCKS_MAX: usize = 1 << 16;
/// Files longer than this are not written.
const LEN_MAX: usize = 48 << 20;

/// The boot and the modules for which names are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    boot: [u8; 36],
    modules: u64,
}

impl Stamp {
    /// From `/proc/sys/kernel/random/boot_id` and `/proc/modules` (empty if absent); `None` if the
    /// first is not a boot id.
    #[must_use]
    pub fn new(boot_id: &[u8], modules: &[u8]) -> Option<Stamp> {
        let boot = boot_id.trim_ascii().try_into().ok()?;
        // FNV-1a. In the line of a module, the fields with the number of users and their names
        // change all the time.
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut add = |byte: u8| {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        };
        for line in modules.split(|byte| *byte == b'\n') {
            let fields = line.split(|byte| *byte == b' ');
            for (_, field) in fields.enumerate().filter(|(at, _)| matches!(at, 0 | 1 | 5)) {
                field.iter().copied().for_each(&mut add);
                add(b' ');
            }
        }
        let modules = hash;
        Some(Stamp { boot, modules })
    }
}

/// The bytes of such a file.
pub trait Source {
    /// Fills `buf` from `offset` on; `None` if that fails.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Option<()>;
}

impl Source for File {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Option<()> {
        self.read_exact_at(buf, offset).ok()
    }
}

impl Source for [u8] {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Option<()> {
        let from = usize::try_from(offset).ok()?;
        buf.copy_from_slice(self.get(from..from.checked_add(buf.len())?)?);
        Some(())
    }
}

#[derive(Clone, Copy)]
struct Block {
    first: u64,
    at: u32,
    len: u32,
    check: u32,
}

/// Like FNV-1a, but over eight bytes at a time. It detects lost or changed bytes, not malice.
fn check(bytes: &[u8]) -> u32 {
    let step = |hash: u64, word: u64| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let rest = rest.iter().map(|byte| u64::from(*byte));
    let hash = words.chain(rest).fold(0xcbf2_9ce4_8422_2325, step);
    (hash ^ (hash >> 32)) as u32
}

/// The text of a block, with its offset in the file.
type Text = RefCell<(u32, Vec<u8>)>;

/// Saved names of the current boot.
pub struct Packed<'a, S: Source + ?Sized> {
    source: &'a S,
    own: Vec<Block>,
    modules: Vec<Block>,
    knows_modules: bool,
    /// For either kind of blocks: the text read last, and its offset. Requests in order of address
    /// use the same block several times.
    last_own: Text,
    last_of_modules: Text,
    /// A part of the file was missing or changed.
    is_damaged: Cell<bool>,
}

impl<'a, S: Source + ?Sized> Packed<'a, S> {
    /// The names in `source`; `None` if it is from another boot, or is not such a file.
    pub fn open(source: &'a S, stamp: &Stamp) -> Option<Packed<'a, S>> {
        let mut head = [0u8; HEAD_LEN];
        source.read_at(&mut head, 0)?;
        let (magic, rest) = head.split_first_chunk::<8>()?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let (own, rest) = rest.split_first_chunk::<4>()?;
        let (boot, rest) = rest.split_first_chunk::<36>()?;
        let (modules, rest) = rest.split_first_chunk::<8>()?;
        let (index_check, _) = rest.split_first_chunk::<4>()?;
        let count = u32::from_le_bytes(*count) as usize;
        let own = u32::from_le_bytes(*own) as usize;
        if *magic != MAGIC || *boot != stamp.boot || count > BLOCKS_MAX || own > count {
            return None;
        }
        let knows_modules = u64::from_le_bytes(*modules) == stamp.modules;
        let mut index = vec![0u8; count * BLOCK_LEN];
        source.read_at(&mut index, HEAD_LEN as u64)?;
        if check(&index) != u32::from_le_bytes(*index_check) {
            return None;
        }
        // Parts that are not needed are not read.
        let wanted = if knows_modules { count } else { own };
        let (index, _) = index.as_chunks::<BLOCK_LEN>();
        let index = index.get(..wanted)?;
        let mut own_blocks: Vec<Block> = index.iter().filter_map(Block::parse).collect();
        let modules = own_blocks.split_off(own.min(own_blocks.len()));
        Some(Packed {
            source,
            own: own_blocks,
            modules,
            knows_modules,
            last_own: Text::default(),
            last_of_modules: Text::default(),
            is_damaged: Cell::new(false),
        })
    }

    /// Whether a part of the file that was needed is missing or changed.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.is_damaged.get()
    }

    /// Whether the file also has the functions of the present modules.
    #[must_use]
    pub fn knows_modules(&self) -> bool {
        self.knows_modules
    }

    /// Start, end and name of the function at `pc`. `None` if the list itself has to be read.
    #[must_use]
    pub fn function(&self, pc: u64) -> Option<(u64, u64, String)> {
        let (own, own_end) = self.find(&self.own, &self.last_own, pc)?;
        let (module, module_end) = self.find(&self.modules, &self.last_of_modules, pc)?;
        let (start, name) = match (own, module) {
            (Some(own), Some(module)) if module.0 > own.0 => module,
            (own, module) => own.or(module)?,
        };
        let longest = start.saturating_add(FUNCTION_LEN_MAX);
        let end = own_end.min(module_end).min(longest);
        // An unnamed line is the end of the function before it.
        (pc < end && !name.is_empty()).then_some((start, end, name))
    }

    /// The last function of these blocks that begins at or before `pc`, and the start of the next
    /// one. `None` if the file cannot be read.
    fn find(&self, blocks: &[Block], last: &Text, pc: u64) -> Option<(Option<(u64, String)>, u64)> {
        let after = blocks.partition_point(|block| block.first <= pc);
        let mut end = blocks.get(after).map_or(u64::MAX, |next| next.first);
        let Some(block) = after.checked_sub(1).and_then(|last| blocks.get(last)) else {
            return Some((None, end));
        };
        let mut last = last.borrow_mut();
        let (at, text) = &mut *last;
        // The offset of a text is never 0, because the header is there.
        if *at != block.at {
            text.resize(block.len as usize, 0);
            let is_read = self.source.read_at(text, u64::from(block.at));
            if is_read.is_none() || check(text) != block.check {
                self.is_damaged.set(true);
                *at = 0;
                return None;
            }
            *at = block.at;
        }
        let mut found = None;
        for line in text.split(|byte| *byte == b'\n').filter_map(Line::parse) {
            if line.start > pc {
                end = end.min(line.start);
                break;
            }
            found = Some(line);
        }
        let found = found?;
        Some((Some((found.start, found.name()?.to_owned())), end))
    }
}

impl Block {
    fn parse(bytes: &[u8; BLOCK_LEN]) -> Option<Block> {
        let (first, rest) = bytes.split_first_chunk::<8>()?;
        let (at, rest) = rest.split_first_chunk::<4>()?;
        let (len, rest) = rest.split_first_chunk::<4>()?;
        let (check, _) = rest.split_first_chunk::<4>()?;
        let len = u32::from_le_bytes(*len);
        (len as usize <= TEXT_LEN_MAX).then(|| Block {
            first: u64::from_le_bytes(*first),
            at: u32::from_le_bytes(*at),
            len,
            check: u32::from_le_bytes(*check),
        })
    }
}

/// Texts of one kind, split into blocks.
#[derive(Default)]
struct Writer {
    text: Vec<u8>,
    blocks: Vec<Block>,
    last: Option<u64>,
}

impl Writer {
    /// Adds a function, or the end of the previous one. The first of several at one address counts.
    fn add(&mut self, start: u64, name: &str) {
        if self.last.is_some_and(|last| last >= start) {
            return;
        }
        self.last = Some(start);
        let at = self.text.len();
        let is_full = self
            .blocks
            .last()
            .is_none_or(|it| at - it.at as usize >= TEXT_LEN);
        if is_full {
            self.blocks.push(Block {
                first: start,
                at: at as u32,
                len: 0,
                check: 0,
            });
        }
        self.text
            .extend_from_slice(format!("{start:x} t {name}\n").as_bytes());
        if let Some(block) = self.blocks.last_mut() {
            block.len = (self.text.len() - block.at as usize) as u32;
        }
    }
}

impl Kernel {
    /// All known names as such a file; `None` without names. Takes 10 ms and more.
    #[must_use]
    pub fn packed(&self, stamp: &Stamp) -> Option<Vec<u8>> {
        let (own, modules) = (self.pack_own(), self.pack_others());
        let blocks = own.blocks.len() + modules.blocks.len();
        let head = HEAD_LEN + blocks * BLOCK_LEN;
        let len = head + own.text.len() + modules.text.len();
        if blocks == 0 || blocks > BLOCKS_MAX || len > LEN_MAX {
            return None;
        }
        let mut file = Vec::with_capacity(len);
        file.extend_from_slice(&MAGIC);
        file.extend_from_slice(&(blocks as u32).to_le_bytes());
        file.extend_from_slice(&(own.blocks.len() as u32).to_le_bytes());
        file.extend_from_slice(&stamp.boot);
        // Modules are known only if the whole list was read.
        let known = if self.is_complete {
            stamp.modules
        } else {
            !stamp.modules
        };
        file.extend_from_slice(&known.to_le_bytes());
        file.resize(HEAD_LEN, 0);
        let mut before = head;
        for part in [&own, &modules] {
            for block in &part.blocks {
                file.extend_from_slice(&block.first.to_le_bytes());
                file.extend_from_slice(&((before + block.at as usize) as u32).to_le_bytes());
                file.extend_from_slice(&block.len.to_le_bytes());
                let text = part.text.get(block.at as usize..)?;
                let check = check(text.get(..block.len as usize)?);
                file.extend_from_slice(&check.to_le_bytes());
            }
            before += part.text.len();
        }
        let index = check(file.get(HEAD_LEN..)?);
        let place = file.get_mut(HEAD_LEN - 4..HEAD_LEN)?;
        place.copy_from_slice(&index.to_le_bytes());
        file.extend_from_slice(&own.text);
        file.extend_from_slice(&modules.text);
        Some(file)
    }

    fn pack_own(&self) -> Writer {
        let text = self.text.get(..self.own_end).unwrap_or(&[]);
        let lines = text.split(|byte| *byte == b'\n').filter_map(Line::parse);
        let mut functions: Vec<(usize, Line<'_>)> =
            lines.filter(Line::is_function).enumerate().collect();
        // Blocks ascend, but the lines in a block may not. The first of several names counts.
        functions.sort_unstable_by_key(|(at, line)| (line.start, *at));
        let mut writer = Writer::default();
        let last = functions.last().map(|(_, line)| line.start);
        for (_, line) in functions {
            // The end of the last function is unknown.
            let name = line.name().filter(|_| Some(line.start) != last);
            writer.add(line.start, name.unwrap_or_default());
        }
        writer
    }

    fn pack_others(&self) -> Writer {
        let mut writer = Writer::default();
        if !self.is_complete {
            return writer;
        }
        let line = |at: usize| {
            let text = self.text.get(at..)?;
            text.split(|byte| *byte == b'\n')
                .next()
                .and_then(Line::parse)
        };
        let mut lines = self.others.iter().filter_map(|it| line(it.at)).peekable();
        while let Some(line) = lines.next() {
            // Later lines with this address are other names of the same function.
            while lines.next_if(|next| next.start == line.start).is_some() {}
            let module = line.module();
            let is_followed = lines.peek().is_some_and(|next| next.module() == module);
            let is_kept = is_followed && !is_generated(module);
            let name = line.name().filter(|_| is_kept);
            writer.add(line.start, name.unwrap_or_default());
        }
        writer
    }
}

/// Whether code of this name appears and disappears without a module (`get_ksymbol_bpf`,
/// `get_ksymbol_ftrace_mod` and others in kernel/kallsyms.c).
fn is_generated(module: &[u8]) -> bool {
    let name = module.trim_ascii();
    name == b"[bpf]" || name.starts_with(b"[__builtin__")
}

#[cfg(test)]
mod tests;
