//! Function symbols by address, and definitions by name.
//!
//! A table entry takes 12 bytes and borrows its name from the file. [`Symbols::into_owned`] copies
//! the chosen names for callers that drop the file. This module must not demangle.

use std::borrow::Cow;
use std::ops::Range;

use object::LittleEndian as LE;
use object::elf::{self, Sym64};

use super::Elf;

/// Longer names are truncated.
const NAME_LEN_MAX: usize = 4096;
/// Maximum number of bytes compared to choose between two names. A file can give a million names to
/// one address.
const NAME_COMPARED_MAX: usize = 256;
/// How many enclosing symbols a lookup tries before it gives up.
const NESTING_MAX: usize = 32;

/// A function found by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// The raw (mangled) name, without a symbol version.
    pub name: &'a [u8],
    /// First address, relative to [`Elf::base_svma`].
    pub offset: u32,
    /// Length in bytes; where the file states none, up to the next symbol.
    pub len: u32,
}

/// The definition of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Address in the file's own address space.
    pub svma: u64,
    /// Length in bytes as stated by the file.
    pub len: u64,
    /// Whether it is code.
    pub is_function: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    start: u32,
    len: u32,
    name: u32,
}

/// Function symbols of one file, sorted by address, one per address.
#[derive(Clone, Debug)]
pub struct Symbols<'data> {
    entries: Vec<Entry>,
    names: Cow<'data, [u8]>,
}

/// Function symbols of one file, sorted by address, one per address, without their names.
#[derive(Clone, Debug, Default)]
pub struct SymbolIndex {
    entries: Vec<Entry>,
    /// The section the names belong to.
    kind: Option<elf::SectionType>,
}

impl<'data> Elf<'data> {
    /// All function symbols of `.symtab`, or of `.dynsym` if the file is stripped.
    ///
    /// If an address has several names, the best one is kept. The order is: functions before bare
    /// labels, with a size before without, global before weak before local, fewer leading
    /// underscores, shorter, alphabetical.
    #[must_use]
    pub fn symbols(&self) -> Symbols<'data> {
        let SymbolIndex { entries, kind } = self.symbol_index();
        let table = kind.and_then(|kind| self.symbol_table(kind));
        let names = table.map_or(&[][..], |(_, names)| names);
        Symbols {
            entries,
            names: Cow::Borrowed(names),
        }
    }

    /// Finds one defined symbol, function or data, without building a table.
    #[must_use]
    pub fn find_symbol(&self, name: &[u8]) -> Option<Definition> {
        [elf::SHT_DYNSYM, elf::SHT_SYMTAB]
            .into_iter()
            .find_map(|kind| {
                let (symbols, names) = self.symbol_table(kind)?;
                let symbol = symbols.iter().find(|symbol| {
                    let at = symbol.st_name.get(LE) as usize;
                    let rest = names.get(at..).and_then(|names| names.strip_prefix(name));
                    let ends = matches!(rest.and_then(<[u8]>::first), Some(0 | b'@'));
                    ends && is_defined(symbol) && symbol.st_type() != elf::STT_TLS
                })?;
                Some(Definition {
                    svma: symbol.st_value.get(LE),
                    len: symbol.st_size.get(LE),
                    is_function: is_function(symbol),
                })
            })
    }

    /// Offset of an exported thread-local variable in the blocks of threads.
    #[must_use]
    pub fn find_thread_local(&self, name: &[u8]) -> Option<u64> {
        let (symbols, names) = self.symbol_table(elf::SHT_DYNSYM)?;
        let symbol = symbols.iter().find(|symbol| {
            symbol.st_type() == elf::STT_TLS
                && is_defined(symbol)
                && prefix_at(names, symbol.st_name.get(LE), NAME_LEN_MAX) == name
        })?;
        Some(symbol.st_value.get(LE))
    }

    /// The table of [`Elf::symbols`] without the names. A caller keeps it and parses the file again
    /// when it needs names: building the table takes some 100 ns per symbol.
    #[must_use]
    pub fn symbol_index(&self) -> SymbolIndex {
        for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
            if let Some((symbols, names)) = self.symbol_table(kind) {
                let entries = self.entries(symbols, names);
                if !entries.is_empty() {
                    let kind = Some(kind);
                    return SymbolIndex { entries, kind };
                }
            }
        }
        SymbolIndex::default()
    }

    /// The innermost function around `offset` (from [`Elf::base_svma`]), by an index of this file.
    #[must_use]
    pub fn symbol_at(&self, index: &SymbolIndex, offset: u32) -> Option<Symbol<'data>> {
        let (_, names) = self.symbol_table(index.kind?)?;
        Some(find(&index.entries, offset)?.symbol(names))
    }

    /// Function symbols of this library from another file's table.
    pub(super) fn symbols_of(&self, symbols: &[Sym64<LE>], names: Vec<u8>) -> Symbols<'static> {
        Symbols {
            entries: self.entries(symbols, &names),
            names: Cow::Owned(names),
        }
    }

    fn entries(&self, symbols: &[Sym64<LE>], names: &[u8]) -> Vec<Entry> {
        let base = self.base_svma();
        let text = self.text_ranges();
        let mut ranked: Vec<(Entry, Rank)> = (symbols.iter())
            .filter_map(|symbol| ranked_entry(symbol, names, base, &text))
            .collect();
        ranked.sort_unstable_by_key(|(entry, rank)| (entry.start, *rank, entry.name));
        // Names are compared here and not by the sort, so that each is compared at most twice.
        ranked.dedup_by(|(next, next_rank), (kept, kept_rank)| {
            let is_same = next.start == kept.start;
            if is_same && next_rank == kept_rank {
                let name = |entry: &Entry| prefix_at(names, entry.name, NAME_COMPARED_MAX);
                let (a, b) = (name(next), name(kept));
                if name_order(a, b).is_lt() {
                    *kept = *next;
                }
            }
            is_same
        });
        let mut entries: Vec<Entry> = ranked.into_iter().map(|(entry, _)| entry).collect();
        entries.shrink_to_fit();
        fill_lengths(&mut entries, base, &text);
        entries
    }
}

/// Lower ranks win.
type Rank = u8;

fn is_defined(symbol: &Sym64<LE>) -> bool {
    let section = symbol.st_shndx.get(LE);
    section != elf::SHN_UNDEF && section != elf::SHN_ABS && section != elf::SHN_COMMON
}

fn is_function(symbol: &Sym64<LE>) -> bool {
    matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC)
}

fn ranked_entry(
    symbol: &Sym64<LE>,
    names: &[u8],
    base: u64,
    text: &[Range<u64>],
) -> Option<(Entry, Rank)> {
    let is_label = symbol.st_type() == elf::STT_NOTYPE;
    if !(is_function(symbol) || is_label) || !is_defined(symbol) {
        return None;
    }
    let svma = symbol.st_value.get(LE);
    let text = text.iter().find(|range| range.contains(&svma))?;
    let start = u32::try_from(svma.checked_sub(base)?).ok()?;
    // A size beyond the segment is wrong.
    let len = symbol.st_size.get(LE).min(text.end - svma);
    let len = u32::try_from(len).ok()?;
    let name = symbol.st_name.get(LE);
    let first = names.get(name as usize).copied().unwrap_or(0);
    // Mapping symbols ($x, $d) and assembler labels (.L) name no function.
    if first == 0 || is_label && matches!(first, b'$' | b'.') {
        return None;
    }
    let binding = match symbol.st_bind() {
        elf::STB_GLOBAL | elf::STB_GNU_UNIQUE => 0,
        elf::STB_WEAK => 1,
        _ => 2,
    };
    let rank = u8::from(is_label) << 3 | u8::from(len == 0) << 2 | binding;
    Some((Entry { start, len, name }, rank))
}

fn name_order(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let underscores = |name: &[u8]| name.iter().take_while(|byte| **byte == b'_').count();
    (underscores(a), a.len(), a).cmp(&(underscores(b), b.len(), b))
}

/// The name at `at`, up to its end, its version, or [`NAME_LEN_MAX`].
fn name_at(names: &[u8], at: u32) -> &[u8] {
    prefix_at(names, at, NAME_LEN_MAX)
}

fn prefix_at(names: &[u8], at: u32, len_max: usize) -> &[u8] {
    let rest = names.get(at as usize..).unwrap_or(&[]);
    let rest = rest.get(..len_max).unwrap_or(rest);
    let end = rest
        .iter()
        .enumerate()
        .position(|(i, byte)| *byte == 0 || *byte == b'@' && i > 0);
    rest.get(..end.unwrap_or(rest.len())).unwrap_or(&[])
}

/// Gives entries without a size the space up to the next entry or the end of their segment.
fn fill_lengths(entries: &mut [Entry], base: u64, text: &[Range<u64>]) {
    let mut next_start = u32::MAX;
    for entry in entries.iter_mut().rev() {
        if entry.len == 0 {
            let svma = base + u64::from(entry.start);
            let range = text.iter().find(|range| range.contains(&svma));
            let left = range.map_or(0, |range| range.end - svma);
            let left = u32::try_from(left).unwrap_or(u32::MAX);
            entry.len = left.min(next_start - entry.start);
        }
        next_start = entry.start;
    }
}

fn find(entries: &[Entry], offset: u32) -> Option<&Entry> {
    let after = entries.partition_point(|entry| entry.start <= offset);
    let mut before = entries.get(..after)?.iter().rev().take(NESTING_MAX);
    before.find(|entry| offset - entry.start < entry.len)
}

impl Entry {
    fn symbol<'a>(&self, names: &'a [u8]) -> Symbol<'a> {
        Symbol {
            name: name_at(names, self.name),
            offset: self.start,
            len: self.len,
        }
    }
}

impl Symbols<'_> {
    /// Number of symbols.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The symbols in ascending order of address.
    pub fn iter(&self) -> impl Iterator<Item = Symbol<'_>> {
        self.entries.iter().map(|entry| entry.symbol(&self.names))
    }

    /// The innermost function around `offset` (from the module's base).
    #[must_use]
    pub fn lookup(&self, offset: u32) -> Option<Symbol<'_>> {
        self.find(offset).map(|entry| entry.symbol(&self.names))
    }

    fn find(&self, offset: u32) -> Option<&Entry> {
        find(&self.entries, offset)
    }

    /// Bytes of heap memory held.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let names = match &self.names {
            Cow::Borrowed(_) => 0,
            Cow::Owned(names) => names.capacity(),
        };
        self.entries.capacity() * size_of::<Entry>() + names
    }

    /// Copies the names, so that the file can be unmapped.
    ///
    /// The copied names take no more memory than the file's own string table. A damaged file may
    /// need more (overlapping names); its remaining symbols are left out.
    #[must_use]
    pub fn into_owned(self) -> Symbols<'static> {
        let mut arena = Vec::new();
        let mut entries = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let name = name_at(&self.names, entry.name);
            if arena.len() + name.len() >= self.names.len() {
                break;
            }
            let Ok(at) = u32::try_from(arena.len()) else {
                break;
            };
            arena.extend_from_slice(name);
            arena.push(0);
            entries.push(Entry { name: at, ..*entry });
        }
        arena.shrink_to_fit();
        entries.shrink_to_fit();
        Symbols {
            entries,
            names: Cow::Owned(arena),
        }
    }
}
