//! Names of kernel functions. They come from the cache of another recording of this boot, or else
//! from `/proc/kallsyms`, which takes the kernel 40 ms and more to print, and are then cached.
//!
//! The cache is a file of the process's user that only this user can read, with only the names
//! that any process of that user may read. If only a capability lets this process read addresses
//! of the kernel, other processes of the user do not learn them here. The cache is not trusted
//! either if the kernel hides its addresses by now. If no such file can be made, only time is
//! lost. Its content: see [`packed`].

use crate::native::Kernel;
use crate::sys::{fds, process};
use dwell_host::small_files;
use dwell_native::kernel::packed::{Packed, Stamp};
use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file of names, in a folder of dwell's.
const NAME: &str = "kernel-names";
/// Maximum number of bytes read of the environment; the program controls it.
const ENVIRON_MAX: u64 = 1 << 20;
/// Of other small files.
const SMALL_MAX: u64 = 1 << 18;
/// Writing a file never takes this long.
const LEFT_OVER: Duration = Duration::from_secs(60);

/// A function of the kernel: its first address, the first one after it, its name.
pub type Known = (u64, u64, String);

/// The path of the kernel's list, and the system that it is valid for.
struct System {
    list: PathBuf,
    boot: PathBuf,
    modules: PathBuf,
    /// Where names may be kept; the first usable folder is taken.
    folders: Vec<PathBuf>,
    /// Whether only a capability of this process lets it read the list.
    by_capability: bool,
}

impl Default for System {
    fn default() -> System {
        // Not by getenv: another thread may be changing the environment.
        let environ = read_small(Path::new("/proc/self/environ"), ENVIRON_MAX);
        System {
            list: "/proc/kallsyms".into(),
            boot: "/proc/sys/kernel/random/boot_id".into(),
            modules: "/proc/modules".into(),
            folders: folders(&environ),
            by_capability: process::user() != 0
                && has_syslog(&read_small(Path::new("/proc/self/status"), SMALL_MAX)),
        }
    }
}

/// Names of kernel functions.
#[derive(Default)]
pub struct KernelNames {
    kernel: Kernel,
    /// Found out when the first name is wanted.
    system: Option<System>,
}

impl KernelNames {
    /// The functions at these addresses; addresses without a name are left out. `between` is
    /// called now and then: it can take long.
    pub fn find(&mut self, wanted: &[u64], between: &mut dyn FnMut()) -> Vec<Known> {
        if wanted.is_empty() {
            return Vec::new();
        }
        let KernelNames { kernel, system } = self;
        let system = system.get_or_insert_with(System::default);
        // A process that has read the whole list knows all names.
        let stamp = if kernel.is_complete() {
            None
        } else {
            system.stamp()
        };
        let (mut found, mut rest) = (Vec::new(), wanted.to_vec());
        // Many addresses are in the same functions, and each lookup reads some KB.
        rest.sort_unstable();
        rest.dedup();
        let mut are_modules_kept = None;
        if let Some(stamp) = &stamp
            && !system.is_hidden()
            && let Some(file) = system.kept()
            && let Some(packed) = Packed::open(&file, stamp)
        {
            are_modules_kept = Some(packed.knows_modules());
            rest.retain(|pc| {
                let is_known = |(_, end, _): &Known| pc < end;
                if found.last().is_some_and(is_known) {
                    return false;
                }
                let function = packed.function(*pc);
                let is_unknown = function.is_none();
                found.extend(function);
                is_unknown
            });
            if packed.is_damaged() {
                are_modules_kept = None;
            }
        }
        let mut is_read = false;
        let open = || match fds::kernel_symbols() {
            // These are for this process only, and are not cached.
            Some(list) => Ok(list),
            None => {
                is_read = true;
                File::open(&system.list)
            }
        };
        kernel.learn(&rest, open, between);
        let of_kernel = rest.iter().filter_map(|pc| kernel.function(*pc));
        found.extend(of_kernel.map(|it| (it.start, it.end, it.name.to_owned())));
        let is_more = are_modules_kept.is_none_or(|kept| !kept && kernel.is_complete());
        if is_read
            && is_more
            && let Some(stamp) = &stamp
            && let Some(bytes) = kernel.packed(stamp)
        {
            between();
            system.keep(&bytes);
            between();
        }
        found
    }
}

impl System {
    fn stamp(&self) -> Option<Stamp> {
        let boot = read_small(&self.boot, SMALL_MAX);
        Stamp::new(&boot, &read_small(&self.modules, SMALL_MAX))
    }

    /// Whether the kernel shows this process no addresses (`kallsyms_show_value`, kernel/ksyms.c):
    /// it prints zeros then.
    fn is_hidden(&self) -> bool {
        read_small(&self.list, 16) == [b'0'; 16]
    }

    /// The kept file, if it is one of ours.
    fn kept(&self) -> Option<File> {
        let open = |folder: &PathBuf| {
            let mut options = OpenOptions::new();
            // Only a regular file is opened, without waiting and without following a link.
            let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
            let file = options
                .read(true)
                .custom_flags(flags)
                .open(folder.join(NAME))
                .ok()?;
            let is = file.metadata().ok()?;
            let is_ours = is.is_file() && is.uid() == process::user() && is.mode() & 0o022 == 0;
            is_ours.then_some(file)
        };
        self.folders.iter().find_map(open)
    }

    /// Keeps names for the next recording, if possible.
    fn keep(&self, bytes: &[u8]) {
        if self.by_capability {
            return;
        }
        let _ = self
            .folders
            .iter()
            .any(|folder| keep_in(folder, bytes).is_some());
    }
}

fn keep_in(folder: &Path, bytes: &[u8]) -> Option<()> {
    // With another user's environment no file is made in that user's folders, nor where a link of
    // theirs leads.
    let is_ours = |path: &Path| {
        let is = std::fs::symlink_metadata(path);
        is.is_ok_and(|is| is.is_dir() && is.uid() == process::user() && is.mode() & 0o002 == 0)
    };
    let there = folder
        .ancestors()
        .find(|it| it.symlink_metadata().is_ok())?;
    let parent = folder.parent().filter(|_| there == folder);
    if !is_ours(there) || !parent.is_none_or(is_ours) {
        return None;
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder).ok()?;
    remove_left_over(folder);
    // A concurrent reader has the old file or the new one, whole. In containers that share the
    // folder processes may have the same number.
    let name = format!("{NAME}.{}.{}", std::process::id(), process::epoch_ns());
    let new = folder.join(name);
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)
        .ok()?;
    let is_written = file.write_all(bytes);
    drop(file);
    let is_kept = is_written.and_then(|()| std::fs::rename(&new, folder.join(NAME)));
    if is_kept.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    is_kept.ok()
}

/// Removes files left by processes that were killed while they wrote.
fn remove_left_over(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let is_one = (entry.file_name().to_str()).is_some_and(|name| {
            name.strip_prefix(NAME)
                .is_some_and(|it| it.starts_with('.'))
        });
        let is_old = || {
            let changed = entry.metadata().and_then(|is| is.modified());
            changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > LEFT_OVER))
        };
        if is_one && is_old() {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether, by its `/proc/self/status`, a process may read the kernel's addresses by CAP_SYSLOG
/// (34 in capability.h; capabilities(7)).
fn has_syslog(status: &[u8]) -> bool {
    let text = String::from_utf8_lossy(status);
    let effective = text.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    bits.is_some_and(|bits| bits & 1 << 34 != 0)
}

/// Folders of the user, by the environment (its layout: proc(5)): those of the XDG base directory
/// specification, first the one on a disk.
fn folders(environ: &[u8]) -> Vec<PathBuf> {
    let value = |name: &str| {
        let mut all = environ.split(|byte| *byte == 0);
        let value = all.find_map(|it| it.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        let path = Path::new(OsStr::from_bytes(value));
        // The specification says that relative paths are to be ignored.
        path.is_absolute().then(|| path.to_owned())
    };
    let cache = value("XDG_CACHE_HOME").or_else(|| {
        let home = value("HOME")?;
        home.is_dir().then(|| home.join(".cache"))
    });
    // Memory, where it ends with the boot.
    let runtime = value("XDG_RUNTIME_DIR").filter(|path| path.is_dir());
    let folders = cache.into_iter().chain(runtime);
    folders.map(|folder| folder.join("dwell")).collect()
}

/// The content of a file, up to a maximum length.
fn read_small(path: &Path, max: u64) -> Vec<u8> {
    small_files::read_start(path, max).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const BOOT: &str = "6c2f0a9e-0d6b-4b1f-9a53-9d1f0b8f2c11\n";
    const LIST: &str = "ffffffff81000000 T one\nffffffff81000100 t two\nffffffff81000200 t three\n\
        ffffffffc0000000 t in_module\t[ext4]\nffffffffc0000100 t last\t[ext4]\n";
    const ONE: u64 = 0xffff_ffff_8100_0010;
    const MODULE: u64 = 0xffff_ffff_c000_0010;
    const LAST: u64 = 0xffff_ffff_c000_0110;

    /// A simulated machine, removed at the end.
    struct Machine {
        root: PathBuf,
        by_capability: bool,
    }

    impl Machine {
        fn new(name: &str) -> Machine {
            let root = std::env::temp_dir().join(format!("dwell-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&root);
            std::fs::create_dir(&root).unwrap();
            let machine = Machine {
                root,
                by_capability: false,
            };
            machine.write("list", LIST);
            machine.write("boot", BOOT);
            machine.write("modules", "ext4 1024 1 - Live 0xffffffffc0000000\n");
            machine
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.root.join(name), text).unwrap();
        }

        fn kept(&self) -> PathBuf {
            self.root.join("cache").join(NAME)
        }

        /// The names that a new recording finds.
        fn names(&self, wanted: &[u64]) -> Vec<String> {
            let path = |name| self.root.join(name);
            let system = System {
                list: path("list"),
                boot: path("boot"),
                modules: path("modules"),
                folders: vec![path("nowhere/x\0y"), path("cache")],
                by_capability: self.by_capability,
            };
            let mut names = KernelNames {
                kernel: Kernel::default(),
                system: Some(system),
            };
            let found = names.find(wanted, &mut || ());
            found.into_iter().map(|(_, _, name)| name).collect()
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.root);
        }
    }

    #[test]
    fn the_list_is_read_once_in_a_boot() {
        let machine = Machine::new("kept-names");
        assert_eq!(machine.names(&[ONE, MODULE]), ["one", "in_module"]);
        let mode = std::fs::metadata(machine.kept())
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        // Reading the list there would give another name.
        machine.write(
            "list",
            "ffffffff81000000 T wrong\nffffffff81000100 T wrong_too\n",
        );
        assert_eq!(machine.names(&[ONE, MODULE]), ["one", "in_module"]);
        // Names that have to be read from the list are read.
        assert_eq!(
            machine.names(&[ONE, 0xffff_ffff_8100_0210]),
            ["one", "wrong_too"]
        );
        let left: Vec<_> = std::fs::read_dir(machine.root.join("cache"))
            .unwrap()
            .collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn another_boot_has_its_own_names() {
        let machine = Machine::new("kept-boots");
        assert_eq!(machine.names(&[ONE]), ["one"]);
        machine.write("boot", "00000000-0d6b-4b1f-9a53-9d1f0b8f2c11\n");
        machine.write("list", &LIST.replace("one", "new"));
        assert_eq!(machine.names(&[ONE]), ["new"]);
        machine.write("list", "");
        assert_eq!(machine.names(&[ONE]), ["new"]);
    }

    #[test]
    fn other_modules_are_learnt_again() {
        let machine = Machine::new("kept-modules");
        assert_eq!(machine.names(&[MODULE]), ["in_module"]);
        machine.write("modules", "xfs 2048 1 - Live 0xffffffffc0000000\n");
        machine.write("list", &LIST.replace("in_module", "in_other"));
        // The kernel's own are the same for the whole boot.
        assert_eq!(machine.names(&[ONE, MODULE]), ["one", "in_other"]);
        machine.write("list", "");
        assert_eq!(machine.names(&[MODULE]), ["in_other"]);
        // The last function of a module is always read from the list.
        assert!(machine.names(&[LAST]).is_empty());
    }

    #[test]
    fn cache_writable_by_others_or_symlinked_is_not_read() {
        let machine = Machine::new("kept-strange");
        machine.names(&[ONE]);
        machine.write("list", &LIST.replace("one", "true"));
        std::fs::set_permissions(machine.kept(), PermissionsExt::from_mode(0o622)).unwrap();
        assert_eq!(machine.names(&[ONE]), ["true"]);
        machine.write("list", &LIST.replace("one", "newer"));
        assert_eq!(machine.names(&[ONE]), ["true"], "written again");
        let away = machine.root.join("away");
        std::fs::rename(machine.kept(), &away).unwrap();
        symlink(&away, machine.kept()).unwrap();
        assert_eq!(machine.names(&[ONE]), ["newer"]);
        let before = std::fs::read(&away).unwrap();
        assert_eq!(machine.names(&[ONE]), ["newer"]);
        assert_eq!(std::fs::read(&away).unwrap(), before);
    }

    #[test]
    fn names_are_found_without_a_cache() {
        let machine = Machine::new("kept-nowhere");
        machine.write("cache", "no folder");
        assert_eq!(machine.names(&[ONE, MODULE]), ["one", "in_module"]);
        std::fs::remove_file(machine.root.join("boot")).unwrap();
        assert_eq!(machine.names(&[ONE]), ["one"]);
    }

    #[test]
    fn folders_are_those_of_the_environment() {
        let home = std::env::temp_dir();
        let home = home.to_str().unwrap();
        let of = |environ: String| folders(environ.as_bytes());
        assert_eq!(
            of(format!("A=1\0HOME={home}\0XDG_RUNTIME_DIR={home}\0")),
            [format!("{home}/.cache/dwell"), format!("{home}/dwell")].map(PathBuf::from)
        );
        assert_eq!(
            of(format!("XDG_CACHE_HOME=/cache\0HOME={home}")),
            [PathBuf::from("/cache/dwell")]
        );
        // Missing, or relative, or a name that only begins so.
        let none = "HOME=/nowhere/at/all\0XDG_CACHE_HOME=cache\0HOMER=/tmp\0";
        assert!(of(none.to_owned()).is_empty());
        assert!(of(String::new()).is_empty());
    }

    #[test]
    fn truncated_cache_is_written_again() {
        let machine = Machine::new("kept-cut");
        assert_eq!(machine.names(&[ONE]), ["one"]);
        let whole = std::fs::read(machine.kept()).unwrap();
        let file = File::options().write(true).open(machine.kept()).unwrap();
        file.set_len(whole.len() as u64 - 9).unwrap();
        assert_eq!(machine.names(&[ONE, MODULE]), ["one", "in_module"]);
        assert_eq!(std::fs::read(machine.kept()).unwrap(), whole);
    }

    #[test]
    fn names_read_by_capability_are_not_cached() {
        let mut machine = Machine::new("kept-capability");
        machine.by_capability = true;
        assert_eq!(machine.names(&[ONE]), ["one"]);
        assert!(!machine.kept().exists());
        assert!(has_syslog(b"Name:\tx\nCapEff:\t0000000400000000\n"));
        assert!(!has_syslog(
            b"CapPrm:\t0000000400000000\nCapEff:\t0000000300000000\n"
        ));
        assert!(!has_syslog(b"CapEff:\twhat\n"));
    }

    #[test]
    fn names_hidden_by_kernel_are_not_used() {
        let machine = Machine::new("kept-hidden");
        assert_eq!(machine.names(&[ONE]), ["one"]);
        machine.write("list", "0000000000000000 T one\n0000000000000000 t two\n");
        assert!(machine.names(&[ONE]).is_empty());
    }

    #[test]
    fn leftovers_are_removed_and_links_not_followed() {
        let machine = Machine::new("kept-left");
        let cache = machine.root.join("cache");
        std::fs::create_dir(&cache).unwrap();
        let path = |name: &str| cache.join(format!("{NAME}{name}"));
        for name in [".1.1", ".2.2", "s"] {
            std::fs::write(path(name), "left").unwrap();
        }
        let old = std::time::SystemTime::now() - 2 * LEFT_OVER;
        for name in [".1.1", "s"] {
            let file = File::options().write(true).open(path(name)).unwrap();
            file.set_modified(old).unwrap();
        }
        assert_eq!(machine.names(&[ONE]), ["one"]);
        let is_there = [".1.1", ".2.2", "s", ""].map(|name| path(name).exists());
        assert_eq!(is_there, [false, true, true, true]);

        let away = machine.root.join("away");
        std::fs::rename(&cache, &away).unwrap();
        std::fs::remove_file(away.join(NAME)).unwrap();
        symlink(&away, &cache).unwrap();
        assert_eq!(machine.names(&[ONE]), ["one"]);
        assert!(!away.join(NAME).exists());
        std::fs::create_dir(machine.root.join("within")).unwrap();
        assert!(keep_in(&cache.join("within"), b"x").is_none());
    }
}
