//! Which library covers an address now, and whether that changed since the last update.
//!
//! Samples are walked some milliseconds after they were taken. When libraries were loaded or
//! unloaded in between, an address may have belonged to another library. [`Modules::refresh`]
//! keeps the previous map for the samples of that moment. An address on which the two disagree is
//! never attributed to either.

use super::image::{FileKey, Image, display_name};
use super::unwind_rules::Tables;
use crate::sys::loader::{self, Generation};
use dwell_host::small_files;
use dwell_native::maps::{self, Backing};
use dwell_walker::native::{NativeCode, Rule};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// One executable range of a module.
#[derive(Clone)]
struct Span {
    range: Range<u64>,
    base: u64,
    image: Arc<Image>,
}

/// Where a native address is.
#[derive(Clone)]
pub struct Place {
    /// The library.
    pub image: Arc<Image>,
    /// Offset from the library's lowest address.
    pub offset: u32,
}

/// The map at one moment: all data that a walk needs, safe to read in a handler.
#[derive(Default)]
pub struct CodeMap {
    spans: Vec<Span>,
    vm: Vec<Range<u64>>,
}

/// Whether the library with this file name is the runtime's own.
pub type IsOwn = fn(&str) -> bool;

/// How the tables of libraries are made, and for which file names only [`Tables::AsMet`] is used
/// in any case, because handlers do not ask for them.
pub type TablesOf = (Tables, fn(&str) -> bool);

/// The modules of the process.
pub struct Modules {
    is_own: IsOwn,
    tables: TablesOf,
    map: Arc<CodeMap>,
    previous: Option<Arc<CodeMap>>,
    images: HashMap<FileKey, Arc<Image>>,
    generation: Generation,
}

impl Modules {
    /// The present modules. The files of libraries that are `kept` are not read again.
    #[must_use]
    pub fn new(is_own: IsOwn, tables: TablesOf, kept: Vec<Arc<Image>>) -> Modules {
        let kept = kept.into_iter().map(|image| (image.key.clone(), image));
        let mut modules = Modules {
            is_own,
            tables,
            map: Arc::default(),
            previous: None,
            images: kept.collect(),
            generation: loader::generation(),
        };
        if tables.0 == Tables::ForHandlers {
            modules.make_all_ready();
        }
        modules.read(|_| true, tables);
        modules
    }

    /// The runtime's own libraries, to be kept: they are large, and stay loaded as long as the
    /// process lives. (Others may be closed, and a kept file takes room on the disk when it is
    /// deleted.)
    #[must_use]
    pub fn own_images(&self) -> Vec<Arc<Image>> {
        let is_own = |image: &&Arc<Image>| {
            let mut spans = self.map.spans.iter();
            (self.is_own)(&image.name) && spans.any(|span| Arc::ptr_eq(&span.image, image))
        };
        self.images.values().filter(is_own).cloned().collect()
    }

    /// Only the runtime's own, without unwind tables: enough to find its structures.
    #[must_use]
    pub fn only_own(is_own: IsOwn) -> Modules {
        let mut modules = Modules {
            is_own,
            tables: (Tables::AsMet, |_| true),
            map: Arc::default(),
            previous: None,
            images: HashMap::new(),
            generation: loader::generation(),
        };
        let tables = modules.tables;
        modules.read(|key| is_own(&display_name(&key.path)), tables);
        modules
    }

    /// Updates the map if libraries were loaded or unloaded. Call before a batch of samples is
    /// walked; the samples of this batch are then checked against the previous map, too. True if
    /// there is a new map.
    pub fn refresh(&mut self) -> bool {
        let generation = loader::generation();
        if generation == self.generation {
            self.previous = None;
            return false;
        }
        // Loading alone cannot change the meaning of an address: it had no meaning before.
        let unloaded = generation.subs != self.generation.subs;
        let before = std::mem::take(&mut self.map);
        self.generation = generation;
        let tables = self.tables;
        self.read(|_| true, tables);
        self.previous = unloaded.then_some(before);
        true
    }

    /// Makes all tables ready that handlers may ask for, including those of libraries loaded
    /// later.
    pub fn make_ready(&mut self) {
        let (tables, is_met) = self.tables;
        if tables == Tables::ForHandlers {
            return;
        }
        self.tables = (Tables::ForHandlers, is_met);
        self.make_all_ready();
    }

    fn make_all_ready(&self) {
        let (_, is_met) = self.tables;
        for image in self.images.values() {
            if !is_met(&image.name) {
                image.make_ready();
            }
        }
    }

    /// The present map.
    #[must_use]
    pub fn map(&self) -> Arc<CodeMap> {
        Arc::clone(&self.map)
    }

    fn read(&mut self, wanted: impl Fn(&FileKey) -> bool, tables: TablesOf) {
        let Ok(text) = small_files::read("/proc/self/maps") else {
            return;
        };
        let mappings = maps::parse(&text).filter_map(Result::ok);
        let mut map = CodeMap::default();
        for module in maps::modules(mappings) {
            let key = FileKey {
                device: (module.device.major, module.device.minor),
                inode: module.inode,
                path: module.path.clone(),
            };
            if !wanted(&key) {
                continue;
            }
            let known = self.images.get(&key).filter(|image| !image.is_written());
            let image = match known {
                Some(image) => Arc::clone(image),
                None => {
                    let image = Arc::new(load(&module, key.clone(), tables));
                    self.images.insert(key, Arc::clone(&image));
                    image
                }
            };
            map.add(&module, &image);
        }
        map.spans.sort_by_key(|span| span.range.start);
        let is_vm = |s: &&Span| (self.is_own)(&s.image.name);
        map.vm = map
            .spans
            .iter()
            .filter(is_vm)
            .map(|s| s.range.clone())
            .collect();
        self.map = Arc::new(map);
        // An unreferenced image would keep its memory until the recording ends.
        self.images.retain(|_, image| Arc::strong_count(image) > 1);
    }

    /// The place of `pc`; `None` if it is in no library, or its library has changed since the
    /// sample.
    #[must_use]
    pub fn place(&self, pc: u64) -> Option<Place> {
        let span = self.map.find(pc)?;
        if let Some(previous) = &self.previous {
            let same = previous
                .find(pc)
                .is_some_and(|p| p.image.key == span.image.key && p.base == span.base);
            if !same {
                return None;
            }
        }
        let offset = u32::try_from(pc.checked_sub(span.base)?).ok()?;
        Some(Place {
            image: Arc::clone(&span.image),
            offset,
        })
    }

    /// Whether `pc` was in a library at the sample or is in another now.
    #[must_use]
    pub fn is_ambiguous(&self, pc: u64) -> bool {
        self.previous.is_some() && self.place(pc).is_none()
    }

    /// Bytes of all unwind tables.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.images.values().map(|image| image.table_bytes()).sum()
    }

    /// Libraries that export the variable of thread contexts: their lowest addresses, and its
    /// offset in their thread-local blocks.
    #[must_use]
    pub fn thread_contexts(&self) -> Vec<(u64, u64)> {
        let exports = self.map.spans.iter();
        let mut all: Vec<_> = exports
            .filter_map(|span| Some((span.base, span.image.thread_context?)))
            .collect();
        all.dedup();
        all
    }

    /// Executable ranges of the libraries whose file names are `wanted`.
    #[must_use]
    pub fn ranges_of(&self, wanted: impl Fn(&str) -> bool) -> Vec<Range<u64>> {
        let spans = self.map.spans.iter().filter(|s| wanted(&s.image.name));
        spans.map(|s| s.range.clone()).collect()
    }

    /// Load address and path of the library with this file name.
    #[must_use]
    pub fn library(&self, name: &str) -> Option<(u64, Arc<Image>)> {
        let span = self.map.spans.iter().find(|s| s.image.name == name)?;
        Some((span.base, Arc::clone(&span.image)))
    }
}

impl CodeMap {
    fn add(&mut self, module: &maps::Module, image: &Arc<Image>) {
        let placements = image
            .head()
            .map(|elf| module.placements(elf))
            .unwrap_or_default();
        for placement in &placements {
            for range in &placement.executable {
                let image = Arc::clone(image);
                self.spans.push(Span {
                    range: range.clone(),
                    base: placement.base,
                    image,
                });
            }
        }
        if placements.is_empty() {
            // No readable file: the module still has a name, and is unwound by frame pointer.
            for range in &module.executable {
                let base = module
                    .header
                    .as_ref()
                    .map_or(range.addresses.start, |h| h.start);
                let image = Arc::clone(image);
                self.spans.push(Span {
                    range: range.addresses.clone(),
                    base,
                    image,
                });
            }
        }
    }

    /// The rule for `pc`, for any library's table: reads the parts that are needed. Not in a
    /// handler.
    #[must_use]
    pub fn rule_read(&self, pc: u64) -> Option<Rule> {
        let (image, offset) = self.at(pc)?;
        Some(image.rule_read(offset))
    }

    fn at(&self, pc: u64) -> Option<(&Image, u32)> {
        let span = self.find(pc)?;
        let offset = u32::try_from(pc.checked_sub(span.base)?).ok()?;
        Some((&span.image, offset))
    }

    fn find(&self, pc: u64) -> Option<&Span> {
        let after = self.spans.partition_point(|span| span.range.start <= pc);
        let span = self.spans.get(after.checked_sub(1)?)?;
        span.range.contains(&pc).then_some(span)
    }
}

fn load(module: &maps::Module, key: FileKey, (tables, is_met): TablesOf) -> Image {
    match (&module.backing, module.executable.first()) {
        (Backing::Vdso, Some(range)) => {
            let bytes = super::memory::copy(range.addresses.clone());
            Image::from_memory(key, bytes)
        }
        (Backing::File, _) => {
            let tables = match is_met(&display_name(&key.path)) {
                true => Tables::AsMet,
                false => tables,
            };
            Image::load(key, module.header.clone(), tables)
        }
        _ => Image::from_memory(key, Vec::new()),
    }
}

/// A map that reads the requested parts on demand. Not for handlers.
pub struct Read<'a>(pub &'a CodeMap);

impl NativeCode for Read<'_> {
    fn rule(&self, pc: u64) -> Option<Rule> {
        self.0.rule_read(pc)
    }

    fn is_vm(&self, pc: u64) -> bool {
        self.0.is_vm(pc)
    }
}

/// The interface for handlers: see [`CodeMap::rule_read`] for callers that need not take care.
impl NativeCode for CodeMap {
    fn rule(&self, pc: u64) -> Option<Rule> {
        let (image, offset) = self.at(pc)?;
        Some(image.rule(offset))
    }

    fn is_vm(&self, pc: u64) -> bool {
        self.vm.iter().any(|range| range.contains(&pc))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_code_has_a_module_and_a_rule() {
        for tables in [Tables::ForHandlers, Tables::AsMet] {
            has_a_module_and_a_rule((tables, |_| false));
        }
    }

    fn has_a_module_and_a_rule(tables: TablesOf) {
        let modules = Modules::new(|_| false, tables, Vec::new());
        let pc = the_own_code_has_a_module_and_a_rule as fn() as usize as u64;
        let place = modules.place(pc).unwrap();
        assert!(!place.image.name.is_empty());
        assert!(matches!(
            modules.map().rule_read(pc),
            Some(Rule::Sp { .. } | Rule::Fp { .. })
        ));
        // Walks that begin in a handler of ours continue in the interrupted code. As a return
        // address the restorer is looked up where it begins or one byte before.
        let restorer = dwell_signal::restorer() as u64;
        for pc in [restorer, restorer - 1] {
            assert_eq!(modules.map().rule_read(pc), Some(Rule::SignalFrame));
        }
        assert!(modules.place(0x10).is_none());
        assert!(!modules.map().is_vm(pc));
    }
    /// A walk of copies also walks in handlers, where copies would be walked too late.
    #[test]
    fn tables_are_ready_for_handlers_once_these_walk() {
        let mut modules = Modules::new(|_| false, (Tables::AsMet, |_| false), Vec::new());
        let published = modules.map();
        let pc = tables_are_ready_for_handlers_once_these_walk as fn() as usize as u64;
        assert_eq!(published.rule(pc), Some(Rule::Gap));
        modules.make_ready();
        // Also in the map that handlers have already.
        let rule = published.rule(pc);
        assert!(matches!(rule, Some(Rule::Sp { .. } | Rule::Fp { .. })));
        assert_eq!(rule, published.rule_read(pc));
        modules.make_ready();
    }

    #[test]
    fn libraries_that_are_kept_are_not_read_again() {
        let as_met: TablesOf = (Tables::AsMet, |_| false);
        let first = Modules::new(|_| true, as_met, Vec::new());
        let pc = libraries_that_are_kept_are_not_read_again as fn() as usize as u64;
        let image = first.place(pc).unwrap().image;
        let gone = FileKey {
            device: (0, 0),
            inode: 1,
            path: b"/gone".to_vec(),
        };
        let gone = Image::load(gone, None, Tables::AsMet);
        let mut kept = first.own_images();
        assert!(kept.iter().any(|it| Arc::ptr_eq(it, &image)));
        kept.push(Arc::new(gone));
        let for_handlers: TablesOf = (Tables::ForHandlers, |_| false);
        let second = Modules::new(|_| true, for_handlers, kept);
        assert!(Arc::ptr_eq(&second.place(pc).unwrap().image, &image));
        let rule = second.map().rule(pc);
        assert!(matches!(rule, Some(Rule::Sp { .. } | Rule::Fp { .. })));
        let own = second.own_images();
        assert!(own.iter().all(|it| it.name != "gone"), "it is not mapped");
        let others = Modules::new(|_| false, for_handlers, own);
        assert!(Arc::ptr_eq(&others.place(pc).unwrap().image, &image));
        assert!(others.own_images().is_empty());
    }

    #[test]
    fn tables_that_handlers_do_not_ask_for_are_not_made() {
        let pc = tables_that_handlers_do_not_ask_for_are_not_made as fn() as usize as u64;
        let own = std::env::current_exe().unwrap();
        static OWN: std::sync::OnceLock<String> = std::sync::OnceLock::new();
        OWN.get_or_init(|| display_name(own.as_os_str().as_encoded_bytes()));
        let modules = Modules::new(
            |_| false,
            (Tables::ForHandlers, |name| {
                OWN.get().is_some_and(|own| own == name)
            }),
            Vec::new(),
        );
        let map = modules.map();
        assert_eq!(map.rule(pc), Some(Rule::Gap));
        // All others are ready.
        let restorer = dwell_signal::restorer() as u64;
        let is_own = modules.place(restorer).unwrap().image.name == *OWN.get().unwrap();
        let expected = if is_own { Rule::Gap } else { Rule::SignalFrame };
        assert_eq!(map.rule(restorer), Some(expected));
        let read = map.rule_read(pc);
        assert!(matches!(read, Some(Rule::Sp { .. } | Rule::Fp { .. })));
    }
}
