//! A shared library as functions, relocated slots and bytes. Must not know what is forbidden.

use anyhow::{Context, Result, bail};
use object::elf::{DF_1_NOW, DF_BIND_NOW, DT_FLAGS, DT_FLAGS_1};
use object::read::elf::{Dyn, ElfFile64, ProgramHeader};
use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget,
    SectionKind, SymbolKind,
};
use std::collections::BTreeMap;

/// One function with its code.
#[derive(Clone, Debug)]
pub struct Function {
    /// Demangled name.
    pub name: String,
    /// Address of the first instruction.
    pub start: u64,
    /// The instructions.
    pub code: Vec<u8>,
}

impl Function {
    /// Whether `address` lies in the function.
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        address
            .checked_sub(self.start)
            .is_some_and(|offset| offset < self.code.len() as u64)
    }
}

/// The content of a pointer-sized slot once the library is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The address of another library's symbol.
    Import(String),
    /// An address of this library.
    Internal(u64),
}

/// A parsed library.
#[derive(Debug)]
pub struct Image {
    functions: BTreeMap<u64, Function>,
    slots: BTreeMap<u64, Slot>,
    code: Vec<(u64, Vec<u8>)>,
    /// Whether all imports are bound at load time, so that no handler runs the dynamic linker.
    pub bind_now: bool,
}

impl Image {
    /// Parses an ELF library for x86-64.
    ///
    /// # Errors
    /// Not such a library, or one without a symbol table.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let file = ElfFile64::<Endianness>::parse(bytes).context("not a 64-bit ELF file")?;
        if file.architecture() != object::Architecture::X86_64 {
            bail!("not for x86-64");
        }
        let code: Vec<(u64, Vec<u8>)> = file
            .sections()
            .filter(|section| section.kind() == SectionKind::Text)
            .map(|section| Ok((section.address(), section.data()?.to_vec())))
            .collect::<Result<_>>()?;
        let mut image = Self {
            functions: BTreeMap::new(),
            slots: slots(&file)?,
            code,
            bind_now: binds_now(&file)?,
        };
        for symbol in file
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text)
        {
            image.add_function(symbol.name()?, symbol.address(), symbol.size());
        }
        if image.functions.is_empty() {
            bail!("no symbol table: the check needs an unstripped build");
        }
        Ok(image)
    }

    fn add_function(&mut self, name: &str, start: u64, size: u64) {
        let Some(code) = self.bytes(start, size) else {
            return;
        };
        let name = format!("{:#}", rustc_demangle::demangle(name));
        let function = Function {
            name,
            start,
            code: code.to_vec(),
        };
        // Aliases: the name of the largest one.
        let known = self.functions.get(&start);
        if known.is_none_or(|known| known.code.len() < function.code.len()) {
            self.functions.insert(start, function);
        }
    }

    fn bytes(&self, start: u64, size: u64) -> Option<&[u8]> {
        if size == 0 {
            return None;
        }
        self.code.iter().find_map(|(base, bytes)| {
            let offset = usize::try_from(start.checked_sub(*base)?).ok()?;
            bytes.get(offset..offset.checked_add(usize::try_from(size).ok()?)?)
        })
    }

    /// Some bytes of code at `address`, at most `size`.
    #[must_use]
    pub fn code_at(&self, address: u64, size: u64) -> Option<&[u8]> {
        (1..=size).rev().find_map(|size| self.bytes(address, size))
    }

    /// The function of that name.
    #[must_use]
    pub fn function_named(&self, name: &str) -> Option<&Function> {
        self.functions
            .values()
            .find(|function| function.name == name)
    }

    /// All functions.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.values()
    }

    /// The function that begins at `address`.
    #[must_use]
    pub fn function_at(&self, address: u64) -> Option<&Function> {
        self.functions.get(&address)
    }

    /// The function `address` lies in.
    #[must_use]
    pub fn function_around(&self, address: u64) -> Option<&Function> {
        let (_, function) = self.functions.range(..=address).next_back()?;
        function.contains(address).then_some(function)
    }

    /// The content of the slot at `address` after loading.
    #[must_use]
    pub fn slot(&self, address: u64) -> Option<&Slot> {
        self.slots.get(&address)
    }
}

fn slots(file: &ElfFile64<'_, Endianness>) -> Result<BTreeMap<u64, Slot>> {
    let mut slots = BTreeMap::new();
    let Some(relocations) = file.dynamic_relocations() else {
        return Ok(slots);
    };
    let symbols = file
        .dynamic_symbol_table()
        .context("relocations but no dynamic symbols")?;
    for (address, relocation) in relocations {
        let slot = match relocation.target() {
            RelocationTarget::Symbol(index) => {
                let symbol = symbols.symbol_by_index(index)?;
                if symbol.is_undefined() {
                    Slot::Import(symbol.name()?.to_owned())
                } else {
                    Slot::Internal(symbol.address().wrapping_add_signed(relocation.addend()))
                }
            }
            _ => Slot::Internal(relocation.addend() as u64),
        };
        slots.insert(address, slot);
    }
    Ok(slots)
}

fn binds_now(file: &ElfFile64<'_, Endianness>) -> Result<bool> {
    let endian = file.endian();
    let headers = file.elf_program_headers();
    let data = file.data();
    for header in headers {
        let Some(entries) = header.dynamic(endian, data)? else {
            continue;
        };
        return Ok(entries.iter().any(|entry| {
            let (tag, value) = (entry.d_tag(endian), entry.d_val(endian));
            (tag == DT_FLAGS && value & DF_BIND_NOW.0 != 0)
                || (tag == DT_FLAGS_1 && value & DF_1_NOW.0 != 0)
        }));
    }
    Ok(false)
}
