//! Names for native and kernel addresses, looked up in batches, cached by function.

use super::batch::{Code, PendingFrame};
use super::kernel::KernelNames;
use super::names::{Name, NameId, Names};
use crate::native::image::Image;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The libraries seen, by index.
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

struct Function<A> {
    end: A,
    text: String,
    name: Option<NameId>,
}

/// Functions seen, by their beginning.
type Functions<A> = BTreeMap<A, Function<A>>;

#[derive(Default)]
struct Library {
    name: String,
    functions: Functions<u32>,
}

/// Resolves [`Code`] to names.
#[derive(Default)]
pub struct Resolver {
    libraries: Vec<Library>,
    kernel: KernelNames,
    kernel_functions: Functions<u64>,
}

impl Resolver {
    /// Forgets the ids of names, which are about to become invalid.
    pub fn clear_names(&mut self) {
        for library in &mut self.libraries {
            let functions = library.functions.values_mut();
            functions.for_each(|function| function.name = None);
        }
        let functions = self.kernel_functions.values_mut();
        functions.for_each(|function| function.name = None);
    }

    /// Looks up new addresses in `frames`. `between` is called now and then: it can take long.
    pub fn prepare(
        &mut self,
        frames: &[PendingFrame],
        images: &[Arc<Image>],
        between: &mut dyn FnMut(),
    ) {
        let mut unknown: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut kernel = Vec::new();
        for frame in frames {
            match frame.code {
                Code::Native { image, offset } if !self.knows(image, offset) => {
                    unknown.entry(image).or_default().push(offset);
                }
                Code::Kernel(pc) if find(&self.kernel_functions, pc).is_none() => kernel.push(pc),
                Code::Native { .. } | Code::Kernel(_) | Code::Named(_) => {}
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
        self.prepare_kernel(&kernel, between);
    }

    fn prepare_kernel(&mut self, unknown: &[u64], between: &mut dyn FnMut()) {
        for (start, end, text) in self.kernel.find(unknown, between) {
            let name = None;
            let known = Function { end, text, name };
            self.kernel_functions.entry(start).or_insert(known);
        }
    }

    fn knows(&self, image: u32, offset: u32) -> bool {
        let library = self.libraries.get(image as usize);
        library.is_some_and(|library| find(&library.functions, offset).is_some())
    }

    /// The name of `code`; call [`Resolver::prepare`] first.
    pub fn name(&mut self, code: Code, names: &mut Names) -> NameId {
        match code {
            Code::Named(id) => id,
            Code::Native { image, offset } => {
                let library = self.libraries.get_mut(image as usize);
                let found = library.and_then(|library| {
                    let Library {
                        name, functions, ..
                    } = library;
                    name_of(functions, offset, name, names)
                });
                match found {
                    Some(id) => id,
                    None => names.add(Name::native("[unknown]", &format!("{offset:#x}"))),
                }
            }
            Code::Kernel(pc) => match name_of(&mut self.kernel_functions, pc, "[kernel]", names) {
                Some(id) => id,
                None => names.add(Name::native("[kernel]", "[unknown]")),
            },
        }
    }
}

impl Library {
    fn resolve(&mut self, image: &Image, offsets: &[u32]) {
        self.name.clone_from(&image.name);
        let elf = image.elf();
        for offset in offsets {
            let symbol = (elf.as_ref()).and_then(|elf| image.function(elf, *offset));
            let (start, end, text) = match symbol {
                Some(s) => {
                    let text = String::from_utf8_lossy(s.name).into_owned();
                    (s.offset, s.offset.saturating_add(s.len.max(1)), text)
                }
                // Without a symbol the offset itself is the name. A reader that has the library's
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
}

/// The function at `address`.
fn find<A: Copy + Ord>(functions: &Functions<A>, address: A) -> Option<&Function<A>> {
    let (_, function) = functions.range(..=address).next_back()?;
    (address < function.end).then_some(function)
}

/// The name of the function at `address` of `library`.
fn name_of<A: Copy + Ord>(
    functions: &mut Functions<A>,
    address: A,
    library: &str,
    names: &mut Names,
) -> Option<NameId> {
    let (_, function) = functions.range_mut(..=address).next_back()?;
    if address >= function.end {
        return None;
    }
    let text = &function.text;
    let add = || names.add(Name::native(library, text));
    Some(*function.name.get_or_insert_with(add))
}
