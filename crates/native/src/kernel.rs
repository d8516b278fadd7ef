//! Names of kernel functions: `/proc/kallsyms`, read as far as needed and kept as text. Must not
//! open it.
//!
//! The kernel takes some 0.3 us of CPU time to print a line of the file. The file has a hundred
//! thousand lines and more, and no part of it can be skipped. So it is read once, when the
//! addresses that need a name are known, and only to the end of the code with the highest of them.
//! The kernel's own symbols come first, by address. The part after its code (on most systems half
//! of the file) is not read. Only a later call that needs that part reads the whole file.
//!
//! The data stay text, with the address of about every 4 KiB noted. Only few addresses need a name,
//! and building a table of all lines takes longer than finding these.

pub mod packed;

use std::io::{ErrorKind, Read};

/// An address farther than this above the nearest function belongs to code without a name.
const FUNCTION_LEN_MAX: u64 = 1 << 20;
/// Maximum length of the kept text; the largest files seen have 15 MB.
const TEXT_MAX: usize = 48 << 20;
/// The kernel returns at most a page per read.
const READ_BYTES: usize = 4096;
/// Minimum length of a block.
const BLOCK_MIN: usize = 2048;

/// A function of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// Its first address.
    pub start: u64,
    /// End of the addresses with this name: the start of the next function, or less.
    pub end: u64,
    /// Name of the function.
    pub name: &'a str,
}

/// Whole lines in ascending order.
struct Block {
    first: u64,
    at: usize,
}

/// A function of the lines that have no order.
struct Other {
    start: u64,
    at: usize,
}

/// Known kernel functions.
#[derive(Default)]
pub struct Kernel {
    text: Vec<u8>,
    /// The kernel's own symbols.
    blocks: Vec<Block>,
    /// Functions of modules and of generated code, which are not sorted.
    others: Vec<Other>,
    /// Offset of the text that is not in a block yet.
    taken: usize,
    /// End of the last block.
    own_end: usize,
    /// Addresses ascend up to here.
    reached: u64,
    /// The same without the last block.
    reached_before: u64,
    /// The lines no longer ascend.
    is_mixed: bool,
    /// The file was opened before.
    was_read: bool,
    /// The file has no further data.
    is_complete: bool,
}

/// A line: an address, a kind, a name, and for modules a tab and `[module]`.
struct Line<'a> {
    start: u64,
    kind: u8,
    name: &'a [u8],
}

impl<'a> Line<'a> {
    fn parse(line: &'a [u8]) -> Option<Line<'a>> {
        let mut start = 0u64;
        let mut rest = line;
        while let [byte, after @ ..] = rest
            && *byte != b' '
        {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ => return None,
            };
            start = start << 4 | u64::from(digit);
            rest = after;
        }
        match rest {
            [b' ', kind, b' ', name @ ..] => Some(Line {
                start,
                kind: *kind,
                name,
            }),
            _ => None,
        }
    }

    /// A zero address means that addresses are hidden from this process.
    fn is_function(&self) -> bool {
        self.start != 0 && matches!(self.kind, b't' | b'T' | b'w' | b'W')
    }

    fn is_of_module(&self) -> bool {
        self.name.contains(&b'\t')
    }

    /// The text after the name: nothing, or a tab and `[module]`.
    fn module(&self) -> &'a [u8] {
        let tab = self.name.iter().position(|b| *b == b'\t');
        tab.and_then(|tab| self.name.get(tab..)).unwrap_or(&[])
    }

    fn name(&self) -> Option<&'a str> {
        let name = self.name.split(|b| *b == b'\t').next()?;
        std::str::from_utf8(name).ok()
    }
}

impl Kernel {
    /// Reads the whole file, if it could be opened. `between` is called now and then, because
    /// reading takes long.
    pub fn load(&mut self, file: std::io::Result<impl Read>, between: &mut dyn FnMut()) {
        *self = Kernel::default();
        self.read(file, &mut |_| false, between);
    }

    /// Whether the whole file has been read.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Reads as much of the file as the `wanted` addresses need, unless that has been done. The
    /// second read goes to the end of the file; there is no third one.
    pub fn learn<R: Read>(
        &mut self,
        wanted: &[u64],
        open: impl FnOnce() -> std::io::Result<R>,
        between: &mut dyn FnMut(),
    ) {
        let Some(highest) = wanted.iter().max().copied() else {
            return;
        };
        if self.is_complete || wanted.iter().all(|pc| self.is_settled(*pc)) {
            return;
        }
        if self.was_read {
            return self.load(open(), between);
        }
        let mut is_tried = false;
        let mut is_enough = |kernel: &Kernel| {
            // If an address was passed but has no name, the later part of the file may have it.
            let is_passed = !is_tried && kernel.reached > highest && kernel.is_past_code();
            is_tried |= is_passed;
            is_passed && wanted.iter().all(|pc| kernel.is_settled(*pc))
        };
        self.read(open(), &mut is_enough, between);
    }

    /// Whether the later part of the file cannot change the name of `pc`: it has a name, and the
    /// kernel's own symbols continue above it. No other symbols are among those.
    fn is_settled(&self, pc: u64) -> bool {
        self.is_complete || pc < self.reached && self.function(pc).is_some()
    }

    fn read(
        &mut self,
        file: std::io::Result<impl Read>,
        is_enough: &mut dyn FnMut(&Kernel) -> bool,
        between: &mut dyn FnMut(),
    ) {
        self.was_read = true;
        let mut buf = [0u8; READ_BYTES];
        // Closed before the sort.
        let mut file = file.ok();
        while let Some(open) = &mut file {
            match open.read(&mut buf) {
                Ok(n @ 1..) => {
                    self.text.extend_from_slice(buf.get(..n).unwrap_or(&[]));
                    if self.text.len() - self.taken >= BLOCK_MIN {
                        self.take_block();
                    }
                    if self.are_hidden() || self.text.len() >= TEXT_MAX {
                        break;
                    }
                    if is_enough(self) {
                        self.text.truncate(self.taken);
                        self.text.shrink_to_fit();
                        return;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => file = None,
            }
            between();
        }
        self.text.push(b'\n');
        self.take_block();
        self.others.sort_unstable_by_key(|it| (it.start, it.at));
        if self.are_hidden() {
            self.text.clear();
            self.blocks.clear();
        }
        self.text.shrink_to_fit();
        self.is_complete = true;
    }

    /// Whether a whole block has only zero addresses: then the whole file has.
    fn are_hidden(&self) -> bool {
        self.reached == 0 && !self.blocks.is_empty()
    }

    /// Whether code has ended in the last block: the block has no functions, or there is a gap. All
    /// code is read at once, because the next addresses that need a name are in it too.
    fn is_past_code(&self) -> bool {
        let Some(last) = self.blocks.last() else {
            return false;
        };
        // There is no block before the first one.
        let is_long = |from, to: u64| from != 0 && to.saturating_sub(from) > FUNCTION_LEN_MAX;
        let text = self.text.get(last.at..self.own_end).unwrap_or(&[]);
        let mut lines = text.split(|b| *b == b'\n').filter_map(Line::parse);
        is_long(self.reached_before, last.first)
            || is_long(last.first, self.reached)
            || !lines.any(|line| line.is_function())
    }

    /// Makes a block of the whole lines that are not in a block yet.
    fn take_block(&mut self) {
        let at = self.taken;
        let rest = self.text.get(at..).unwrap_or(&[]);
        let Some(end) = rest.iter().rposition(|b| *b == b'\n') else {
            return;
        };
        let lines = rest.get(..end).unwrap_or(&[]);
        self.taken = at + end + 1;
        let first = lines.split(|b| *b == b'\n').next().and_then(Line::parse);
        let last = lines.rsplit(|b| *b == b'\n').next().and_then(Line::parse);
        if let (Some(first), Some(last)) = (first, last)
            && !self.is_mixed
            && !last.is_of_module()
            && (self.reached..=last.start).contains(&first.start)
        {
            self.reached_before = self.reached;
            self.reached = last.start;
            self.own_end = self.taken;
            let first = first.start;
            self.blocks.push(Block { first, at });
            return;
        }
        self.is_mixed = true;
        let mut line_at = at;
        for line in lines.split(|b| *b == b'\n') {
            if let Some(line) = Line::parse(line).filter(Line::is_function) {
                let (start, at) = (line.start, line_at);
                self.others.push(Other { start, at });
            }
            line_at += line.len() + 1;
        }
    }

    /// The function at `pc`, by the data read so far. The first of several names for one address
    /// counts, as in the kernel.
    #[must_use]
    pub fn function(&self, pc: u64) -> Option<Function<'_>> {
        let (own, own_end) = self.own_function(pc);
        let (other, other_end) = self.other_function(pc);
        let line = match (own, other) {
            (Some(own), Some(other)) if other.start > own.start => other,
            (own, other) => own.or(other)?,
        };
        let start = line.start;
        let longest = start.saturating_add(FUNCTION_LEN_MAX);
        let end = own_end.min(other_end).min(longest);
        let name = line.name()?;
        (pc < end).then_some(Function { start, end, name })
    }

    /// The last of the kernel's own functions that begins at or before `pc`, and the start of the
    /// next one.
    fn own_function(&self, pc: u64) -> (Option<Line<'_>>, u64) {
        let after = self.blocks.partition_point(|block| block.first <= pc);
        let next = self.blocks.get(after);
        let mut end = next.map_or(u64::MAX, |block| block.first);
        let mut text_end = next.map_or(self.own_end, |block| block.at);
        let mut found: Option<Line<'_>> = None;
        for block in self.blocks.get(..after).unwrap_or(&[]).iter().rev() {
            let text = self.text.get(block.at..text_end).unwrap_or(&[]);
            let lines = text.split(|b| *b == b'\n').filter_map(Line::parse);
            let mut best: Option<Line<'_>> = None;
            for line in lines.filter(Line::is_function) {
                if line.start > pc {
                    end = end.min(line.start);
                } else if best.as_ref().is_none_or(|best| best.start < line.start) {
                    best = Some(line);
                }
            }
            let before = found.as_ref().map_or(0, |found| found.start);
            found = best.filter(|best| best.start >= before).or(found);
            // The block before may end with another name for the same address.
            let is_first = found.as_ref().is_none_or(|it| it.start == block.first);
            if !is_first || pc - block.first > FUNCTION_LEN_MAX {
                break;
            }
            text_end = block.at;
        }
        (found, end)
    }

    /// The same for modules and generated code.
    fn other_function(&self, pc: u64) -> (Option<Line<'_>>, u64) {
        let after = self.others.partition_point(|it| it.start <= pc);
        let end = self.others.get(after).map_or(u64::MAX, |it| it.start);
        let last = after.checked_sub(1).and_then(|last| self.others.get(last));
        let line = last.and_then(|last| {
            let first = self.others.partition_point(|it| it.start < last.start);
            let text = self.text.get(self.others.get(first)?.at..)?;
            text.split(|b| *b == b'\n').next().and_then(Line::parse)
        });
        (line, end)
    }
}

#[cfg(test)]
mod tests;
