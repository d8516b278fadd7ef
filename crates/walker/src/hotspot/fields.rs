//! Offsets of fields of Java classes in their objects, by name. They are read from the class
//! itself, so that no call into the VM is needed (src/hotspot/share/oops/fieldInfo.hpp,
//! fieldStreams.hpp).

use super::layout::{Layout, present};
use super::names;
use super::scope::Stream;
use crate::memory::{Fault, Memory};

/// Maximum number of fields of a class.
const FIELDS_MAX: u32 = 4096;
/// Maximum number of superclasses followed.
const SUPERS_MAX: usize = 16;
/// Number of two-byte words of a field up to 20: access flags, name, type, value, and twice the
/// offset.
const SLOTS: u64 = 6;
/// The two bits below the offset are its kind (`FIELDINFO_TAG_SIZE`, up to 20).
const TAG_BITS: u32 = 2;
/// A class with at least this number of fields may have a jump table for faster lookups. Its
/// location is stored before the fields (`JUMP_TABLE_STRIDE`, 26 and later).
const JUMPS_FROM: u32 = 16;
/// Objects of the relevant classes are smaller than this.
const OFFSET_MAX: u64 = 4096;

/// Offset of the field `name` of type `descriptor` in objects of `class`, in bytes; for a static
/// field, in the class's mirror. Superclasses are searched as well. `None` without such a field.
///
/// # Errors
/// [`Fault`] if the class cannot be read.
pub fn offset<M: Memory>(
    mem: &M,
    layout: &Layout,
    class: u64,
    name: &[u8],
    descriptor: &[u8],
) -> Result<Option<u64>, Fault> {
    let mut class = class;
    for _ in 0..SUPERS_MAX {
        if class == 0 {
            break;
        }
        if let Some(offset) = own_offset(mem, layout, class, name, descriptor)? {
            return Ok(Some(offset));
        }
        if !present(layout.klass_super) {
            break;
        }
        class = mem.word(class.wrapping_add(layout.klass_super))?;
    }
    Ok(None)
}

fn own_offset<M: Memory>(
    mem: &M,
    layout: &Layout,
    class: u64,
    name: &[u8],
    descriptor: &[u8],
) -> Result<Option<u64>, Fault> {
    if !present(layout.klass_constants) {
        return Ok(None);
    }
    let wanted = Wanted {
        mem,
        layout,
        pool: mem.word(class.wrapping_add(layout.klass_constants))?,
        name,
        descriptor,
    };
    if present(layout.klass_field_stream) {
        let stream = mem.word(class.wrapping_add(layout.klass_field_stream))?;
        return wanted.in_stream(stream);
    }
    if present(layout.klass_fields) {
        let fields = mem.word(class.wrapping_add(layout.klass_fields))?;
        return wanted.in_array(fields);
    }
    Ok(None)
}

struct Wanted<'a, M: Memory> {
    mem: &'a M,
    layout: &'a Layout,
    pool: u64,
    name: &'a [u8],
    descriptor: &'a [u8],
}

/// Elements of an array of bytes or shorts follow its length (src/hotspot/share/oops/array.hpp).
const ELEMENTS: u64 = 4;

impl<M: Memory> Wanted<'_, M> {
    /// Up to 20: an array of shorts, six for each field.
    fn in_array(&self, fields: u64) -> Result<Option<u64>, Fault> {
        let count = u64::from(self.mem.u32(fields)?) / SLOTS;
        for field in 0..count.min(u64::from(FIELDS_MAX)) {
            let at = |slot: u64| {
                let index = field * SLOTS + slot;
                self.mem.u16(fields.wrapping_add(ELEMENTS + 2 * index))
            };
            // Fields that the VM has added hold numbers of its own symbols instead.
            if self.is(u32::from(at(1)?), u32::from(at(2)?)) {
                let packed = u32::from(at(4)?) | u32::from(at(5)?) << 16;
                return Ok(Some(u64::from(packed >> TAG_BITS)));
            }
        }
        Ok(None)
    }

    /// 21 and later: a stream of numbers.
    fn in_stream(&self, stream: u64) -> Result<Option<u64>, Fault> {
        match self.after_header(stream, 0)? {
            None => self.after_header(stream, 4),
            found => Ok(found),
        }
    }

    /// `skipped`: bytes between the numbers of fields and the first field.
    fn after_header(&self, stream: u64, skipped: u32) -> Result<Option<u64>, Fault> {
        // After each of these flags, one more number follows. The flags' numbers differ between
        // versions.
        let layout = self.layout;
        let more = [
            layout.field_initialized,
            layout.field_generic,
            layout.field_contended,
        ];
        let base = self.layout.extra.unsigned5_base;
        let mut numbers = Stream::new(self.mem, stream, ELEMENTS).with_base(base);
        let count = numbers.unsigned()?;
        let _added_by_the_vm = numbers.unsigned()?;
        if skipped != 0 && count <= JUMPS_FROM {
            return Ok(None);
        }
        for _ in 0..skipped {
            numbers.byte()?;
        }
        for _ in 0..count.min(FIELDS_MAX) {
            let (name, descriptor) = (numbers.unsigned()?, numbers.unsigned()?);
            let offset = u64::from(numbers.unsigned()?);
            let _access = numbers.unsigned()?;
            let flags = numbers.unsigned()?;
            for flag in more {
                if present(flag) && flags >> (flag & 31) & 1 != 0 {
                    numbers.unsigned()?;
                }
            }
            if offset < OFFSET_MAX && self.is(name, descriptor) {
                return Ok(Some(offset));
            }
        }
        Ok(None)
    }

    fn is(&self, name: u32, descriptor: u32) -> bool {
        self.has(name, self.name) && self.has(descriptor, self.descriptor)
    }

    /// Whether this entry of the constant pool is `text`.
    fn has(&self, index: u32, text: &[u8]) -> bool {
        let check = || -> Result<bool, Fault> {
            let length = self
                .mem
                .u32(self.pool.wrapping_add(self.layout.pool_length))?;
            if index == 0 || present(self.layout.pool_length) && index >= length {
                return Ok(false);
            }
            let entries = self.pool.wrapping_add(self.layout.sizeof_constant_pool);
            let symbol = self.mem.word(entries.wrapping_add(u64::from(index) * 8))?;
            let mut buf = [0u8; 128];
            Ok(names::symbol(self.mem, self.layout, symbol, &mut buf)? == text)
        };
        check().unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::test_memory::Bytes;

    const CLASS: u64 = 0x1000;
    const POOL: u64 = 0x2000;
    const FIELDS: u64 = 0x3000;

    fn layout() -> Layout {
        let mut layout = Layout::EMPTY;
        layout.klass_constants = 0;
        layout.klass_super = 16;
        layout.pool_length = 0;
        layout.sizeof_constant_pool = 8;
        layout.symbol_length = 0;
        layout.symbol_body = 2;
        (layout.field_initialized, layout.field_generic) = (0, 2);
        layout
    }

    /// A class with the constants 1 `tid`, 2 `J`, 3 `name`.
    fn memory(fields: &[u8]) -> Bytes {
        let mut mem = Bytes::default();
        let words = [POOL, FIELDS, 0u64];
        mem.add(CLASS, &words.map(u64::to_le_bytes).concat());
        let pool = [4u64, 0, 0x4000, 0x4010, 0x4020];
        mem.add(POOL, &pool.map(u64::to_le_bytes).concat());
        for (at, name) in [(0x4000u64, "tid"), (0x4010, "J"), (0x4020, "name")] {
            let mut symbol = (name.len() as u16).to_le_bytes().to_vec();
            symbol.extend(name.as_bytes());
            mem.add(at, &symbol);
        }
        mem.add(FIELDS, fields);
        mem
    }

    #[test]
    fn fields_are_found_in_arrays() {
        let mut layout = layout();
        layout.klass_fields = 8;
        let mut bytes = 12u32.to_le_bytes().to_vec();
        let slots: [u16; 12] = [1, 3, 2, 0, 24 << 2 | 1, 0, 1, 1, 2, 0, 48 << 2 | 1, 0];
        bytes.extend(slots.iter().flat_map(|slot| slot.to_le_bytes()));
        let mem = memory(&bytes);
        let find = |name: &[u8], kind: &[u8]| offset(&mem, &layout, CLASS, name, kind);
        assert_eq!(find(b"tid", b"J"), Ok(Some(48)));
        assert_eq!(find(b"name", b"J"), Ok(Some(24)));
        assert_eq!(find(b"tid", b"I"), Ok(None));
        assert_eq!(find(b"nope", b"J"), Ok(None));
    }

    #[test]
    fn fields_are_found_in_streams() {
        let mut layout = layout();
        layout.klass_field_stream = 8;
        // Each number is one digit, one more than its value. The first field is initialised.
        let digits = [2u8, 0, 3, 2, 24, 1, 1, 3, 1, 2, 48, 1, 0].map(|digit| digit + 1);
        let mut bytes = (digits.len() as u32).to_le_bytes().to_vec();
        bytes.extend(digits);
        let mem = memory(&bytes);
        let find = |name: &[u8], kind: &[u8]| offset(&mem, &layout, CLASS, name, kind);
        assert_eq!(find(b"tid", b"J"), Ok(Some(48)));
        assert_eq!(find(b"name", b"J"), Ok(Some(24)));
        assert_eq!(find(b"nope", b"J"), Ok(None));
    }

    #[test]
    fn jump_table_location_is_skipped() {
        let mut layout = layout();
        layout.klass_field_stream = 8;
        let mut bytes = vec_of(&[17, 0]);
        bytes.extend([0xff, 0xff, 0xff, 0xff]);
        for _ in 0..16 {
            bytes.extend(vec_of(&[3, 2, 24, 1, 0]));
        }
        bytes.extend(vec_of(&[1, 2, 48, 1, 0]));
        let mut all = (bytes.len() as u32).to_le_bytes().to_vec();
        all.extend(bytes);
        let mem = memory(&all);
        assert_eq!(offset(&mem, &layout, CLASS, b"tid", b"J"), Ok(Some(48)));
    }

    extern crate std;

    fn vec_of(numbers: &[u8]) -> std::vec::Vec<u8> {
        numbers.iter().map(|digit| digit + 1).collect()
    }
}
