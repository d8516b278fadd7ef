//! Names for native and kernel addresses, looked up in batches, kept by function.

use super::batch::{Code, PendingFrame};
use super::names::{Name, NameId, Names};
use crate::native::Kernel;
use crate::native::image::Image;
use dwell_native::elf::SymbolIndex;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The libraries met, by index.
#[derive(Default)]
pub struct Images {
    list: Vec<Arc<Image>>,
    by_address: FxHashMap<usize, u32>,
}

impl Images {
    /// The index of an image.
    pub fn index(&mut self, image: &Arc<Image>) -> u32 {
        let address = Arc::as_ptr(image) as usize;
        if let Some(index) = self.by_address.get(&address) {
            return *index;
        }
        let index = self.list.len() as u32;
        self.list.push(Arc::clone(image));
        self.by_address.insert(address, index);
        index
    }

    /// All images, by index.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Arc<Image>> {
        self.list.clone()
    }
}

struct Function {
    end: u32,
    text: String,
    name: Option<NameId>,
}

#[derive(Default)]
struct Library {
    name: String,
    /// Made when the first function is looked up.
    symbols: Option<SymbolIndex>,
    functions: BTreeMap<u32, Function>,
}

/// Resolves [`Code`] to names.
#[derive(Default)]
pub struct Resolver {
    libraries: Vec<Library>,
    kernel: Kernel,
}

impl Resolver {
    /// Forgets the ids of names, which are about to become invalid.
    pub fn clear_names(&mut self) {
        for library in &mut self.libraries {
            library
                .functions
                .values_mut()
                .for_each(|function| function.name = None);
        }
    }

    /// Looks up what is new in `frames`. `between` is called now and then: it can take long.
    pub fn prepare(
        &mut self,
        frames: &[PendingFrame],
        images: &[Arc<Image>],
        between: &mut dyn FnMut(),
    ) {
        let mut unknown: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut kernel = false;
        for frame in frames {
            match frame.code {
                Code::Native { image, offset } if !self.knows(image, offset) => {
                    unknown.entry(image).or_default().push(offset);
                }
                Code::Kernel(_) => kernel = true,
                Code::Native { .. } | Code::Named(_) => {}
            }
        }
        self.libraries.resize_with(images.len(), Library::default);
        for (index, mut offsets) in unknown {
            offsets.sort_unstable();
            offsets.dedup();
            let (index, found) = (index as usize, images.get(index as usize));
            if let (Some(library), Some(image)) = (self.libraries.get_mut(index), found) {
                library.resolve(image, &offsets);
                between();
            }
        }
        if kernel {
            self.kernel.load(between);
        }
    }

    fn knows(&self, image: u32, offset: u32) -> bool {
        let library = self.libraries.get(image as usize);
        library.is_some_and(|library| library.function(offset).is_some())
    }

    /// The name of `code`; call [`Resolver::prepare`] first.
    pub fn name(&mut self, code: Code, names: &mut Names) -> NameId {
        match code {
            Code::Named(id) => id,
            Code::Native { image, offset } => {
                let library = self.libraries.get_mut(image as usize);
                match library.and_then(|library| library.name_of(offset, names)) {
                    Some(id) => id,
                    None => names.add(Name::native("[unknown]", &format!("{offset:#x}"))),
                }
            }
            Code::Kernel(pc) => {
                let name = self.kernel.function(pc).unwrap_or("[unknown]");
                names.add(Name::native("[kernel]", name))
            }
        }
    }
}

impl Library {
    fn resolve(&mut self, image: &Image, offsets: &[u32]) {
        self.name.clone_from(&image.name);
        let elf = image.elf();
        for offset in offsets {
            let symbol = elf.as_ref().and_then(|elf| {
                let index = self.symbols.get_or_insert_with(|| elf.symbol_index());
                elf.symbol_at(index, *offset)
            });
            let (start, end, text) = match symbol {
                Some(s) => {
                    let text = String::from_utf8_lossy(s.name).into_owned();
                    (s.offset, s.offset.saturating_add(s.len.max(1)), text)
                }
                // No symbol: the offset itself is the name, by which whoever has the library's
                // debug file can still look it up.
                None => (*offset, offset.saturating_add(1), format!("{offset:#x}")),
            };
            let end = end.max(offset.saturating_add(1));
            self.functions.insert(
                start,
                Function {
                    end,
                    text,
                    name: None,
                },
            );
        }
    }

    fn function(&self, offset: u32) -> Option<&Function> {
        let (_, function) = self.functions.range(..=offset).next_back()?;
        (offset < function.end).then_some(function)
    }

    fn name_of(&mut self, offset: u32, names: &mut Names) -> Option<NameId> {
        let (_, function) = self.functions.range_mut(..=offset).next_back()?;
        if offset >= function.end {
            return None;
        }
        let (library, text) = (&self.name, &function.text);
        Some(
            *function
                .name
                .get_or_insert_with(|| names.add(Name::native(library, text))),
        )
    }
}
