//! The tables `gHotSpotVMStructs`, `gHotSpotVMTypes` and `gHotSpotVM*Constants`
//! (src/hotspot/share/runtime/vmStructs.cpp): an iterator over each, bounded and fault-tolerant.

use crate::memory::{Fault, Memory};

/// Finds an exported symbol of libjvm and returns its address in the target.
pub trait Symbols {
    /// The address of `name`, if libjvm has it.
    fn address(&self, name: &str) -> Option<u64>;
}

impl<F: Fn(&str) -> Option<u64>> Symbols for F {
    fn address(&self, name: &str) -> Option<u64> {
        self(name)
    }
}

/// The reason why the tables cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableError {
    /// libjvm does not export this symbol.
    NoSymbol(&'static str),
    /// The table points to memory that cannot be read.
    Fault(Fault),
}

impl From<Fault> for TableError {
    fn from(fault: Fault) -> Self {
        TableError::Fault(fault)
    }
}

/// A name in the tables, truncated. No relevant name is longer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    bytes: [u8; Name::MAX],
    len: usize,
}

impl Name {
    const MAX: usize = 64;

    fn read<M: Memory>(mem: &M, addr: u64) -> Result<Name, Fault> {
        let mut name = Name {
            bytes: [0; Name::MAX],
            len: 0,
        };
        if addr == 0 {
            return Ok(name);
        }
        for (i, slot) in name.bytes.iter_mut().enumerate() {
            let byte = mem.u8(addr.wrapping_add(i as u64))?;
            if byte == 0 {
                break;
            }
            *slot = byte;
            name.len = i + 1;
        }
        Ok(name)
    }

    /// The name as text; empty if it is not UTF-8 (no name of interest is).
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.bytes
            .get(..self.len)
            .and_then(|b| core::str::from_utf8(b).ok())
            .unwrap_or("")
    }
}

/// One entry of the struct table.
pub struct Field {
    /// The declaring type.
    pub type_name: Name,
    /// The field.
    pub field_name: Name,
    /// Its C++ type.
    pub type_string: Name,
    /// Instance fields: the offset in bytes. Static fields: the address.
    pub place: Place,
}

/// The place of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Offset from the start of an instance.
    Offset(u64),
    /// Address of a static field.
    Static(u64),
}

/// Maximum number of entries; the real tables hold 1400 to 3500.
const ENTRIES_MAX: u64 = 20_000;

fn value<M: Memory, S: Symbols>(
    mem: &M,
    symbols: &S,
    name: &'static str,
) -> Result<u64, TableError> {
    let addr = symbols.address(name).ok_or(TableError::NoSymbol(name))?;
    Ok(mem.word(addr)?)
}

/// Calls `visit` for every field of the struct table.
///
/// # Errors
/// [`TableError`] if a symbol is missing or the table cannot be read.
pub fn for_each_field<M: Memory, S: Symbols>(
    mem: &M,
    symbols: &S,
    mut visit: impl FnMut(&Field),
) -> Result<(), TableError> {
    let table = value(mem, symbols, "gHotSpotVMStructs")?;
    let stride = value(mem, symbols, "gHotSpotVMStructEntryArrayStride")?;
    let type_at = value(mem, symbols, "gHotSpotVMStructEntryTypeNameOffset")?;
    let field_at = value(mem, symbols, "gHotSpotVMStructEntryFieldNameOffset")?;
    let string_at = value(mem, symbols, "gHotSpotVMStructEntryTypeStringOffset")?;
    let static_at = value(mem, symbols, "gHotSpotVMStructEntryIsStaticOffset")?;
    let offset_at = value(mem, symbols, "gHotSpotVMStructEntryOffsetOffset")?;
    let address_at = value(mem, symbols, "gHotSpotVMStructEntryAddressOffset")?;
    for i in 0..ENTRIES_MAX {
        let entry = table.wrapping_add(i.wrapping_mul(stride));
        let type_name = mem.word(entry.wrapping_add(type_at))?;
        if type_name == 0 {
            break;
        }
        let is_static = mem.u32(entry.wrapping_add(static_at))? != 0;
        let place = if is_static {
            Place::Static(mem.word(entry.wrapping_add(address_at))?)
        } else {
            Place::Offset(mem.word(entry.wrapping_add(offset_at))?)
        };
        visit(&Field {
            type_name: Name::read(mem, type_name)?,
            field_name: Name::read(mem, mem.word(entry.wrapping_add(field_at))?)?,
            type_string: Name::read(mem, mem.word(entry.wrapping_add(string_at))?)?,
            place,
        });
    }
    Ok(())
}

/// Calls `visit` with the name and size in bytes of every type.
///
/// # Errors
/// [`TableError`] if a symbol is missing or the table cannot be read.
pub fn for_each_type<M: Memory, S: Symbols>(
    mem: &M,
    symbols: &S,
    mut visit: impl FnMut(&str, u64),
) -> Result<(), TableError> {
    let table = value(mem, symbols, "gHotSpotVMTypes")?;
    let stride = value(mem, symbols, "gHotSpotVMTypeEntryArrayStride")?;
    let name_at = value(mem, symbols, "gHotSpotVMTypeEntryTypeNameOffset")?;
    let size_at = value(mem, symbols, "gHotSpotVMTypeEntrySizeOffset")?;
    for i in 0..ENTRIES_MAX {
        let entry = table.wrapping_add(i.wrapping_mul(stride));
        let name = mem.word(entry.wrapping_add(name_at))?;
        if name == 0 {
            break;
        }
        let size = mem.word(entry.wrapping_add(size_at))?;
        visit(Name::read(mem, name)?.as_str(), size);
    }
    Ok(())
}

/// Calls `visit` with the name and value of every `int` constant.
///
/// # Errors
/// [`TableError`] if a symbol is missing or the table cannot be read.
pub fn for_each_int<M: Memory, S: Symbols>(
    mem: &M,
    symbols: &S,
    mut visit: impl FnMut(&str, i32),
) -> Result<(), TableError> {
    let table = value(mem, symbols, "gHotSpotVMIntConstants")?;
    let stride = value(mem, symbols, "gHotSpotVMIntConstantEntryArrayStride")?;
    let name_at = value(mem, symbols, "gHotSpotVMIntConstantEntryNameOffset")?;
    let value_at = value(mem, symbols, "gHotSpotVMIntConstantEntryValueOffset")?;
    for i in 0..ENTRIES_MAX {
        let entry = table.wrapping_add(i.wrapping_mul(stride));
        let name = mem.word(entry.wrapping_add(name_at))?;
        if name == 0 {
            break;
        }
        let number = mem.i32(entry.wrapping_add(value_at))?;
        visit(Name::read(mem, name)?.as_str(), number);
    }
    Ok(())
}
