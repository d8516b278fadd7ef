//! One library file: its unwind table, kept for the life of the agent, and its function names,
//! looked up on demand. Keyed by what the file *is*, so that a library that is closed and opened
//! again is read once.

use crate::sys::mapped::MappedFile;
use dwell_native::elf::Elf;
use dwell_walker::native::{Row, Rule, lookup};

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
    rows: Box<[Row]>,
    file: Option<MappedFile>,
}

impl Image {
    /// Reads a library from its file. A file that cannot be read gives an image without rows and
    /// names: its frames are then unwound by frame pointer and shown as offsets.
    #[must_use]
    pub fn load(key: FileKey) -> Image {
        let name = display_name(&key.path);
        let mut image = Image {
            key,
            name,
            build_id: String::new(),
            rows: Box::new([]),
            file: None,
        };
        let Ok(file) = MappedFile::open(&image.key.path) else {
            return image;
        };
        if let Ok(elf) = Elf::parse(file.bytes()) {
            image.read(&elf);
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
            rows: Box::new([]),
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
            rows: Box::new([]),
            file: None,
        };
        if let Ok(elf) = Elf::parse(&bytes) {
            image.read(&elf);
        }
        image.file = Some(MappedFile::owned(bytes));
        image
    }

    fn read(&mut self, elf: &Elf<'_>) {
        if let Ok(table) = elf.unwind_table() {
            self.rows = table.into_rows();
        }
        let id = elf.build_id().unwrap_or(&[]);
        self.build_id = id.iter().take(32).map(|b| format!("{b:02x}")).collect();
    }

    /// The rule at `offset` from the image's lowest address.
    #[must_use]
    pub fn rule(&self, offset: u32) -> Rule {
        lookup(&self.rows, offset)
    }

    /// The parsed file, for placing it and for its symbols.
    #[must_use]
    pub fn elf(&self) -> Option<Elf<'_>> {
        Elf::parse(self.file.as_ref()?.bytes()).ok()
    }

    /// Bytes of memory the unwind table takes.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        size_of_val(&*self.rows)
    }
}

fn display_name(path: &[u8]) -> String {
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
        let image = Image::load(key("/nonexistent/libx.so"));
        assert_eq!(image.name, "libx.so");
        assert_eq!(image.rule(0), Rule::Gap);
        assert!(image.elf().is_none());
    }

    #[test]
    fn the_test_program_itself_has_rows() {
        let exe = std::env::current_exe().unwrap();
        let image = Image::load(key(exe.to_str().unwrap()));
        assert!(image.table_bytes() > 0);
        assert!(image.elf().is_some());
    }
}
