//! One library file: its unwind table and its function names, looked up on demand. Keyed by what
//! the file *is*, so that a library that is closed and opened again is read once, and kept from one
//! recording to the next, as long as the file is the same.

use super::unwind_rules::{Table, Tables};
use crate::sys::mapped::MappedFile;
use dwell_context::foreign;
use dwell_native::elf::{Elf, Symbol, SymbolIndex};
use dwell_walker::native::Rule;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What a mapping is of: device, inode, and path for the few file systems without inodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileKey {
    /// Device number.
    pub device: (u32, u32),
    /// Inode number.
    pub inode: u64,
    /// Path as the kernel tells it.
    pub path: Vec<u8>,
}

/// A parsed library.
pub struct Image {
    /// What it is of.
    pub key: FileKey,
    /// File name without directories, for display.
    pub name: String,
    /// Build id in hexadecimal; empty if the file has none.
    pub build_id: String,
    /// Where its block of thread-local variables has the one that thread contexts are published
    /// by, if it has one.
    pub thread_context: Option<u64>,
    /// Reads `file`, which stays where it is.
    table: Table,
    /// Made when the first function is looked up: it takes milliseconds for a runtime's own.
    symbols: OnceLock<SymbolIndex>,
    file: Option<MappedFile>,
}

/// Libraries that recordings have read, for the next one.
#[derive(Default)]
pub struct Kept(Mutex<Vec<Arc<Image>>>);

impl Kept {
    /// Those whose files are still what they were. They are its who takes them.
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
    /// Reads a library from its file. A file that cannot be read gives an image without rows and
    /// names: its frames are then unwound by frame pointer and shown as offsets.
    #[must_use]
    pub fn load(key: FileKey, tables: Tables) -> Image {
        let name = display_name(&key.path);
        let mut image = Image {
            key,
            name,
            build_id: String::new(),
            thread_context: None,
            table: Table::default(),
            symbols: OnceLock::new(),
            file: None,
        };
        let Ok(file) = MappedFile::open(&image.key.path) else {
            return image;
        };
        if let Ok(elf) = Elf::parse(file.bytes()) {
            image.read(&elf, tables);
        }
        image.file = Some(file);
        image
    }

    /// Opens a library for its symbols only.
    #[must_use]
    pub fn load_without_table(key: FileKey) -> Image {
        let name = display_name(&key.path);
        let file = MappedFile::open(&key.path).ok();
        Image {
            key,
            name,
            build_id: String::new(),
            thread_context: None,
            table: Table::default(),
            symbols: OnceLock::new(),
            file,
        }
    }

    /// The kernel's vdso, copied out of memory: it has no file.
    #[must_use]
    pub fn from_memory(key: FileKey, bytes: Vec<u8>) -> Image {
        let name = display_name(&key.path);
        let mut image = Image {
            key,
            name,
            build_id: String::new(),
            thread_context: None,
            table: Table::default(),
            symbols: OnceLock::new(),
            file: None,
        };
        let file = MappedFile::owned(bytes);
        if let Ok(elf) = Elf::parse(file.bytes()) {
            image.read(&elf, Tables::ForHandlers);
        }
        image.file = Some(file);
        image
    }

    fn read(&mut self, elf: &Elf<'_>, tables: Tables) {
        if tables == Tables::ForHandlers {
            self.table.make_ready(elf);
        }
        self.thread_context = elf.find_thread_local(foreign::SYMBOL.as_bytes());
        let id = elf.build_id().unwrap_or(&[]);
        self.build_id = id.iter().take(32).map(|b| format!("{b:02x}")).collect();
    }

    /// Whether there is a file, and it says what it said when it was read.
    #[must_use]
    pub fn is_current(&self) -> bool {
        let stamp = self.file.as_ref().and_then(MappedFile::stamp);
        stamp.is_some_and(|stamp| !stamp.is_written(&self.key.path))
    }

    /// The function at `offset`. Not in a handler.
    #[must_use]
    pub fn function<'e>(&self, elf: &Elf<'e>, offset: u32) -> Option<Symbol<'e>> {
        let index = self.symbols.get_or_init(|| elf.symbol_index());
        elf.symbol_at(index, offset)
    }

    /// Makes the table one that handlers can use. Not in a handler.
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

    /// The same whatever the table, for which it may have to be read. Not in a handler.
    #[must_use]
    pub fn rule_read(&self, offset: u32) -> Rule {
        self.table.rule_read(offset, || self.elf())
    }

    /// The parsed file, for placing it and for its symbols.
    #[must_use]
    pub fn elf(&self) -> Option<Elf<'_>> {
        Elf::parse(self.file.as_ref()?.bytes()).ok()
    }

    /// Bytes of memory the unwind table takes.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.table.bytes()
    }
}

/// The file's name without directories.
pub(super) fn display_name(path: &[u8]) -> String {
    let file = path.rsplit(|b| *b == b'/').next().unwrap_or(path);
    String::from_utf8_lossy(file).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &str) -> FileKey {
        FileKey {
            device: (0, 0),
            inode: 1,
            path: path.as_bytes().to_vec(),
        }
    }

    #[test]
    fn a_missing_file_is_an_image_without_rows() {
        for tables in [Tables::ForHandlers, Tables::AsMet] {
            let image = Image::load(key("/nonexistent/libx.so"), tables);
            assert_eq!(image.name, "libx.so");
            assert_eq!(image.rule(0), Rule::Gap);
            assert_eq!(image.rule_read(0), Rule::Gap);
            assert!(image.elf().is_none());
        }
    }

    #[test]
    fn what_is_kept_is_given_once_and_only_if_it_is_what_it_was() {
        let path = std::env::temp_dir().join(format!("dwell-kept-{}", std::process::id()));
        std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
        let load = |path: &str| Arc::new(Image::load(key(path), Tables::AsMet));
        let it = load(path.to_str().unwrap());
        let at = what_is_kept_is_given_once_and_only_if_it_is_what_it_was as fn() as usize as u64;
        let elf = it.elf().unwrap();
        assert!(it.function(&elf, u32::MAX).is_none());
        let own = std::fs::canonicalize(std::env::current_exe().unwrap()).unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let base = maps.lines().find(|l| l.ends_with(own.to_str().unwrap()));
        let (base, _) = base.unwrap().split_once('-').unwrap();
        let base = u64::from_str_radix(base, 16).unwrap();
        let offset = u32::try_from(at - base).unwrap();
        let name = it.function(&elf, offset).unwrap().name;
        assert!(String::from_utf8_lossy(name).contains("what_is_kept_is_given_once"));

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
    fn the_test_program_itself_has_rows_however_they_are_read() {
        let exe = std::env::current_exe().unwrap();
        let load = |tables| Image::load(key(exe.to_str().unwrap()), tables);
        let (ready, met) = (load(Tables::ForHandlers), load(Tables::AsMet));
        assert!(ready.table_bytes() > 0);
        assert_eq!(met.table_bytes(), 0);
        // What a handler may see of it: nothing, until it is made ready.
        let at = the_test_program_itself_has_rows_however_they_are_read as fn() as usize;
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
