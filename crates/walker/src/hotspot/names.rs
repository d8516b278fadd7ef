//! Names of classes, methods and stubs, copied out of the VM's metadata into caller-owned buffers.

use super::layout::{Layout, present};
use super::method;
use crate::memory::{Fault, Memory};

/// Bytes of a `Symbol` (modified UTF-8, at most 65535 bytes).
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

/// Identity of a method during its lifetime: the addresses of its names.
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

/// Reads the identity of `method`.
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

/// A C string, truncated to the buffer.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::test_memory::Bytes;

    const AT: u64 = 0x1000;

    #[test]
    fn symbols_have_their_length_in_one_of_two_places() {
        let mut layout = Layout::EMPTY;
        layout.symbol_body = 6;
        layout.symbol_length = 0;
        let mut buf = [0; 16];
        let old = Bytes::at(AT, b"\x05\x00\xff\xff\xff\xffhello, you");
        assert_eq!(symbol(&old, &layout, AT, &mut buf), Ok(&b"hello"[..]));
        assert_eq!(symbol(&old, &layout, AT, &mut buf[..3]), Ok(&b"hel"[..]));
        layout.symbol_length_and_refcount = 0;
        let new = Bytes::at(AT, b"\xff\xff\x07\x00\xff\xffhello, you");
        assert_eq!(symbol(&new, &layout, AT, &mut buf), Ok(&b"hello, "[..]));
        assert!(symbol(&new, &layout, AT + 64, &mut buf).is_err());
    }

    #[test]
    fn c_strings_end_with_a_zero_or_with_the_room() {
        let mem = Bytes::at(AT, b"nmethod\0rest....");
        let mut buf = [0; 16];
        assert_eq!(c_string(&mem, AT, &mut buf), Ok(&b"nmethod"[..]));
        assert_eq!(c_string(&mem, AT + 7, &mut buf), Ok(&b""[..]));
        assert_eq!(c_string(&mem, AT + 2, &mut buf[..3]), Ok(&b"eth"[..]));
        assert!(c_string(&mem, AT + 8, &mut buf).is_err(), "it does not end");
        let mut layout = Layout::EMPTY;
        layout.blob_name = 8;
        let mut mem = Bytes::at(AT, b"nmethod\0");
        mem.add_words(0x2000, &[0, AT]);
        assert_eq!(blob(&mem, &layout, 0x2000, &mut buf), Ok(&b"nmethod"[..]));
    }

    /// A method, its constants (from the third word of the pool), and its class.
    #[test]
    fn a_method_is_known_by_its_symbols() {
        let mut layout = Layout::EMPTY;
        (layout.method_const, layout.method_access_flags) = (8, 18);
        (
            layout.const_constants,
            layout.const_name_index,
            layout.const_signature_index,
        ) = (8, 16, 18);
        (
            layout.pool_holder,
            layout.pool_length,
            layout.sizeof_constant_pool,
        ) = (0, 8, 16);
        layout.klass_name = 8;
        let (method, code, pool, class) = (0x1000, 0x2000, 0x3000, 0x4000);
        let mem = Bytes::of_words(&[
            (method, &[0, code, 0x1234_0000]),
            (code, &[0, pool, 0x0003_0002]),
            (pool, &[class, 4, 0x7000, 0x7100, 0x7200, 0x7300]),
            (class, &[0, 0x7900]),
        ]);
        let expected = MethodKey {
            method,
            const_method: code,
            class_symbol: 0x7900,
            name_symbol: 0x7200,
            descriptor_symbol: 0x7300,
        };
        assert_eq!(method_key(&mem, &layout, method), Ok(expected));
        assert!(method_key(&mem, &layout, method + 8).is_err(), "no method");
        assert_eq!(access_flags(&mem, &layout, method), Ok(0x1234));
        layout.method_access_flags = super::super::layout::ABSENT;
        assert_eq!(access_flags(&mem, &layout, method), Ok(0));
    }
}
