//! Which library covers an address now, and whether that changed since the last update.
//!
//! Samples are walked some milliseconds after they were taken. When libraries were loaded or
//! unloaded in between, an address may have belonged to another library. [`Modules::refresh`]
//! keeps the previous map for the samples of that moment. An address on which the two disagree is
//! never attributed to either.
//!
//! `/proc/self/maps` has all code, but reading it takes longer the more a program has mapped (82 ms
//! for 60,000 mappings). If it is too soon for that, the loader's own list has the changes.

use super::image::{self, FileKey, Image, display_name};
use super::unwind_rules::Tables;
use crate::sys::loader::{self, Generation, Loaded};
use crate::sys::process;
use dwell_host::small_files;
use dwell_native::maps::{self, Backing};
use dwell_walker::native::{NativeCode, Rule};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Reading all mappings may take one part in this many of the elapsed time.
const READ_SHARE: u32 = 100;

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
    /// The loader's list of `generation`, by lowest address.
    loaded: HashMap<u64, Loaded>,
    /// When all mappings may be read again.
    read_next: Instant,
    /// Whether the map is not of all mappings.
    is_partial: bool,
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
            loaded: HashMap::new(),
            read_next: Instant::now(),
            is_partial: false,
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
            loaded: HashMap::new(),
            read_next: Instant::now(),
            is_partial: false,
        };
        let tables = modules.tables;
        modules.read(|key| is_own(&display_name(&key.path)), tables);
        modules
    }

    /// Updates the map if libraries were loaded or unloaded. Call before a batch of samples is
    /// walked; the samples of this batch are then checked against the previous map, too. True if
    /// there is a new map.
    pub fn refresh(&mut self) -> bool {
        self.refresh_at(Instant::now())
    }

    fn refresh_at(&mut self, now: Instant) -> bool {
        let generation = loader::generation();
        let has_changed = generation != self.generation;
        let may_read = now >= self.read_next;
        let may_complete = self.is_partial && may_read;
        if !has_changed && !may_complete {
            self.previous = None;
            return false;
        }
        // Loading alone cannot change the meaning of an address: it had no meaning before.
        let unloaded = generation.subs != self.generation.subs;
        let before = std::mem::take(&mut self.map);
        self.generation = generation;
        if may_read {
            self.read(|_| true, self.tables);
        } else {
            self.read_loaded(&before, unloaded);
        }
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
        let began = process::own_cpu();
        // The list first: a library loaded in between is in the mappings, and new to the next list.
        self.loaded = loaded_by_base();
        let Ok(text) = small_files::read("/proc/self/maps") else {
            return;
        };
        let mappings = maps::parse(&text).filter_map(Result::ok);
        let modules = maps::modules(mappings);
        let took = process::own_cpu().saturating_sub(began);
        let mut map = CodeMap::default();
        for module in modules {
            let key = FileKey {
                device: (module.device.major, module.device.minor),
                inode: module.inode,
                path: module.path.clone(),
            };
            if !wanted(&key) {
                continue;
            }
            let image = self.image(key, |key| load(&module, key, tables));
            map.add(&module, &image);
        }
        self.set(map);
        // An unreferenced image would keep its memory until the recording ends.
        self.images.retain(|_, image| Arc::strong_count(image) > 1);
        self.is_partial = false;
        self.allow_next(took);
    }

    fn allow_next(&mut self, took: Duration) {
        self.read_next = Instant::now() + took * READ_SHARE;
    }

    /// Changes the map by what the loader has loaded and unloaded. Code that it does not list stays
    /// if nothing was unloaded: another namespace may have unloaded it.
    fn read_loaded(&mut self, before: &CodeMap, unloaded: bool) {
        let now = loaded_by_base();
        let was = &self.loaded;
        let is_listed = |base: u64| now.get(&base).is_some_and(|it| was.get(&base) == Some(it));
        let is_kept = |span: &&Span| match span.image.has_file() {
            false => true,
            true if !unloaded => is_listed(span.base) || !now.contains_key(&span.base),
            // It may have been loaded again from another file of that name.
            true => is_listed(span.base) && span.image.is_in_place(),
        };
        let mut map = CodeMap {
            spans: before.spans.iter().filter(is_kept).cloned().collect(),
            vm: Vec::new(),
        };
        let is_new = |it: &&Loaded| self.loaded.get(&it.base) != Some(it);
        let new: Vec<&Loaded> = now.values().filter(is_new).collect();
        for library in new {
            // Else it is found in the mappings later.
            if let Some((key, header)) = image::mapped_at(library) {
                let tables = tables_for(&key, self.tables);
                let image = self.image(key, |key| Image::load(key, Some(header), tables));
                map.cover(library, &image);
            }
        }
        self.loaded = now;
        self.set(map);
        self.is_partial = true;
    }

    fn image(&mut self, key: FileKey, load: impl FnOnce(FileKey) -> Image) -> Arc<Image> {
        let known = self.images.get(&key).filter(|image| !image.is_written());
        if let Some(image) = known {
            return Arc::clone(image);
        }
        let image = Arc::new(load(key.clone()));
        self.images.insert(key, Arc::clone(&image));
        image
    }

    fn set(&mut self, mut map: CodeMap) {
        map.spans.sort_unstable_by_key(|span| span.range.start);
        let is_vm = |s: &&Span| (self.is_own)(&s.image.name);
        map.vm = map
            .spans
            .iter()
            .filter(is_vm)
            .map(|s| s.range.clone())
            .collect();
        self.map = Arc::new(map);
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
        let page_bytes = dwell_signal::sys::page_bytes() as u64;
        let placements = image
            .head()
            .map(|elf| module.placements(elf, page_bytes))
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

    /// Adds a library in place of the code that was there.
    fn cover(&mut self, library: &Loaded, image: &Arc<Image>) {
        for range in &library.executable {
            let is_apart = |it: &Span| it.range.end <= range.start || range.end <= it.range.start;
            self.spans.retain(is_apart);
            self.spans.push(Span {
                range: range.clone(),
                base: library.base,
                image: Arc::clone(image),
            });
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

fn tables_for(key: &FileKey, (tables, is_met): TablesOf) -> Tables {
    match is_met(&display_name(&key.path)) {
        true => Tables::AsMet,
        false => tables,
    }
}

fn loaded_by_base() -> HashMap<u64, Loaded> {
    let all = loader::loaded().into_iter();
    all.map(|library| (library.base, library)).collect()
}

fn load(module: &maps::Module, key: FileKey, tables: TablesOf) -> Image {
    match (&module.backing, module.executable.first()) {
        (Backing::Vdso, Some(range)) => {
            let bytes = super::memory::copy(range.addresses.clone());
            Image::from_memory(key, bytes)
        }
        (Backing::File, _) => {
            let tables = tables_for(&key, tables);
            // By now the path of a deleted file may lead to another one. Its beginning may be the
            // same, unless that has a build id.
            let header = module.header.clone();
            let header = header.filter(|it| !module.is_deleted || image::has_build_id(it));
            Image::load(key, header, tables)
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
    use crate::testing::{build_library as build, load_library};

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
        let restorer = dwell_signal::restorer().unwrap() as u64;
        for pc in [restorer, restorer - 1] {
            assert_eq!(modules.map().rule_read(pc), Some(Rule::SignalFrame));
        }
        assert!(modules.place(0x10).is_none());
        assert!(!modules.map().is_vm(pc));
    }

    /// The spans of all libraries of the loader's list.
    fn listed(modules: &Modules) -> Vec<(Range<u64>, u64, Vec<u8>)> {
        let spans = modules.map.spans.iter();
        let of = |it: &Span| (it.range.clone(), it.base, it.image.key.path.clone());
        let mut all: Vec<_> = spans.map(of).collect();
        all.sort_by_key(|(range, ..)| range.start);
        all
    }

    fn address_of(library: &loader::Library, function: &str) -> u64 {
        let function = std::ffi::CString::new(function).unwrap();
        library.symbol(&function).unwrap()
    }

    fn name_at(modules: &Modules, pc: u64) -> Option<String> {
        let place = modules.place(pc)?;
        let elf = place.image.elf()?;
        let symbol = place.image.function(&elf, place.offset)?;
        Some(String::from_utf8_lossy(symbol.name).into_owned())
    }

    #[test]
    fn loaders_list_gives_the_map_of_all_mappings() {
        // The files' beginnings are compared with the engine's loads.
        let _alone = crate::testing::alone();
        let path = std::env::temp_dir().join(format!("dwell-listed-{}.so", std::process::id()));
        let path = path.to_str().unwrap();
        if build(path, "squared").is_none() {
            println!("skipped: no C compiler");
            return;
        }
        let mut modules = Modules::new(|_| false, (Tables::AsMet, |_| false), Vec::new());
        let before = listed(&modules);
        let now = Instant::now();
        modules.read_next = now + Duration::from_secs(60);
        let mut pc = 0;
        for function in ["squared", "squared_anew"] {
            // Another file of that name, with a function at the same address.
            std::fs::remove_file(path).unwrap();
            build(path, function).unwrap();
            let library = load_library(path);
            pc = address_of(&library, function);
            assert!(modules.refresh_at(now) && modules.is_partial);
            assert_eq!(name_at(&modules, pc).as_deref(), Some(function));
            let mapped = Modules::new(|_| false, (Tables::AsMet, |_| false), Vec::new());
            assert_eq!(listed(&modules), listed(&mapped));
            drop(library);
            assert!(modules.refresh_at(now));
            assert!(modules.place(pc).is_none() && listed(&modules) == before);
        }
        // All mappings are read as soon as that is allowed, though nothing has changed since.
        assert!(!modules.refresh_at(now) && modules.is_partial);
        assert!(modules.refresh_at(now + Duration::from_secs(61)) && !modules.is_partial);
        assert!(modules.place(pc).is_none() && listed(&modules) == before);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn replaced_file_gives_no_names_to_the_loaders_list() {
        let _alone = crate::testing::alone();
        let path = std::env::temp_dir().join(format!("dwell-anew-{}.so", std::process::id()));
        let path = path.to_str().unwrap();
        if build(path, "first").is_none() {
            println!("skipped: no C compiler");
            return;
        }
        let other = format!("{path}.other");
        build(&other, "other").unwrap();
        let now = Instant::now();
        let mut modules = Modules::new(|_| false, (Tables::AsMet, |_| false), Vec::new());
        modules.read_next = now + Duration::from_secs(60);
        let library = load_library(path);
        let pc = address_of(&library, "first");
        std::fs::rename(&other, path).unwrap();
        modules.refresh_at(now);
        assert!(
            modules.place(pc).is_none(),
            "the path leads to another file"
        );
        modules.refresh_at(now + Duration::from_secs(61));
        assert!(modules.place(pc).is_some());
        assert_eq!(name_at(&modules, pc), None);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn mappings_are_read_for_a_part_of_the_time_only() {
        let mut modules = Modules::new(|_| false, (Tables::AsMet, |_| false), Vec::new());
        let now = Instant::now();
        modules.allow_next(Duration::from_millis(80));
        assert!(modules.read_next >= now + Duration::from_secs(8));
        assert!(modules.read_next <= Instant::now() + Duration::from_secs(8));
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
        let restorer = dwell_signal::restorer().unwrap() as u64;
        let is_own = modules.place(restorer).unwrap().image.name == *OWN.get().unwrap();
        let expected = if is_own { Rule::Gap } else { Rule::SignalFrame };
        assert_eq!(map.rule(restorer), Some(expected));
        let read = map.rule_read(pc);
        assert!(matches!(read, Some(Rule::Sp { .. } | Rule::Fp { .. })));
    }
}
