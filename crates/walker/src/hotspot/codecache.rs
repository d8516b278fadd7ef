//! The code cache: finds the blob that covers a pc (src/hotspot/share/memory/heap.cpp,
//! code/codeBlob.hpp).

use super::layout::{Layout, present};
use crate::memory::{Fault, Memory};

/// Heaps of a segmented code cache (profiled, non-profiled, non-nmethod, and 27's hot heap).
const HEAPS_MAX: usize = 8;

/// Words of [`CodeCache::to_words`].
pub const CODE_CACHE_WORDS: usize = HEAPS_MAX * 4 + 3;

/// One reserved range of code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Heap {
    low: u64,
    high: u64,
    segmap: u64,
    log2_segment: u32,
}

/// The reserved ranges of the code cache. They do not change after the VM has started.
#[derive(Clone, Copy, Debug, Default)]
pub struct CodeCache {
    heaps: [Heap; HEAPS_MAX],
    low: u64,
    high: u64,
    /// Start and end of the interpreter's code, and the return address of the call stub.
    pub(super) interpreter: (u64, u64),
    pub(super) call_stub_return: u64,
}

/// Kind of the code of a blob, as far as walking differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobKind {
    /// A compiled Java method.
    Nmethod,
    /// The wrapper of a native method (and `enterSpecial`).
    NativeNmethod,
    /// The interpreter.
    Interpreter,
    /// Adapters between the calling conventions.
    Adapter,
    /// Virtual call stubs.
    Vtable,
    /// Calls into Java by the foreign function interface.
    Upcall,
    /// Any other code.
    Stub,
}

/// A blob that covers a pc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blob {
    /// Address of the `CodeBlob`.
    pub addr: u64,
    /// Its kind.
    pub kind: BlobKind,
    /// First address of its code.
    pub code_begin: u64,
    /// Frame size in bytes; 0 if it has no fixed frame.
    pub frame_bytes: u64,
}

impl CodeCache {
    /// Reads the ranges from the VM.
    ///
    /// # Errors
    /// [`Fault`] if a structure cannot be read.
    pub fn load<M: Memory>(mem: &M, layout: &Layout) -> Result<CodeCache, Fault> {
        let mut cache = CodeCache::default();
        if present(layout.code_heaps) {
            let array = mem.word(layout.code_heaps)?;
            let len = mem.u32(array.wrapping_add(layout.array_len))?;
            let data = mem.word(array.wrapping_add(layout.array_data))?;
            for (i, slot) in cache.heaps.iter_mut().enumerate().take(len as usize) {
                let heap = mem.word(data.wrapping_add(i as u64 * 8))?;
                *slot = Heap::load(mem, layout, heap)?;
            }
        } else if let Some(slot) = cache.heaps.first_mut() {
            *slot = Heap::load(mem, layout, mem.word(layout.code_heap)?)?;
        }
        cache.bound();
        let queue = mem.word(layout.interpreter_code)?;
        let buffer = mem.word(queue.wrapping_add(layout.stub_queue_buffer))?;
        let limit = mem
            .u32(queue.wrapping_add(layout.stub_queue_limit))
            .unwrap_or(0);
        cache.interpreter = (buffer, buffer.wrapping_add(u64::from(limit)));
        cache.call_stub_return = mem.word(layout.call_stub_return)?;
        Ok(cache)
    }

    /// The ranges as words, for a frozen walk.
    #[must_use]
    pub fn to_words(&self) -> [u64; CODE_CACHE_WORDS] {
        let mut words = [0; CODE_CACHE_WORDS];
        let heaps = self.heaps.iter();
        let heaps = heaps.flat_map(|h| [h.low, h.high, h.segmap, u64::from(h.log2_segment)]);
        let rest = [
            self.interpreter.0,
            self.interpreter.1,
            self.call_stub_return,
        ];
        for (slot, value) in words.iter_mut().zip(heaps.chain(rest)) {
            *slot = value;
        }
        words
    }

    /// The inverse of [`CodeCache::to_words`].
    #[must_use]
    pub fn from_words(words: &[u64; CODE_CACHE_WORDS]) -> CodeCache {
        let mut cache = CodeCache::default();
        let (heaps, rest) = words.split_at(HEAPS_MAX * 4);
        for (heap, part) in cache.heaps.iter_mut().zip(heaps.chunks_exact(4)) {
            if let [low, high, segmap, log2] = *part {
                *heap = Heap {
                    low,
                    high,
                    segmap,
                    log2_segment: log2 as u32,
                };
            }
        }
        if let [begin, end, call_stub_return] = *rest {
            cache.interpreter = (begin, end);
            cache.call_stub_return = call_stub_return;
        }
        cache.bound();
        cache
    }

    fn bound(&mut self) {
        let used = || self.heaps.iter().filter(|h| h.high != 0);
        (self.low, self.high) = (
            used().map(|h| h.low).min().unwrap_or(0),
            used().map(|h| h.high).max().unwrap_or(0),
        );
    }

    /// Whether `pc` is between the lowest and the highest heap.
    #[inline]
    #[must_use]
    pub const fn contains(&self, pc: u64) -> bool {
        pc >= self.low && pc < self.high
    }

    /// The interpreter's code range.
    #[must_use]
    pub const fn interpreter(&self) -> (u64, u64) {
        self.interpreter
    }

    /// Whether `pc` is the return address of a call from native into Java.
    #[inline]
    #[must_use]
    pub const fn is_call_stub_return(&self, pc: u64) -> bool {
        pc == self.call_stub_return
    }

    /// The blob that covers `pc`.
    ///
    /// # Errors
    /// [`Fault`] if the segment map or the blob cannot be read.
    pub fn find<M: Memory>(
        &self,
        mem: &M,
        layout: &Layout,
        pc: u64,
    ) -> Result<Option<Blob>, Fault> {
        let Some(heap) = self.heaps.iter().find(|h| pc >= h.low && pc < h.high) else {
            return Ok(None);
        };
        let Some(start) = heap.block_of(mem, pc)? else {
            return Ok(None);
        };
        if present(layout.block_used) && mem.u8(start.wrapping_add(layout.block_used))? == 0 {
            return Ok(None);
        }
        let addr = start.wrapping_add(layout.sizeof_heap_block);
        let size = mem.u32(addr.wrapping_add(layout.blob_size))?;
        if pc >= addr.wrapping_add(u64::from(size)) {
            return Ok(None);
        }
        let blob = Blob {
            addr,
            kind: kind_of(mem, mem.word(addr.wrapping_add(layout.blob_name))?)?,
            code_begin: code_begin(mem, layout, addr)?,
            frame_bytes: frame_bytes(mem.i32(addr.wrapping_add(layout.blob_frame_size))?),
        };
        Ok(Some(blob))
    }
}

/// Larger frames are not real; the largest seen are a few KiB.
const FRAME_WORDS_MAX: i32 = 1 << 17;

fn frame_bytes(words: i32) -> u64 {
    if (1..=FRAME_WORDS_MAX).contains(&words) {
        words as u64 * 8
    } else {
        0
    }
}

fn code_begin<M: Memory>(mem: &M, layout: &Layout, blob: u64) -> Result<u64, Fault> {
    if present(layout.blob_code_begin) {
        mem.word(blob.wrapping_add(layout.blob_code_begin))
    } else {
        let offset = mem.u32(blob.wrapping_add(layout.blob_code_offset))?;
        Ok(blob.wrapping_add(u64::from(offset)))
    }
}

/// The blob's name determines the kind: the numbers of `CodeBlobKind` differ between JDKs.
fn kind_of<M: Memory>(mem: &M, name: u64) -> Result<BlobKind, Fault> {
    // Names are C strings of at least 7 bytes, in libjvm's constants or allocated with malloc. A
    // name at the end of a mapping would fault, and its blob would be skipped.
    let first = mem.word(name)?.to_le_bytes();
    Ok(match &first {
        b"nmethod\0" => BlobKind::Nmethod,
        b"native n" => BlobKind::NativeNmethod,
        b"Interpre" => BlobKind::Interpreter,
        b"I2C/C2I " => BlobKind::Adapter,
        b"vtable c" => BlobKind::Vtable,
        // Another stub's name begins so, too.
        b"upcall_s" if mem.u32(name.wrapping_add(8))?.to_le_bytes() == *b"tub\0" => {
            BlobKind::Upcall
        }
        _ => BlobKind::Stub,
    })
}

impl Heap {
    fn load<M: Memory>(mem: &M, layout: &Layout, heap: u64) -> Result<Heap, Fault> {
        let memory = heap.wrapping_add(layout.heap_memory);
        let segmap = heap.wrapping_add(layout.heap_segmap);
        Ok(Heap {
            low: mem.word(memory.wrapping_add(layout.space_low_boundary))?,
            // The reserved end, because the committed one grows after start-up.
            high: mem.word(memory.wrapping_add(layout.space_high_boundary))?,
            segmap: mem.word(segmap.wrapping_add(layout.space_low_boundary))?,
            log2_segment: mem.u32(heap.wrapping_add(layout.heap_log2_segment))?,
        })
    }

    /// The heap block that covers `pc`. Each segment map entry holds the number of segments to go
    /// back; 255 marks free space.
    fn block_of<M: Memory>(&self, mem: &M, pc: u64) -> Result<Option<u64>, Fault> {
        let mut index = pc.wrapping_sub(self.low) >> (self.log2_segment & 63);
        // A hop spans at most 254 segments; 1 GiB of 64-byte segments needs fewer hops than this.
        for _ in 0..1_000_000u32 {
            let hop = mem.u8(self.segmap.wrapping_add(index))?;
            if hop == 0xff {
                return Ok(None);
            }
            if hop == 0 {
                return Ok(Some(
                    self.low.wrapping_add(index << (self.log2_segment & 63)),
                ));
            }
            match index.checked_sub(u64::from(hop)) {
                Some(back) => index = back,
                None => return Ok(None),
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::test_memory::Bytes;

    /// Made-up offsets of structures.
    fn layout() -> Layout {
        let mut layout = Layout::EMPTY;
        (
            layout.heap_memory,
            layout.heap_segmap,
            layout.heap_log2_segment,
        ) = (8, 24, 40);
        (layout.space_low_boundary, layout.space_high_boundary) = (0, 8);
        (layout.interpreter_code, layout.call_stub_return) = (0x100, 0x108);
        (layout.stub_queue_buffer, layout.stub_queue_limit) = (8, 16);
        (layout.sizeof_heap_block, layout.block_used) = (16, 8);
        (layout.blob_name, layout.blob_size, layout.blob_frame_size) = (0, 8, 12);
        layout.blob_code_offset = 16;
        layout
    }

    /// Two heaps of 16 segments of 64 bytes, at 0x10000 and at 0x20000.
    fn memory() -> Bytes {
        let mut mem = Bytes::of_words(&[
            (0x100, &[0x200, 0x1_0050, 0x300, 0x400]),
            (0x200, &[0, 0x2_0100, 0x80]),
            (0x300, &[2, 0x310, 0x400, 0x500]),
            (0x400, &[0, 0x1_0000, 0x1_0400, 0x600, 0, 6]),
            (0x500, &[0, 0x2_0000, 0x2_0400, 0x700, 0, 6]),
            // A block of three segments from the second on, with 150 bytes after its header.
            (0x1_0040, &[0, 1, 0x800, 5 << 32 | 150, 0x28]),
            (0x2_0000, &[0, 1, 0x808, 400, 0x28]),
            (0x2_0200, &[0, 0, 0x808, 400, 0x28]),
        ]);
        mem.add(0x600, &[0xff, 0, 1, 2, 0xff, 0xff]);
        mem.add(0x700, &[0, 1, 2, 3, 1, 5, 0xff, 0xff, 0, 1, 1]);
        mem.add(0x800, b"nmethod\0");
        mem.add(0x808, b"Interpre");
        mem
    }

    fn loaded() -> CodeCache {
        let mut layout = layout();
        layout.code_heaps = 0x110;
        (layout.array_len, layout.array_data) = (0, 8);
        // The array's elements begin in the array itself.
        CodeCache::load(&memory(), &layout).unwrap()
    }

    #[test]
    fn heaps_are_those_that_the_vm_lists() {
        let cache = loaded();
        let within = [0xffff, 0x1_0000, 0x1_8000, 0x2_03ff, 0x2_0400].map(|pc| cache.contains(pc));
        assert_eq!(within, [false, true, true, true, false]);
        assert_eq!(cache.interpreter(), (0x2_0100, 0x2_0180));
        assert!(cache.is_call_stub_return(0x1_0050) && !cache.is_call_stub_return(0x1_0051));
        let words = cache.to_words();
        assert_eq!(
            words[..8],
            [0x1_0000, 0x1_0400, 0x600, 6, 0x2_0000, 0x2_0400, 0x700, 6]
        );
        assert_eq!(words[8..CODE_CACHE_WORDS - 3], [0; CODE_CACHE_WORDS - 11]);
        let again = CodeCache::from_words(&words);
        assert_eq!(again.to_words(), words);
        assert!(again.contains(0x1_0000) && !again.contains(0x2_0400));
        // JDK 8 has one heap.
        let mut layout = layout();
        layout.code_heap = 0x118;
        let cache = CodeCache::load(&memory(), &layout).unwrap();
        assert!(cache.contains(0x1_03ff) && !cache.contains(0x1_0400));
        assert!(CodeCache::load(&Bytes::default(), &layout).is_err());
    }

    #[test]
    fn a_blob_is_found_from_any_place_of_it() {
        let (cache, mem) = (loaded(), memory());
        let mut layout = layout();
        let find = |layout: &Layout, pc| cache.find(&mem, layout, pc).unwrap();
        let expected = Blob {
            addr: 0x1_0050,
            kind: BlobKind::Nmethod,
            code_begin: 0x1_0078,
            frame_bytes: 40,
        };
        for pc in [0x1_0040, 0x1_0078, 0x1_0080, 0x1_00c0, 0x1_0050 + 149] {
            assert_eq!(find(&layout, pc), Some(expected), "{pc:x}");
        }
        for pc in [0x1_0000, 0x1_0050 + 150, 0x1_0100, 0x1_0400, 0x1_8000, 0] {
            assert_eq!(find(&layout, pc), None, "{pc:x}");
        }
        for pc in [0x2_0000, 0x2_00c0, 0x2_0100, 0x2_0140] {
            let found = find(&layout, pc).map(|blob| (blob.addr, blob.kind, blob.frame_bytes));
            assert_eq!(found, Some((0x2_0010, BlobKind::Interpreter, 0)), "{pc:x}");
        }
        assert_eq!(find(&layout, 0x2_0240), None, "not in use");
        layout.block_used = super::super::layout::ABSENT;
        assert!(find(&layout, 0x2_0240).is_some());
        // From 9 to 22 a blob has a pointer to its code.
        layout.blob_code_begin = 16;
        assert_eq!(
            find(&layout, 0x1_0080).map(|blob| blob.code_begin),
            Some(0x28)
        );
    }

    #[test]
    fn blob_name_determines_its_kind() {
        for (name, kind) in [
            (b"native nmethod..", BlobKind::NativeNmethod),
            (b"I2C/C2I adapters", BlobKind::Adapter),
            (b"vtable chunks...", BlobKind::Vtable),
            (b"Interpreter.....", BlobKind::Interpreter),
            (b"StubRoutines (1)", BlobKind::Stub),
            (b"nmethods........", BlobKind::Stub),
            (b"upcall_stub\0....", BlobKind::Upcall),
            (b"upcall_stub_exce", BlobKind::Stub),
        ] {
            assert_eq!(kind_of(&Bytes::at(0x1000, name), 0x1000), Ok(kind));
        }
        let bytes = [-1, 0, 1, FRAME_WORDS_MAX, FRAME_WORDS_MAX + 1].map(frame_bytes);
        assert_eq!(bytes, [0, 0, 8, 1 << 20, 0]);
    }
}
