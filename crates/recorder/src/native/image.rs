//! One library file: its unwind table and its function names, looked up on demand. It is keyed by
//! the file's identity, so a library that is closed and opened again is read once. It is kept from
//! one recording to the next, as long as the file is the same.

use super::memory;
use super::unwind_rules::{Table, Tables};
use crate::sys::loader::Loaded;
use crate::sys::mapped::{LibraryFile, MappedFile, Stamp};
use dwell_context::foreign;
use dwell_native::elf::{Elf, Parts, Symbol, SymbolIndex, Symbols};
use dwell_walker::native::Rule;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Number of bytes at a library's beginning that are compared, if only that shows whether a file
/// is the mapped one: its headers, and the build id where linkers place it.
const BEGIN_BYTES: u64 = 4096;

/// The file of a mapping: device, inode, and path for the few file systems without inodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileKey {
    /// Device number.
    pub device: (u32, u32),
    /// Inode number.
    pub inode: u64,
    /// Path as the kernel reports it.
    pub path: Vec<u8>,
}

/// A parsed library.
pub struct Image {
    /// The file's identity.
    pub key: FileKey,
    /// File name without directories, for display.
    pub name: String,
    /// Build id in hexadecimal; empty if the file has none.
    pub build_id: String,
    /// The offset, in its block of thread-local variables, of the one by which thread contexts are
    /// published, if it has one.
    pub thread_context: Option<u64>,
    /// Reads `contents`, which stay where they are.
    table: Table,
    /// Made when the first function is looked up: it takes milliseconds for a runtime's own
    /// library.
    symbols: OnceLock<SymbolIndex>,
    /// The symbols of its separate debug file, which is searched for at the same time.
    debug: OnceLock<Option<Symbols<'static>>>,
    /// `None` for an image without a file, or without a usable one.
    stamp: Option<Stamp>,
    /// Its segments.
    head: Option<Elf<'static>>,
    /// Symbols and unwind sections, read on first use: most libraries are never needed, and large
    /// ones have tens of megabytes of these.
    contents: OnceLock<Option<MappedFile>>,
}

/// Libraries that recordings have read, for the next one.
#[derive(Default)]
pub struct Kept(Mutex<Vec<Arc<Image>>>);

impl Kept {
    /// Images whose files are unchanged. They belong to the caller then.
    #[must_use]
    pub fn take(&self) -> Vec<Arc<Image>> {
        let mut images = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut images = std::mem::take(&mut *images);
        images.retain(|image| image.is_current());
        images
    }

    /// Keeps these, and no others.
    pub fn put(&self, images: Vec<Arc<Image>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = images;
    }
}

impl Image {
    /// Reads a library from its file. A file that cannot be read, or is not the mapped one, gives
    /// an image without rows and names. Its frames are then unwound by frame pointer and shown as
    /// offsets. `header` is where the beginning of the file is mapped.
    #[must_use]
    pub fn load(key: FileKey, header: Option<Range<u64>>, tables: Tables) -> Image {
        let mut image = Image::empty(key);
        let Some(file) = open(&image.key, header) else {
            return image;
        };
        let Ok(exports) = file.read(Parts::Exports) else {
            return image;
        };
        image.stamp = Some(file.stamp());
        if let Ok(elf) = Elf::parse(exports.bytes()) {
            image.read(&elf);
        }
        if tables == Tables::ForHandlers {
            image.make_ready();
        }
        image
    }

    /// The kernel's vdso, copied out of memory: it has no file.
    #[must_use]
    pub fn from_memory(key: FileKey, bytes: Vec<u8>) -> Image {
        let mut image = Image::empty(key);
        if let Ok(elf) = Elf::parse(&bytes) {
            image.read(&elf);
        }
        image.contents = OnceLock::from(Some(MappedFile::owned(bytes)));
        image.make_ready();
        image
    }

    fn empty(key: FileKey) -> Image {
        let name = display_name(&key.path);
        Image {
            key,
            name,
            build_id: String::new(),
            thread_context: None,
            table: Table::default(),
            symbols: OnceLock::new(),
            debug: OnceLock::new(),
            stamp: None,
            head: None,
            contents: OnceLock::new(),
        }
    }

    fn read(&mut self, elf: &Elf<'_>) {
        self.thread_context = elf.find_thread_local(foreign::SYMBOL.as_bytes());
        let id = elf.build_id().unwrap_or(&[]);
        self.build_id = id.iter().take(32).map(|b| format!("{b:02x}")).collect();
        self.head = Some(elf.clone().without_contents());
    }

    /// Whether there is a file, and it is unchanged since it was read.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.stamp.is_some() && !self.is_written()
    }

    /// Whether its file has been written since it was read, or another file has its number.
    #[must_use]
    pub fn is_written(&self) -> bool {
        let path = &self.key.path;
        self.stamp.is_some_and(|stamp| stamp.is_written(path))
    }

    /// Whether it is of a file, and not of the kernel.
    #[must_use]
    pub fn has_file(&self) -> bool {
        self.key.inode != 0
    }

    /// Whether its path still leads to the file that was read.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        let path = &self.key.path;
        self.stamp.is_some_and(|stamp| stamp.is_in_place(path))
    }

    /// The function at `offset`. Not in a handler.
    #[must_use]
    pub fn function<'e>(&'e self, elf: &Elf<'e>, offset: u32) -> Option<Symbol<'e>> {
        let debug = self.debug.get_or_init(|| {
            let mut open = |path: &[u8]| LibraryFile::open(path).ok();
            elf.debug_symbols(&self.key.path, &mut open)
        });
        if let Some(symbols) = debug {
            return symbols.lookup(offset);
        }
        let index = self.symbols.get_or_init(|| elf.symbol_index());
        elf.symbol_at(index, offset)
    }

    /// Makes the table usable by handlers. Not in a handler.
    pub fn make_ready(&self) {
        if let Some(elf) = self.elf() {
            self.table.make_ready(&elf);
        }
    }

    /// The rule at `offset` from the image's lowest address, if the table is
    /// [`Tables::ForHandlers`] or was made ready. Safe in a handler.
    #[must_use]
    pub fn rule(&self, offset: u32) -> Rule {
        self.table.rule(offset)
    }

    /// The same for any table, which may have to be read first. Not in a handler.
    #[must_use]
    pub fn rule_read(&self, offset: u32) -> Rule {
        self.table.rule_read(offset, || self.elf())
    }

    /// Its segments, to place it.
    #[must_use]
    pub fn head(&self) -> Option<&Elf<'static>> {
        self.head.as_ref()
    }

    /// The parsed file, for its symbols and rules; read now if it was not. Not in a handler.
    #[must_use]
    pub fn elf(&self) -> Option<Elf<'_>> {
        let contents = self.contents.get_or_init(|| {
            let stamp = self.stamp?;
            let file = LibraryFile::open(&self.key.path).ok()?;
            let is_same = file.stamp() == stamp;
            is_same.then(|| file.read(Parts::All).ok()).flatten()
        });
        Elf::parse(contents.as_ref()?.bytes()).ok()
    }

    /// Bytes of memory the unwind table takes.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.table.bytes()
    }
}

/// The mapped file, if its path leads to it. A file that has replaced it since is never used.
fn open(key: &FileKey, header: Option<Range<u64>>) -> Option<LibraryFile> {
    let file = LibraryFile::open(&key.path).ok()?;
    // Layered file systems have one number in the mappings and another one in stat(2).
    let is_mapped = file.is_at(key.device, key.inode) || {
        let begin = beginning(&header?);
        !begin.is_empty() && file.begins_with(&begin)
    };
    is_mapped.then_some(file)
}

/// The first bytes of a library in memory.
fn beginning(header: &Range<u64>) -> Vec<u8> {
    let end = header.start.saturating_add(BEGIN_BYTES).min(header.end);
    memory::copy(header.start..end)
}

/// Whether these first bytes are those of one version only.
pub(super) fn has_build_id(header: &Range<u64>) -> bool {
    let begin = beginning(header);
    Elf::parse(&begin).is_ok_and(|elf| elf.build_id().is_some())
}

/// The file of a library that the loader lists, and where its beginning is mapped. `None` if its
/// path leads to another file.
pub(super) fn mapped_at(library: &Loaded) -> Option<(FileKey, Range<u64>)> {
    let path = PathBuf::from(OsStr::from_bytes(&library.path));
    let path = std::fs::canonicalize(path)
        .ok()
        .filter(|_| library.has_headers)?;
    let path = path.into_os_string().into_vec();
    let header = library.base..library.base.saturating_add(BEGIN_BYTES);
    let file = LibraryFile::open(&path).ok()?;
    let begin = beginning(&header);
    let is_mapped = !begin.is_empty() && file.begins_with(&begin);
    let (device, inode) = file.place();
    is_mapped.then(|| {
        let key = FileKey {
            device,
            inode,
            path,
        };
        (key, header)
    })
}

/// The file's name without directories.
pub(super) fn display_name(path: &[u8]) -> String {
    let file = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    String::from_utf8_lossy(file).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn key(path: &str) -> FileKey {
        let (device, inode) = std::fs::metadata(path).map_or((0, 1), |is| (is.dev(), is.ino()));
        FileKey {
            device: (libc::major(device), libc::minor(device)),
            inode,
            path: path.as_bytes().to_vec(),
        }
    }

    fn load(key: FileKey, tables: Tables) -> Image {
        Image::load(key, None, tables)
    }

    /// Where this program's file is mapped.
    fn own_header() -> Range<u64> {
        let own = std::fs::canonicalize(std::env::current_exe().unwrap()).unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps
            .lines()
            .find(|line| line.ends_with(own.to_str().unwrap()));
        let (range, _) = line.unwrap().split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        number(start)..number(end)
    }

    /// A file that is truncated while its library is mapped costs only names and rules.
    #[test]
    fn never_does_a_truncated_library_end_the_process() {
        let path = std::env::temp_dir().join(format!("dwell-cut-{}", std::process::id()));
        for is_met in [false, true] {
            std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
            let image = load(key(path.to_str().unwrap()), Tables::AsMet);
            assert!(!image.build_id.is_empty() || image.head().is_some());
            assert!(!is_met || image.elf().is_some());
            std::fs::File::create(&path).unwrap();
            assert!(image.head().unwrap().segments().len() > 1);
            assert_eq!(image.elf().is_some(), is_met);
            let rule = image.rule_read(own_offset());
            assert_eq!(rule != Rule::Gap, is_met);
            assert!(image.is_written());
        }
        std::fs::remove_file(&path).unwrap();
    }

    /// Where a function of this program begins in the file.
    fn own_offset() -> u32 {
        let at = own_offset as fn() -> u32 as usize as u64;
        u32::try_from(at - own_header().start).unwrap()
    }

    #[test]
    fn only_the_file_that_is_mapped_is_used() {
        // The mapped bytes are read with the engine's loads.
        let _alone = crate::testing::alone();
        let exe = std::env::current_exe().unwrap();
        let path = std::env::temp_dir().join(format!("dwell-other-{}", std::process::id()));
        std::fs::copy(&exe, &path).unwrap();
        let mapped = Some(own_header());
        let mut other = key(path.to_str().unwrap());
        other.inode += 1;
        let load = |header| Image::load(other.clone(), header, Tables::AsMet);
        // Another number, but the same contents: layers, or the same version installed again.
        assert!(load(mapped.clone()).elf().is_some());
        assert!(load(None).elf().is_none(), "nothing says that it is it");
        let mut bytes = std::fs::read(&exe).unwrap();
        bytes[0x20] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(load(mapped).elf().is_none(), "another version");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_missing_file_is_an_image_without_rows() {
        for tables in [Tables::ForHandlers, Tables::AsMet] {
            let image = load(key("/nonexistent/libx.so"), tables);
            assert_eq!(image.name, "libx.so");
            assert_eq!(image.rule(0), Rule::Gap);
            assert_eq!(image.rule_read(0), Rule::Gap);
            assert!(image.elf().is_none());
        }
    }

    /// Runs a tool of the compiler; false if it is not there.
    fn run(tool: &str, arguments: &[&str]) -> bool {
        match std::process::Command::new(tool).args(arguments).status() {
            Ok(status) => {
                assert!(status.success(), "{tool} {arguments:?}");
                true
            }
            Err(_) => false,
        }
    }

    #[test]
    fn stripped_library_has_names_of_its_debug_file_only() {
        let dir = std::env::temp_dir().join(format!("dwell-debug-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
        let (library, whole, debug) = (path("libx.so"), path("whole.so"), path("libx.debug"));
        let build = |id: &str, into: &str| {
            let code = "__attribute__((noinline)) static int hidden(int a) { return a * a; }
                        int shown(int a) { return hidden(a) + 1; }";
            std::fs::write(dir.join("x.c"), code).unwrap();
            let id = format!("-Wl,--build-id=0x{id}");
            let options = ["-shared", "-fPIC", "-O1", "-g", &id, "-o", into];
            run("cc", &[&options[..], &[&path("x.c")]].concat())
        };
        let is_built = build("abcdef0123", &whole)
            && run("objcopy", &["--only-keep-debug", &whole, &debug])
            && run(
                "objcopy",
                &[
                    "--strip-all",
                    &format!("--add-gnu-debuglink={debug}"),
                    &whole,
                    &library,
                ],
            );
        if !is_built {
            println!("skipped: cc or objcopy is missing");
            return;
        }
        let bytes = std::fs::read(&whole).unwrap();
        let hidden = Elf::parse(&bytes).unwrap().find_symbol(b"hidden").unwrap();
        let name = || {
            let image = load(key(&library), Tables::AsMet);
            let elf = image.elf().unwrap();
            let offset = u32::try_from(hidden.svma - elf.base_svma()).unwrap();
            let symbol = image.function(&elf, offset)?;
            Some(String::from_utf8_lossy(symbol.name).into_owned())
        };
        assert_eq!(name().as_deref(), Some("hidden"));
        // A debug file of another build, and no debug file.
        assert!(build("abcdef0124", &whole));
        assert!(run("objcopy", &["--only-keep-debug", &whole, &debug]));
        assert_eq!(name(), None);
        std::fs::remove_file(&debug).unwrap();
        assert_eq!(name(), None);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn kept_image_is_returned_once_if_unchanged() {
        let path = std::env::temp_dir().join(format!("dwell-kept-{}", std::process::id()));
        std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
        let load = |path: &str| Arc::new(load(key(path), Tables::AsMet));
        let it = load(path.to_str().unwrap());
        let at = kept_image_is_returned_once_if_unchanged as fn() as usize as u64;
        let elf = it.elf().unwrap();
        assert!(it.function(&elf, u32::MAX).is_none());
        let own = std::fs::canonicalize(std::env::current_exe().unwrap()).unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let base = maps.lines().find(|l| l.ends_with(own.to_str().unwrap()));
        let (base, _) = base.unwrap().split_once('-').unwrap();
        let base = u64::from_str_radix(base, 16).unwrap();
        let offset = u32::try_from(at - base).unwrap();
        let name = it.function(&elf, offset).unwrap().name;
        assert!(String::from_utf8_lossy(name).contains("kept_image_is_returned_once"));

        let kept = Kept::default();
        assert!(kept.take().is_empty());
        let vdso = Arc::new(Image::from_memory(key("[vdso]"), vec![0; 64]));
        kept.put(vec![Arc::clone(&it), load("/nonexistent/libx.so"), vdso]);
        let taken = kept.take();
        assert!(taken.len() == 1 && Arc::ptr_eq(&taken[0], &it));
        assert!(kept.take().is_empty(), "it is who has taken it");
        kept.put(taken);
        let file = std::fs::File::options().append(true).open(&path).unwrap();
        file.set_len(file.metadata().unwrap().len() + 1).unwrap();
        assert!(kept.take().is_empty(), "it has been written");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn test_program_has_rows_with_each_kind_of_table() {
        let exe = std::env::current_exe().unwrap();
        let load = |tables| load(key(exe.to_str().unwrap()), tables);
        let (ready, met) = (load(Tables::ForHandlers), load(Tables::AsMet));
        assert!(ready.table_bytes() > 0);
        assert_eq!(met.table_bytes(), 0);
        // A handler sees no rows of it until it is made ready.
        let at = test_program_has_rows_with_each_kind_of_table as fn() as usize;
        assert_eq!(met.rule(at as u32), Rule::Gap);
        let own = ready.elf().unwrap();
        let rows = own.unwind_table().unwrap().into_rows();
        let end = rows.last().unwrap().offset;
        let begins = rows.iter().step_by(97).map(|row| row.offset);
        for at in begins.chain([0, end, end + 5000, u32::MAX]) {
            for offset in [at.saturating_sub(1), at, at.saturating_add(1)] {
                let rule = dwell_walker::native::lookup(&rows, offset);
                assert_eq!(ready.rule(offset), rule, "{offset:#x}");
                assert_eq!(ready.rule_read(offset), rule, "{offset:#x}");
                assert_eq!(met.rule_read(offset), rule, "{offset:#x}");
            }
        }
        assert_eq!(met.table_bytes(), ready.table_bytes());
    }
}
