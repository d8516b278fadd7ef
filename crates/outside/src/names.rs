//! Names of frames: methods from the JVM's metadata, functions from the libraries' symbols.

use crate::origins::{Origin, Origins, Told};
use crate::vm::Vm;
pub use dwell_walker::FrameKind;
use dwell_walker::hotspot::layout::{Layout, present};
use dwell_walker::hotspot::{method, names};
use dwell_walker::{Failure, Fault, Frame, Memory};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Maximum length of a name.
const NAME_MAX: usize = 4096;

/// Marks missing native frames above a Java frame.
pub const NATIVE_GAP: &str = Failure::NativeGap.name();

/// JVMS 4.6.
const ACC_NATIVE: u16 = 0x0100;

/// A method.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Method {
    /// Its class, with slashes.
    pub class: String,
    /// Its name.
    pub name: String,
    /// Its descriptor.
    pub descriptor: String,
    /// The class's source file.
    pub source: Option<String>,
    /// Whether it is declared `native`.
    pub is_native: bool,
    /// The origin of its class, if it was requested and is known.
    pub origin: Option<Arc<Origin>>,
}

/// A class name as the JDK shows it: with dots, and a slash before the suffix of a hidden class,
/// where the JVM has a plus (share/oops/klass.cpp, `convert_hidden_name_to_java`).
#[must_use]
pub fn shown_class(class: &str) -> String {
    let dotted = class.replace('/', ".");
    let is_address = |text: &str| {
        let digits = text.strip_prefix("0x").unwrap_or("");
        digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    match dotted.rsplit_once('+') {
        Some((name, address)) if is_address(address) => format!("{name}/{address}"),
        _ => dotted,
    }
}

/// A frame with its names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Named {
    /// A Java method.
    Java {
        /// The method.
        method: Arc<Method>,
        /// Its line, if the class has line numbers.
        line: Option<u32>,
        /// How it runs.
        kind: FrameKind,
    },
    /// A function of a library, by the library's name for it.
    Native {
        /// The library's file name.
        library: String,
        /// The function; none without a symbol.
        function: Option<String>,
        /// Whether the library is the JVM's own.
        is_vm: bool,
    },
    /// Code that the JVM has generated, such as a stub.
    Stub(String),
    /// Marks missing frames, with the reason.
    Missing(&'static str),
}

/// Names frames, and caches methods. For one dump: a class may be unloaded later, and another one
/// may have its address.
#[derive(Default)]
pub struct Namer {
    methods: FxHashMap<u64, Option<Arc<Method>>>,
    /// Present if origins of classes are wanted.
    origins: Option<Origins>,
}

impl Namer {
    /// A namer that also finds the origins of classes.
    #[must_use]
    pub fn with_origins() -> Namer {
        Namer {
            origins: Some(Origins::default()),
            ..Namer::default()
        }
    }

    /// Drops the cached methods, because their classes may have been unloaded.
    pub fn forget(&mut self) {
        self.methods.clear();
    }

    /// The name of a frame.
    pub fn name<M: Memory>(&mut self, mem: &M, vm: &Vm<'_>, frame: &Frame) -> Named {
        if frame.kind.is_managed() {
            return match self.method(mem, vm, frame.id) {
                Some(method) => Named::Java {
                    method,
                    line: line(mem, vm, frame),
                    kind: frame.kind,
                },
                None => Named::Missing(Failure::StaleMethod.name()),
            };
        }
        match frame.kind {
            FrameKind::Failed => {
                Named::Missing(Failure::from_id(frame.id).map_or("unknown", Failure::name))
            }
            FrameKind::Stub => Named::Stub(stub(mem, vm, frame.id)),
            _ => match vm.modules.function(frame.id) {
                Some((library, function)) => Named::Native {
                    library: library.to_owned(),
                    function,
                    is_vm: frame.kind == FrameKind::Vm,
                },
                None => Named::Missing(Failure::UnknownPc.name()),
            },
        }
    }

    fn method<M: Memory>(&mut self, mem: &M, vm: &Vm<'_>, id: u64) -> Option<Arc<Method>> {
        if let Some(known) = self.methods.get(&id) {
            return known.clone();
        }
        let read = read(mem, &vm.layout, self.origins.as_mut(), id).ok();
        let (method, lacks_origin) = read.unzip();
        let method = method.map(Arc::new);
        // Otherwise it is read again at its next frame.
        if lacks_origin != Some(true) {
            self.methods.insert(id, method.clone());
        }
        method
    }
}

fn line<M: Memory>(mem: &M, vm: &Vm<'_>, frame: &Frame) -> Option<u32> {
    let line = method::line(mem, &vm.layout, frame.id, frame.bci).ok()?;
    u32::try_from(line).ok()
}

fn stub<M: Memory>(mem: &M, vm: &Vm<'_>, pc: u64) -> String {
    let mut buf = [0u8; 128];
    let blob = vm.code.find(mem, &vm.layout, pc).ok().flatten();
    let name = blob.and_then(|blob| names::blob(mem, &vm.layout, blob.addr, &mut buf).ok());
    name.map_or_else(
        || "stub".to_owned(),
        |name| String::from_utf8_lossy(name).into_owned(),
    )
}

/// The method, and whether another attempt to find its origin is useful.
fn read<M: Memory>(
    mem: &M,
    layout: &Layout,
    origins: Option<&mut Origins>,
    method: u64,
) -> Result<(Method, bool), Fault> {
    let key = names::method_key(mem, layout, method)?;
    let mut buf = vec![0; NAME_MAX];
    let mut text = |symbol: u64| -> Result<String, Fault> {
        let bytes = names::symbol(mem, layout, symbol, &mut buf)?;
        Ok(modified_utf8(bytes))
    };
    let told = origins.map(|origins| origins.of(mem, layout, &key));
    let lacks_origin = told == Some(Told::NotYet);
    let method = Method {
        class: text(key.class_symbol)?,
        name: text(key.name_symbol)?,
        descriptor: text(key.descriptor_symbol)?,
        source: source(mem, layout, key.const_method).ok().flatten(),
        is_native: names::access_flags(mem, layout, method)? & ACC_NATIVE != 0,
        origin: match told {
            Some(Told::Read(origin)) => origin,
            Some(Told::NotYet) | None => None,
        },
    };
    Ok((method, lacks_origin))
}

fn source<M: Memory>(mem: &M, layout: &Layout, const_method: u64) -> Result<Option<String>, Fault> {
    let pool = mem.word(const_method.wrapping_add(layout.const_constants))?;
    let index = if present(layout.pool_source) {
        mem.u16(pool.wrapping_add(layout.pool_source))?
    } else if present(layout.klass_source) {
        let holder = mem.word(pool.wrapping_add(layout.pool_holder))?;
        mem.u16(holder.wrapping_add(layout.klass_source))?
    } else {
        0
    };
    if index == 0 {
        return Ok(None);
    }
    let entries = pool.wrapping_add(layout.sizeof_constant_pool);
    let symbol = mem.word(entries.wrapping_add(u64::from(index) * 8))?;
    let mut buf = [0u8; 256];
    let name = names::symbol(mem, layout, symbol, &mut buf)?;
    Ok(Some(modified_utf8(name)))
}

/// Text in the JVM's modified UTF-8: a zero takes two bytes, and a character beyond 16 bits is a
/// pair of surrogates with three bytes each (JVMS 4.4.7). Invalid bytes are replaced.
#[must_use]
pub fn modified_utf8(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut units = Vec::new();
    let mut rest = bytes;
    let tail = |byte: u8| u16::from(byte & 0x3f);
    while let Some(first) = rest.first() {
        let (unit, len) = match rest {
            [a, ..] if *a < 0x80 => (u16::from(*a), 1),
            [a, b, ..] if a & 0xe0 == 0xc0 && b & 0xc0 == 0x80 => {
                (u16::from(a & 0x1f) << 6 | tail(*b), 2)
            }
            [a, b, c, ..] if a & 0xf0 == 0xe0 && b & 0xc0 == 0x80 && c & 0xc0 == 0x80 => {
                (u16::from(a & 0xf) << 12 | tail(*b) << 6 | tail(*c), 3)
            }
            _ => {
                let _ = first;
                (0xfffd, 1)
            }
        };
        units.push(unit);
        rest = rest.get(len..).unwrap_or(&[]);
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_jvms_own_utf8_is_read() {
        assert_eq!(modified_utf8(b"abc"), "abc");
        assert_eq!(modified_utf8(b"a\xc0\x80b"), "a\0b");
        // U+1F600 as a pair of surrogates.
        assert_eq!(modified_utf8(b"\xed\xa0\xbd\xed\xb8\x80"), "\u{1f600}");
        assert_eq!(modified_utf8(b"\xff\xc3"), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn classes_are_shown_as_the_jdk_shows_them() {
        for (class, shown) in [
            ("java/lang/Object", "java.lang.Object"),
            (
                "a/B$$Lambda$7+0x00007fe4c0000a10",
                "a.B$$Lambda$7/0x00007fe4c0000a10",
            ),
            ("a/B$$Lambda+0x2c042680", "a.B$$Lambda/0x2c042680"),
            // Plus signs may be in names.
            ("a/B+C", "a.B+C"),
            ("a/B+0x12", "a.B+0x12"),
            ("a/B+0x00007fe4c0000a1x", "a.B+0x00007fe4c0000a1x"),
            ("+", "+"),
            ("", ""),
        ] {
            assert_eq!(shown_class(class), shown);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_text(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = modified_utf8(&bytes);
        }

        #[test]
        fn ordinary_text_stays(text in "\\PC{0,20}") {
            prop_assert_eq!(modified_utf8(text.as_bytes()), text);
        }
    }
}
