//! Groups mappings into modules, and places a module's image in the address space.
//!
//! `maps` alone does not show where a module's addresses begin. The executable mapping may start
//! anywhere in the file, two copies of a library may be adjacent, and a program may have mapped the
//! file just to read it. So grouping is by file, and [`Module::placements`] uses the program
//! headers.

use std::ops::Range;

use super::{Backing, Device, Mapping};
use crate::elf::Elf;

/// A mapped piece of a module's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutableRange {
    /// Addresses in the process.
    pub addresses: Range<u64>,
    /// Offset in the file of the first.
    pub file_offset: u64,
}

/// A file (or the vdso) with an executable mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its path, `[vdso]`, or the name of a memory file.
    pub path: Vec<u8>,
    /// Whether the path no longer leads to the mapped file.
    pub is_deleted: bool,
    /// Kind of the mapped object.
    pub backing: Backing,
    /// The file's device.
    pub device: Device,
    /// The file's inode.
    pub inode: u64,
    /// The mapping of the file's first page, where its headers and often its build id can be
    /// read without the file.
    pub header: Option<Range<u64>>,
    /// Its code, in ascending order of address. Never empty.
    pub executable: Vec<ExecutableRange>,
}

/// Location of one copy of a module's image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Address in the process minus address in the file (modulo 2^64).
    pub bias: u64,
    /// Address of [`Elf::base_svma`] in the process: offsets of symbols and rows count from here.
    pub base: u64,
    /// Its code, in ascending order.
    pub executable: Vec<Range<u64>>,
}

/// Groups mappings, which must be in ascending order as the kernel gives them.
///
/// Mappings belong together while the file stays the same and its offsets do not fall; anonymous
/// memory (`.bss`, reserved gaps) may lie between. Only groups with code are returned.
pub fn modules<'a>(mappings: impl IntoIterator<Item = Mapping<'a>>) -> Vec<Module> {
    let mut found = Vec::new();
    let mut open: Option<(Module, u64)> = None;
    for mapping in mappings {
        let backing = mapping.backing();
        if backing == Backing::Anonymous {
            continue;
        }
        let continues = |(module, last_offset): &(Module, u64)| {
            module.inode == mapping.inode
                && module.device == mapping.device
                && *last_offset <= mapping.offset
                && module.path == *mapping.path()
        };
        if !open.as_ref().is_some_and(continues) {
            found.extend(open.take().map(|(module, _)| module));
        }
        if !matches!(backing, Backing::File | Backing::Memfd | Backing::Vdso) {
            continue;
        }
        let (module, last_offset) = open.get_or_insert_with(|| (begin(&mapping, backing), 0));
        *last_offset = mapping.offset;
        let addresses = mapping.start..mapping.end;
        if mapping.offset == 0 {
            module.header.get_or_insert(addresses.clone());
        }
        if mapping.permissions.is_executable {
            module.executable.push(ExecutableRange {
                addresses,
                file_offset: mapping.offset,
            });
        }
    }
    found.extend(open.map(|(module, _)| module));
    found.retain(|module| !module.executable.is_empty());
    found
}

fn begin(mapping: &Mapping<'_>, backing: Backing) -> Module {
    Module {
        path: mapping.path().into_owned(),
        is_deleted: mapping.is_deleted(),
        backing,
        device: mapping.device,
        inode: mapping.inode,
        header: None,
        executable: Vec::new(),
    }
}

impl Module {
    /// Locations of the module's image, whose headers are `elf`: usually one; more if copies of a
    /// tiny library are adjacent. Code that belongs to no load segment of `elf` (a wrong file) is
    /// left out. The machine has pages of `page_bytes`.
    #[must_use]
    pub fn placements(&self, elf: &Elf<'_>, page_bytes: u64) -> Vec<Placement> {
        let mut placements: Vec<Placement> = Vec::new();
        for range in &self.executable {
            let Some(bias) = elf.bias(range.file_offset, range.addresses.start, page_bytes) else {
                continue;
            };
            let addresses = range.addresses.clone();
            match placements
                .iter_mut()
                .find(|placement| placement.bias == bias)
            {
                Some(placement) => placement.executable.push(addresses),
                None => placements.push(Placement {
                    bias,
                    base: elf.base_svma().wrapping_add(bias),
                    executable: vec![addresses],
                }),
            }
        }
        placements
    }
}
