//! Names of classes, methods and stubs, copied out of the VM's metadata into caller-owned buffers.

use super::layout::{Layout, present};
use super::method;
use crate::memory::{Fault, Memory};

/// Bytes of a `Symbol` (modified UTF-8, at most 65535 of them).
///
/// # Errors
/// [`Fault`] if the symbol cannot be read.
pub fn symbol<'b, M: Memory>(
    mem: &M,
    layout: &Layout,
    symbol: u64,
    buf: &'b mut [u8],
) -> Result<&'b [u8], Fault> {
    let len = symbol_length(mem, layout, symbol)?.min(buf.len());
    let Some(part) = buf.get_mut(..len) else {
        return Ok(&[]);
    };
    mem.read(symbol.wrapping_add(layout.symbol_body), part)?;
    Ok(part)
}

fn symbol_length<M: Memory>(mem: &M, layout: &Layout, symbol: u64) -> Result<usize, Fault> {
    if present(layout.symbol_length_and_refcount) {
        let word = mem.u32(symbol.wrapping_add(layout.symbol_length_and_refcount))?;
        return Ok((word >> 16) as usize);
    }
    mem.u16(symbol.wrapping_add(layout.symbol_length))
        .map(usize::from)
}

/// What identifies a method as long as it lives: the addresses its names are read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MethodKey {
    /// The `Method*`.
    pub method: u64,
    /// Its `ConstMethod*`, which changes when the class is redefined.
    pub const_method: u64,
    /// The `Symbol*` of its class's name.
    pub class_symbol: u64,
    /// The `Symbol*` of its own name.
    pub name_symbol: u64,
    /// The `Symbol*` of its descriptor.
    pub descriptor_symbol: u64,
}

/// Reads what identifies `method`.
///
/// # Errors
/// [`Fault`] if it is not (or no longer) a method.
pub fn method_key<M: Memory>(mem: &M, layout: &Layout, method: u64) -> Result<MethodKey, Fault> {
    if !method::is_plausible(mem, layout, method) {
        return Err(Fault { addr: method });
    }
    let const_method = mem.word(method.wrapping_add(layout.method_const))?;
    let pool = mem.word(const_method.wrapping_add(layout.const_constants))?;
    let holder = mem.word(pool.wrapping_add(layout.pool_holder))?;
    let entry = |index_at: u64| -> Result<u64, Fault> {
        let index = u64::from(mem.u16(const_method.wrapping_add(index_at))?);
        // A resolved Utf8 entry is the Symbol*.
        mem.word(
            pool.wrapping_add(layout.sizeof_constant_pool)
                .wrapping_add(index * 8),
        )
    };
    Ok(MethodKey {
        method,
        const_method,
        class_symbol: mem.word(holder.wrapping_add(layout.klass_name))?,
        name_symbol: entry(layout.const_name_index)?,
        descriptor_symbol: entry(layout.const_signature_index)?,
    })
}

/// The access flags of a method, as in the class file.
///
/// # Errors
/// [`Fault`] if the method cannot be read.
pub fn access_flags<M: Memory>(mem: &M, layout: &Layout, method: u64) -> Result<u16, Fault> {
    if !present(layout.method_access_flags) {
        return Ok(0);
    }
    mem.u16(method.wrapping_add(layout.method_access_flags))
}

/// The name of a code blob.
///
/// # Errors
/// [`Fault`] if the blob cannot be read.
pub fn blob<'b, M: Memory>(
    mem: &M,
    layout: &Layout,
    blob: u64,
    buf: &'b mut [u8],
) -> Result<&'b [u8], Fault> {
    let name = mem.word(blob.wrapping_add(layout.blob_name))?;
    c_string(mem, name, buf)
}

/// A C string, cut to the buffer.
///
/// # Errors
/// [`Fault`] if it cannot be read.
pub fn c_string<'b, M: Memory>(mem: &M, addr: u64, buf: &'b mut [u8]) -> Result<&'b [u8], Fault> {
    let mut len = 0;
    for (i, slot) in buf.iter_mut().enumerate() {
        let byte = mem.u8(addr.wrapping_add(i as u64))?;
        if byte == 0 {
            break;
        }
        *slot = byte;
        len = i + 1;
    }
    Ok(buf.get(..len).unwrap_or(&[]))
}
