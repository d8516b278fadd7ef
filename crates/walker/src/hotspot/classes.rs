//! Classes by name, from the VM's list of class loaders
//! (src/hotspot/share/classfile/classLoaderData.hpp), and their static fields.

use super::continuation;
use super::fields;
use super::layout::{Layout, present};
use super::objects;
use crate::memory::{Fault, Memory};

/// Maximum number of class loaders followed, including those of hidden classes.
const LOADERS_MAX: usize = 1 << 20;
/// Maximum number of classes followed per loader.
const CLASSES_MAX: usize = 1 << 20;

/// Visits the classes of the boot loader, which is the oldest one, until `visit` stops.
///
/// # Errors
/// [`Fault`] if a list cannot be read.
pub fn for_each_boot_class<M: Memory>(
    mem: &M,
    layout: &Layout,
    mut visit: impl FnMut(u64) -> bool,
) -> Result<(), Fault> {
    let needed = [
        layout.loaders_head,
        layout.loader_next,
        layout.loader_classes,
        layout.klass_next_link,
    ];
    if !needed.into_iter().all(present) {
        return Ok(());
    }
    let mut loader = mem.word(layout.loaders_head)?;
    for _ in 0..LOADERS_MAX {
        match mem.word(loader.wrapping_add(layout.loader_next))? {
            0 => break,
            next => loader = next,
        }
    }
    let mut class = mem.word(loader.wrapping_add(layout.loader_classes))?;
    for _ in 0..CLASSES_MAX {
        if class == 0 || visit(class) {
            break;
        }
        class = mem.word(class.wrapping_add(layout.klass_next_link))?;
    }
    Ok(())
}

/// Current address of the static field `name` of `class`; a collector may move it.
///
/// # Errors
/// [`Fault`] if the class cannot be read.
pub fn static_field<M: Memory>(
    mem: &M,
    layout: &Layout,
    class: u64,
    name: &[u8],
    descriptor: &[u8],
) -> Result<Option<u64>, Fault> {
    if !present(layout.klass_mirror) {
        return Ok(None);
    }
    let Some(offset) = fields::offset(mem, layout, class, name, descriptor)? else {
        return Ok(None);
    };
    // A handle since 9 (8155672); older JDKs do not need this.
    let handle = mem.word(class.wrapping_add(layout.klass_mirror))?;
    let mirror = continuation::handle(mem, layout, handle)?;
    // A mirror is a `Class`. Any other object means that the mirror has just been moved.
    let is_class = objects::class_of(mem, layout, layout.extra.objects.class_word, mirror)
        .and_then(|of| objects::is_kind_of(mem, layout, of, b"java/lang/Class"))?;
    match is_class {
        true => Ok(Some(mirror.wrapping_add(offset))),
        false => Err(Fault { addr: mirror }),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::hotspot::layout::ABSENT;
    use crate::hotspot::test_memory::Bytes;
    use std::vec::Vec;

    /// Two loaders, the younger one first; the boot loader has three classes.
    #[test]
    fn the_boot_loader_is_the_oldest_one() {
        let mut layout = Layout::EMPTY;
        (
            layout.loaders_head,
            layout.loader_next,
            layout.loader_classes,
        ) = (0x1000, 8, 16);
        layout.klass_next_link = 8;
        let mem = Bytes::of_words(&[
            (0x1000, &[0x2000]),
            (0x2000, &[7, 0x3000, 0x9000]),
            (0x3000, &[7, 0, 0x4000]),
            (0x4000, &[7, 0x5000]),
            (0x5000, &[7, 0x6000]),
            (0x6000, &[7, 0]),
        ]);
        let shown = |layout: &Layout, last: u64| {
            let mut classes = Vec::new();
            let ended = for_each_boot_class(&mem, layout, |class| {
                classes.push(class);
                class == last
            });
            ended.map(|()| classes)
        };
        assert_eq!(shown(&layout, 0), Ok([0x4000, 0x5000, 0x6000].to_vec()));
        assert_eq!(shown(&layout, 0x5000), Ok([0x4000, 0x5000].to_vec()));
        layout.klass_next_link = ABSENT;
        assert_eq!(shown(&layout, 0), Ok(Vec::new()));
        layout.klass_next_link = 0x800;
        assert!(shown(&layout, 0).is_err());
    }

    /// A class with a static field `f` of type `J` at 48 of its mirror, behind a handle.
    #[test]
    fn static_fields_are_in_the_mirror() {
        let mut layout = Layout::EMPTY;
        (layout.klass_name, layout.klass_super, layout.klass_mirror) = (0, 8, 16);
        (layout.klass_constants, layout.klass_fields) = (24, 32);
        (layout.pool_length, layout.sizeof_constant_pool) = (0, 8);
        (layout.symbol_length, layout.symbol_body) = (0, 2);
        layout.extra.chunk.narrow_oops = false;
        layout.extra.objects.class_word = objects::ClassWord::Wide;
        // The second word of an object is its class: `Class`, or another one.
        let memory = |of: u64| {
            let mut mem = Bytes::of_words(&[
                (0x1000, &[0x2000, 0, 0x3000, 0x4000, 0x5000]),
                (0x3000, &[0x6000]),
                (0x4000, &[3, 0, 0x2100, 0x2200]),
                (0x6000, &[0, of]),
                (0x7000, &[0x2300, 0]),
                (0x8000, &[0x2000, 0]),
            ]);
            mem.add(0x2000, b"\x03\x00a/B");
            mem.add(0x2100, b"\x01\x00f");
            mem.add(0x2200, b"\x01\x00J");
            mem.add(0x2300, b"\x0f\x00java/lang/Class");
            // One field: its flags, name, type, value, and offset in two parts.
            let slots: [u16; 8] = [6, 0, 1, 1, 2, 0, 48 << 2 | 1, 0];
            let fields = slots.map(u16::to_le_bytes).concat();
            mem.add(0x5000, &fields);
            mem
        };
        let at = |layout: &Layout, of, name: &[u8]| {
            static_field(&memory(of), layout, 0x1000, name, b"J")
        };
        assert_eq!(at(&layout, 0x7000, b"f"), Ok(Some(0x6030)));
        assert_eq!(at(&layout, 0x7000, b"g"), Ok(None));
        assert!(at(&layout, 0x8000, b"f").is_err(), "no mirror by now");
        layout.klass_mirror = ABSENT;
        assert_eq!(at(&layout, 0x7000, b"f"), Ok(None));
    }
}
