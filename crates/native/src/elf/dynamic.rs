//! Symbols as the loader finds them: through the dynamic segment, which a library needs to be
//! loaded. Section headers are not needed for that, and tools such as `strip
//! --strip-section-headers` remove them.

use object::LittleEndian as LE;
use object::elf::{self, Dyn64, Sym64};

use super::Elf;

/// Maximum number of entries read; real files have about 30.
const ENTRIES_MAX: usize = 4096;
/// Maximum number of exported symbols; more are not real.
const SYMBOLS_MAX: usize = 1 << 24;

/// The entries of interest: addresses in the file's own address space, and a length.
#[derive(Clone, Copy, Default)]
struct Entries {
    symbols: Option<u64>,
    names: Option<u64>,
    names_len: u64,
    hash: Option<u64>,
    gnu_hash: Option<u64>,
}

impl<'data> Elf<'data> {
    /// The exported symbols and their names. The dynamic segment has their address, and the hash
    /// table their number.
    pub(super) fn dynamic_symbols(&self) -> Option<(&'data [Sym64<LE>], &'data [u8])> {
        let entries = self.dynamic_entries()?;
        let names = self.loaded_bytes(entries.names?)?;
        let names = names.get(..usize::try_from(entries.names_len).ok()?)?;
        let count = (entries.hash.and_then(|at| self.count_by_hash(at)))
            .or_else(|| self.count_by_gnu_hash(entries.gnu_hash?))?;
        let bytes = self.loaded_bytes(entries.symbols?)?;
        let count = count.min(bytes.len() / size_of::<Sym64<LE>>());
        let (symbols, _) = object::pod::slice_from_bytes(bytes, count).ok()?;
        Some((symbols, names))
    }

    fn dynamic_entries(&self) -> Option<Entries> {
        let header = (self.program_headers.iter())
            .find(|header| header.p_type.get(LE) == elf::PT_DYNAMIC)?;
        let bytes = self.file_bytes(header.p_offset.get(LE), header.p_filesz.get(LE))?;
        let count = (bytes.len() / size_of::<Dyn64<LE>>()).min(ENTRIES_MAX);
        let (list, _) = object::pod::slice_from_bytes::<Dyn64<LE>>(bytes, count).ok()?;
        let mut entries = Entries::default();
        for entry in list {
            let value = entry.d_val.get(LE);
            match entry.d_tag.get(LE) {
                elf::DT_NULL => break,
                elf::DT_SYMTAB => entries.symbols = Some(value),
                elf::DT_STRTAB => entries.names = Some(value),
                elf::DT_STRSZ => entries.names_len = value,
                elf::DT_HASH => entries.hash = Some(value),
                elf::DT_GNU_HASH => entries.gnu_hash = Some(value),
                _ => {}
            }
        }
        Some(entries)
    }

    /// The older hash table has a chain entry for each symbol.
    fn count_by_hash(&self, at: u64) -> Option<usize> {
        let count = word(self.loaded_bytes(at)?, 1)? as usize;
        (count <= SYMBOLS_MAX).then_some(count)
    }

    /// The newer one lists symbols by bucket, each bucket's in a row up to one with bit 0 set. So
    /// the last symbol is at the end of the bucket that begins last.
    fn count_by_gnu_hash(&self, at: u64) -> Option<usize> {
        const HEAD_WORDS: usize = 4;
        let table = self.loaded_bytes(at)?;
        let field = |index| word(table, index).map(|value| value as usize);
        let (buckets, first, bloom_words) = (field(0)?, field(1)?, field(2)?);
        let begin = bloom_words.checked_mul(2)?.checked_add(HEAD_WORDS)?;
        if buckets > SYMBOLS_MAX {
            return None;
        }
        let starts = (0..buckets).map_while(|bucket| field(begin.checked_add(bucket)?));
        let mut last = starts.max()?;
        // Without a bucket in use, only symbols that are not hashed (imported ones) are there.
        if last < first {
            return Some(first.min(SYMBOLS_MAX));
        }
        let chains = begin.checked_add(buckets)?;
        while word(table, chains.checked_add(last - first)?)? & 1 == 0 {
            last += 1;
            if last > SYMBOLS_MAX {
                return None;
            }
        }
        Some(last + 1)
    }
}

/// The 32-bit word with this index.
fn word(table: &[u8], index: usize) -> Option<u32> {
    let at = index.checked_mul(4)?;
    let bytes = table.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{FUNC, GLOBAL, Image, TEXT, TEXT_SVMA};
    use super::*;

    /// Address of the read-only segment, which begins the file.
    const BASE: u64 = 0x40_0000;
    const DYNAMIC: u64 = 0x300;
    const SYMBOLS: u64 = 0x400;
    const NAMES: u64 = 0x500;
    const HASH: u64 = 0x600;
    const GNU_HASH: u64 = 0x700;
    const SEGMENT_LEN: u64 = 0x1000;

    fn write(file: &mut [u8], at: u64, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        file[at as usize..][..bytes.len()].copy_from_slice(&bytes);
    }

    /// A library without section headers, with two functions and the hash tables in `tags`.
    fn library(tags: &[(u32, u64)]) -> Vec<u8> {
        let mut image = Image::new();
        image.segments.push((2, 4, DYNAMIC, BASE + DYNAMIC, 0x100));
        let mut file = image.bytes();
        file[40..48].fill(0);
        file[60..64].fill(0);
        let first = [(6, BASE + SYMBOLS), (5, BASE + NAMES), (10, 9)];
        for (i, (tag, value)) in first.iter().chain(tags).enumerate() {
            let words = [*tag, 0, *value as u32, (*value >> 32) as u32];
            write(&mut file, DYNAMIC + 16 * i as u64, &words);
        }
        file[NAMES as usize..][..9].copy_from_slice(b"\0one\0two\0");
        let info = u32::from(FUNC | GLOBAL) | u32::from(TEXT) << 16;
        for (i, name) in [(1, 1), (2, 5)] {
            let svma = TEXT_SVMA as u32 + 16 * i;
            let symbol = [name, info, svma, 0, 8, 0];
            write(&mut file, SYMBOLS + 24 * u64::from(i), &symbol);
        }
        write(&mut file, HASH, &[1, 3]);
        // Two buckets, symbols from 1 on, one word of 8 bytes before them. Both are in the first.
        write(&mut file, GNU_HASH, &[2, 1, 1, 0, 0, 0, 1, 0, 0x10, 0x21]);
        file
    }

    fn names(file: &[u8]) -> Vec<Vec<u8>> {
        let symbols = Elf::parse(file).unwrap().symbols();
        symbols.iter().map(|symbol| symbol.name.to_vec()).collect()
    }

    #[test]
    fn dynamic_symbols_are_found_by_either_hash_table() {
        let both = [b"one".to_vec(), b"two".to_vec()];
        for tag in [(4, BASE + HASH), (0x6fff_fef5, BASE + GNU_HASH)] {
            let file = library(&[tag]);
            assert_eq!(names(&file), both);
            let found = Elf::parse(&file).unwrap().find_symbol(b"two").unwrap();
            assert_eq!((found.svma, found.len), (TEXT_SVMA + 32, 8));
        }
        assert!(names(&library(&[])).is_empty());
        let ended = [(0, 0), (4, BASE + HASH)];
        assert!(names(&library(&ended)).is_empty(), "after the end");
    }

    #[test]
    fn damaged_dynamic_segment_gives_no_symbols() {
        let tag = (0x6fff_fef5, BASE + GNU_HASH);
        let chain_at = GNU_HASH + 4 * 8;
        let mut endless = library(&[tag]);
        endless[chain_at as usize..SEGMENT_LEN as usize].fill(2);
        assert!(names(&endless).is_empty());
        for (field, value) in [(0, u32::MAX), (2, u32::MAX), (6, u32::MAX)] {
            let mut file = library(&[tag]);
            write(&mut file, GNU_HASH + 4 * field, &[value]);
            assert!(names(&file).is_empty(), "{field}");
        }
        for tag in [(4, 0), (4, BASE + SEGMENT_LEN - 2), (10, u64::MAX)] {
            assert!(names(&library(&[tag])).is_empty());
        }
        // More symbols than the segment has room for.
        let mut file = library(&[(4, BASE + HASH)]);
        write(&mut file, HASH, &[1, 1 << 20]);
        assert_eq!(names(&file).len(), 2);
    }
}
