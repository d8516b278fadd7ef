//! The native libraries of another process: unwind rules and function names, read from their files
//! when the first frame in them is found.

use crate::memory::Live;
use dwell_attach::Target;
use dwell_native::elf::{Elf, ReadAt, SymbolIndex, Symbols, read_parts};
use dwell_native::maps::{self, Backing, Module};
use dwell_walker::Memory;
use dwell_walker::native::{NativeCode, Row, Rule, lookup};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// Larger libraries are not read.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// Maximum number of rules of a library that are looked up one by one; after that all are compiled.
const RULES_MAX: usize = 1 << 14;
/// The vdso is two pages.
const VDSO_BYTES_MAX: u64 = 1 << 20;

/// A library file.
pub struct Image {
    /// File name without directories.
    pub name: String,
    path: Vec<u8>,
    bytes: Vec<u8>,
    rows: OnceLock<Box<[Row]>>,
    /// Rules that were looked up one by one.
    rules: RwLock<FxHashMap<u32, Rule>>,
    index: OnceLock<SymbolIndex>,
    /// The symbols of its separate debug file.
    debug: OnceLock<Option<Symbols<'static>>>,
}

impl Image {
    fn new(path: &[u8], bytes: Vec<u8>) -> Image {
        let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        Image {
            name: String::from_utf8_lossy(file).into_owned(),
            path: path.to_vec(),
            bytes,
            rows: OnceLock::new(),
            rules: RwLock::default(),
            index: OnceLock::new(),
            debug: OnceLock::new(),
        }
    }

    /// The parsed file; `None` if it could not be read.
    #[must_use]
    pub fn elf(&self) -> Option<Elf<'_>> {
        Elf::parse(&self.bytes).ok()
    }

    /// The rule at `offset`. A single read of all threads needs few rules, and compiling the rules
    /// of a whole library would take most of its time.
    fn rule(&self, offset: u32) -> Rule {
        if let Some(rows) = self.rows.get() {
            return lookup(rows, offset);
        }
        let known = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(rule) = known.get(&offset) {
            return *rule;
        }
        drop(known);
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        let found = match rules.len() < RULES_MAX {
            true => self.elf().and_then(|elf| elf.rule_at(offset)),
            false => None,
        };
        match found {
            Some(rule) => *rules.entry(offset).or_insert(rule),
            None => lookup(self.rows(), offset),
        }
    }

    fn rows(&self) -> &[Row] {
        self.rows.get_or_init(|| {
            let table = self.elf().and_then(|elf| elf.unwind_table().ok());
            table.map_or_else(Box::default, |table| table.into_rows())
        })
    }

    /// The raw name of the function at `offset`. `open` opens a debug file.
    fn function(
        &self,
        offset: u32,
        open: &mut dyn FnMut(&[u8]) -> Option<DebugFile>,
    ) -> Option<String> {
        let elf = self.elf()?;
        let debug = (self.debug).get_or_init(|| elf.debug_symbols(&self.path, open));
        let symbol = match debug {
            Some(symbols) => symbols.lookup(offset),
            None => elf.symbol_at(self.index.get_or_init(|| elf.symbol_index()), offset),
        }?;
        Some(String::from_utf8_lossy(symbol.name).into_owned())
    }
}

/// A debug file, open.
struct DebugFile {
    file: File,
    len: u64,
}

impl ReadAt for DebugFile {
    fn file_len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> bool {
        self.file.read_exact_at(into, offset).is_ok()
    }
}

/// One executable range.
struct Span {
    range: Range<u64>,
    base: u64,
    image: Arc<Loaded>,
    is_vm: bool,
}

/// An image that is read when it is needed.
struct Loaded {
    module: Module,
    image: OnceLock<Image>,
}

/// All libraries that were mapped at one moment.
pub struct Modules<'t> {
    target: &'t Target,
    live: &'t Live,
    spans: Vec<Span>,
}

impl<'t> Modules<'t> {
    /// Reads the mappings. The files are not read yet, except for libjvm's.
    #[must_use]
    pub fn read(target: &'t Target, live: &'t Live) -> Modules<'t> {
        let mut modules = Modules {
            target,
            live,
            spans: Vec::new(),
        };
        modules.refresh();
        modules
    }

    /// Reads the mappings again. Keeps the data of libraries that are still mapped.
    pub fn refresh(&mut self) {
        let path = format!("/proc/{}/maps", self.target.jvm().pid);
        let text = std::fs::read(path).unwrap_or_default();
        let known = std::mem::take(&mut self.spans);
        for module in maps::modules(maps::parse(&text).filter_map(Result::ok)) {
            let same = known.iter().find(|span| span.image.module == module);
            self.add(match same {
                Some(span) => Arc::clone(&span.image),
                None => Arc::new(Loaded {
                    module,
                    image: OnceLock::new(),
                }),
            });
        }
        self.spans.sort_by_key(|span| span.range.start);
    }

    fn add(&mut self, loaded: Arc<Loaded>) {
        let is_vm = loaded.module.path.ends_with(b"/libjvm.so");
        // The load address follows from the file's headers, which are mapped, too.
        let header = loaded.module.header.as_ref();
        let head = header.and_then(|range| self.copy(range.start..range.start + PAGE));
        let elf = head.as_deref().and_then(|bytes| Elf::parse(bytes).ok());
        let page_bytes = crate::sys::perf::page_bytes() as u64;
        let placements = elf.map(|elf| loaded.module.placements(&elf, page_bytes));
        for placement in placements.unwrap_or_default() {
            for range in placement.executable {
                self.spans.push(Span {
                    range,
                    base: placement.base,
                    image: Arc::clone(&loaded),
                    is_vm,
                });
            }
        }
    }

    fn copy(&self, range: Range<u64>) -> Option<Vec<u8>> {
        let len = range.end.checked_sub(range.start)?;
        let mut bytes = vec![0; usize::try_from(len.min(VDSO_BYTES_MAX)).ok()?];
        self.live.read(range.start, &mut bytes).ok()?;
        Some(bytes)
    }

    fn find(&self, pc: u64) -> Option<(&Span, u32)> {
        let after = self.spans.partition_point(|span| span.range.start <= pc);
        let span = self.spans.get(after.checked_sub(1)?)?;
        let offset = u32::try_from(pc.checked_sub(span.base)?).ok()?;
        span.range.contains(&pc).then_some((span, offset))
    }

    fn image<'s>(&self, span: &'s Span) -> &'s Image {
        span.image.image.get_or_init(|| {
            let module = &span.image.module;
            let bytes = match module.backing {
                Backing::Vdso => module.executable.first().and_then(|range| {
                    let range = &range.addresses;
                    self.copy(range.clone())
                }),
                _ => self.file(module),
            };
            Image::new(&module.path, bytes.unwrap_or_default())
        })
    }

    /// The file: through its mapping if permitted (the right file even if another one has its name
    /// by now), else by its name.
    fn file(&self, module: &Module) -> Option<Vec<u8>> {
        let mapped = module.executable.first().and_then(|range| {
            let Range { start, end } = range.addresses;
            let pid = self.target.jvm().pid;
            let path = format!("/proc/{pid}/map_files/{start:x}-{end:x}");
            // A device can be mapped, too, and opening it has effects.
            let is_file = std::fs::metadata(&path).is_ok_and(|data| data.is_file());
            is_file.then(|| File::open(path).ok()).flatten()
        });
        let file = match mapped {
            Some(file) => file,
            None if module.is_deleted => return None,
            None => {
                let path = std::str::from_utf8(&module.path).ok()?;
                let file = self.target.open_file(path).ok()?;
                self.is_mapped(module, &file).then_some(file)?
            }
        };
        let len = file.metadata().ok()?.len().min(FILE_BYTES_MAX);
        let mut read = |at, part: &mut [u8]| file.read_exact_at(part, at).is_ok();
        read_parts(usize::try_from(len).ok()?, &mut read)
    }

    /// Whether `file` is the mapped one. Another one may have got its name since. File systems in
    /// layers show other numbers in the mappings than for the file; then the first bytes decide.
    fn is_mapped(&self, module: &Module, file: &File) -> bool {
        let Ok(data) = file.metadata() else {
            return false;
        };
        let device = (libc::major(data.dev()), libc::minor(data.dev()));
        if (device, data.ino()) == ((module.device.major, module.device.minor), module.inode) {
            return true;
        }
        let header = module.header.as_ref();
        let head = header.and_then(|range| self.copy(range.start..range.start + PAGE));
        head.is_some_and(|head| {
            let mut begin = vec![0; head.len()];
            file.read_exact_at(&mut begin, 0).is_ok() && begin == head
        })
    }

    /// Load address and image of libjvm.
    #[must_use]
    pub fn libjvm(&self) -> Option<(u64, &Image)> {
        let span = self.spans.iter().find(|span| span.is_vm)?;
        Some((span.base, self.image(span)))
    }

    /// Reads all libraries now. The unwind table and the names of a large one take a good part of a
    /// second. During that time samples would wait, and their code might be replaced.
    pub fn prepare(&self) {
        for span in &self.spans {
            let image = self.image(span);
            let _ = (image.rows(), self.name(image, 0));
        }
    }

    /// Whether `pc` is in one of the libraries.
    #[must_use]
    pub fn has(&self, pc: u64) -> bool {
        self.find(pc).is_some()
    }

    /// Library and function at `pc`.
    #[must_use]
    pub fn function(&self, pc: u64) -> Option<(&str, Option<String>)> {
        let (span, offset) = self.find(pc)?;
        let image = self.image(span);
        Some((&image.name, self.name(image, offset)))
    }

    fn name(&self, image: &Image, offset: u32) -> Option<String> {
        image.function(offset, &mut |path| self.debug_file(path))
    }

    /// A debug file of the target, by its path there.
    fn debug_file(&self, path: &[u8]) -> Option<DebugFile> {
        let file = self
            .target
            .open_file(std::str::from_utf8(path).ok()?)
            .ok()?;
        let len = file.metadata().ok()?.len();
        Some(DebugFile { file, len })
    }
}

/// In every real file, headers are within the first page.
const PAGE: u64 = 4096;

impl NativeCode for Modules<'_> {
    fn rule(&self, pc: u64) -> Option<Rule> {
        let (span, offset) = self.find(pc)?;
        Some(self.image(span).rule(offset))
    }

    fn is_vm(&self, pc: u64) -> bool {
        self.find(pc).is_some_and(|(span, _)| span.is_vm)
    }
}
