//! The dynamic loader: exported symbols of a library, and whether libraries were loaded or
//! unloaded.

use super::joined;
use dwell_signal::{Live, sys};
use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ops::Range;

/// How many libraries were loaded and unloaded since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generation {
    /// Loaded.
    pub adds: u64,
    /// Unloaded.
    pub subs: u64,
}

type Callback = unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> c_int;

/// Passes libraries to `callback` (dl_iterate_phdr(3)), which runs under the loader's short lock.
/// Another thread may wait for that lock within `malloc`, if that calls `dladdr`. So callbacks must
/// not allocate.
fn iterate<T>(callback: Callback, out: &mut T) {
    #[cfg(test)]
    let _watch = super::watch::Watch::begin();
    // SAFETY: each callback gets a pointer to what it expects, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(callback), (&raw mut *out).cast()) };
}

unsafe extern "C" fn take_counters(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    out: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid info, and `out` is the Generation of `generation`.
    unsafe {
        let out = &mut *out.cast::<Generation>();
        out.adds = (*info).dlpi_adds;
        out.subs = (*info).dlpi_subs;
    }
    1 // stop at the first: the counters are the same in all
}

/// Reads the loader's counters. Takes the loader's short lock.
#[must_use]
pub fn generation() -> Generation {
    let mut out = Generation::default();
    iterate(take_counters, &mut out);
    out
}

/// Copies of the loader's infos, as far as there is room, and how many libraries it listed.
struct Listed {
    infos: Vec<libc::dl_phdr_info>,
    count: usize,
}

unsafe extern "C" fn take_info(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    out: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid info, which has had these fields since glibc 2.4. `out` is
    // the Listed of `read`, and only places within the vector's room are written.
    unsafe {
        let out = &mut *out.cast::<Listed>();
        if out.count < out.infos.capacity() {
            out.infos.as_mut_ptr().add(out.count).write(*info);
        }
        out.count += 1;
    }
    0
}

/// Libraries that fit without a second call.
const ROOM: usize = 128;
/// Maximum number of calls: libraries may be loaded and unloaded between them.
const CALLS_MAX: usize = 4;

/// Reads all libraries of the agent's namespace. The loader's lock is not held while names and
/// headers are read. If a library is unloaded during that, all are read again.
fn read(room: usize, with_blocks: bool) -> Vec<Loaded> {
    read_after(room, with_blocks, || ())
}

/// The same, with `listed_all` called after each listing: only then are names and headers read.
fn read_after(mut room: usize, with_blocks: bool, mut listed_all: impl FnMut()) -> Vec<Loaded> {
    let mut found = Vec::new();
    let Ok(live) = Live::install() else {
        return found;
    };
    for _ in 0..CALLS_MAX {
        let mut listed = Listed {
            infos: Vec::with_capacity(room),
            count: 0,
        };
        iterate(take_info, &mut listed);
        listed_all();
        let (count, fitting) = (listed.count, listed.infos.capacity());
        // SAFETY: so many were written.
        unsafe { listed.infos.set_len(count.min(fitting)) };
        found.clear();
        let mut subs = 0;
        for info in &listed.infos {
            subs = info.dlpi_subs;
            if let Some(library) = library(info, live, with_blocks) {
                found.push(library);
            }
        }
        if count <= fitting && subs == generation().subs {
            break;
        }
        room = count;
    }
    found
}

/// Program headers of a library.
type Headers = [libc::Elf64_Phdr; HEADERS_MAX];
/// Most of them that are read.
const HEADERS_MAX: usize = 128;
/// Most bytes of a path that are read.
const PATH_MAX: usize = 4096;

/// Copies the program headers of a library, which may be gone by now. They lie in the mapped file,
/// and if somebody has truncated the file, reading them raises SIGBUS. Empty if they cannot be
/// read.
fn headers<'a>(
    info: &libc::dl_phdr_info,
    live: Live,
    out: &'a mut MaybeUninit<Headers>,
) -> &'a [libc::Elf64_Phdr] {
    let out = out.as_mut_ptr().cast::<libc::Elf64_Phdr>();
    let count = usize::from(info.dlpi_phnum).min(HEADERS_MAX);
    let size = count * size_of::<libc::Elf64_Phdr>();
    // SAFETY: the destination has room for so many headers. They consist of integers, so any bytes
    // are valid, and the length covers copied headers only.
    unsafe {
        let copied = live.copy(out.cast(), info.dlpi_phdr as u64, size);
        std::slice::from_raw_parts(out, copied / size_of::<libc::Elf64_Phdr>())
    }
}

/// Copies a path that may be gone by now, byte by byte: a copy of more may stop some bytes before
/// the end of what can be read.
fn path_at(name: u64, live: Live) -> Vec<u8> {
    let mut path = Vec::new();
    while path.len() < PATH_MAX {
        let mut byte = 0;
        // SAFETY: the destination is a local byte.
        unsafe { live.copy(&raw mut byte, name.wrapping_add(path.len() as u64), 1) };
        if byte == 0 {
            break;
        }
        path.push(byte);
    }
    path
}

/// A library as the loader lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Its lowest address.
    pub base: u64,
    /// The path it was loaded by; empty for the program itself.
    pub path: Vec<u8>,
    /// Where its code is.
    pub executable: Vec<Range<u64>>,
    /// Whether the file's headers are at `base`.
    pub has_headers: bool,
    /// Where the loader has its program headers.
    headers: u64,
    /// Where threads keep its thread-local variables; empty in `loaded()`.
    pub block: Block,
}

/// Where threads keep the thread-local variables of one library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The loader's number of it, from 1 on; 0: the library has no such variables.
    pub module: u64,
    /// How far the block begins below the thread pointer, if that is the same in all threads.
    pub below: Option<u64>,
}

/// All libraries of the agent's namespace, in time that depends on their number only: reading
/// `/proc/self/maps` takes longer the more a program has mapped. Takes the loader's short lock.
#[must_use]
pub fn loaded() -> Vec<Loaded> {
    read(ROOM, false)
}

fn library(info: &libc::dl_phdr_info, live: Live, with_blocks: bool) -> Option<Loaded> {
    let mut out = MaybeUninit::uninit();
    let headers = headers(info, live, &mut out);
    let page_mask = sys::page_bytes() as u64 - 1;
    let mut lowest: Option<&libc::Elf64_Phdr> = None;
    let mut executable = Vec::new();
    for it in headers.iter().filter(|it| it.p_type == libc::PT_LOAD) {
        if lowest.is_none_or(|before| it.p_vaddr < before.p_vaddr) {
            lowest = Some(it);
        }
        if it.p_flags & libc::PF_X != 0 {
            let start = info.dlpi_addr.wrapping_add(it.p_vaddr);
            let end = start.wrapping_add(it.p_memsz).wrapping_add(page_mask) & !page_mask;
            executable.push(start & !page_mask..end);
        }
    }
    let lowest = lowest?;
    Some(Loaded {
        // Rounded as its file's is (`dwell_native::elf::Elf::base_svma`).
        base: info.dlpi_addr.wrapping_add(lowest.p_vaddr) & !0xfff,
        path: path_at(info.dlpi_name as u64, live),
        executable,
        has_headers: lowest.p_offset & !page_mask == 0,
        headers: info.dlpi_phdr as u64,
        block: match with_blocks {
            true => block(info),
            false => Block::default(),
        },
    })
}

/// All libraries, with the blocks of those that have thread-local variables.
///
/// A thread begins with exactly the blocks that have a fixed place. They lie between its stack and
/// its thread pointer. So a new thread reports its blocks. It touches no variable: that could make
/// a block, or settle its place.
#[must_use]
pub fn loaded_with_blocks() -> Vec<Loaded> {
    let asked = std::thread::Builder::new()
        .name("dwell-blocks".into())
        .spawn(|| read(ROOM, true));
    asked
        .ok()
        .and_then(|thread| joined::value_within(thread, joined::LIMIT))
        .unwrap_or_default()
}

/// The calling thread's block of a library.
fn block(info: &libc::dl_phdr_info) -> Block {
    let here = 0u8;
    // SAFETY: always succeeds; with glibc it is the thread pointer.
    let pointer = unsafe { libc::pthread_self() };
    let (block, stack) = (info.dlpi_tls_data as u64, (&raw const here) as u64);
    let is_fixed = stack < block && block < pointer;
    Block {
        module: info.dlpi_tls_modid as u64,
        below: is_fixed.then(|| pointer.wrapping_sub(block)),
    }
}

/// The address of an exported symbol of any loaded library. Symbols of a library that was not
/// loaded globally are not visible otherwise. So it is opened again by path (which only counts a
/// reference).
pub struct Library(*mut c_void);

impl Library {
    /// A handle to an already loaded library; `None` if it is not loaded.
    #[must_use]
    pub fn loaded(path: &CStr) -> Option<Library> {
        // SAFETY: RTLD_NOLOAD never runs code of the library; path is a C string.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        (!handle.is_null()).then_some(Library(handle))
    }

    /// Loads a library.
    #[cfg(test)]
    pub fn load(path: &CStr) -> Option<Library> {
        // SAFETY: path is a C string, and tests load libraries of their own, without initialisers.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        (!handle.is_null()).then_some(Library(handle))
    }

    /// The address of `name`.
    #[must_use]
    pub fn symbol(&self, name: &CStr) -> Option<u64> {
        // SAFETY: the handle is open until drop; name is a C string.
        let addr = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!addr.is_null()).then_some(addr as u64)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: gives back the reference taken in `loaded`.
        unsafe { libc::dlclose(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{sys::watch, testing};
    use std::cell::Cell;

    thread_local! {
        static OWN: Cell<u64> = const { Cell::new(7) };
    }

    #[test]
    fn loader_callbacks_do_not_allocate() {
        unsafe extern "C" fn allocate(
            _: *mut libc::dl_phdr_info,
            _: usize,
            _: *mut c_void,
        ) -> c_int {
            drop(std::hint::black_box(vec![1]));
            1
        }
        let before = watch::calls();
        assert!(loaded().len() > 1);
        assert!(read(0, true).iter().any(|it| it.block.module > 0));
        assert!(generation().adds > 1);
        assert_eq!(watch::calls(), before);
        iterate(allocate, &mut ());
        assert_eq!(watch::calls(), before + 2, "one that allocates is noticed");
    }

    /// Other tests may load libraries at the same time.
    #[test]
    fn full_buffer_is_enlarged_until_all_libraries_are_found() {
        for room in [0, 1, 2] {
            let before = loaded();
            let found = read(room, false);
            let after = loaded();
            let mut stay = before.iter().filter(|it| after.contains(it));
            assert!(stay.all(|it| found.contains(it)), "{room}: {found:?}");
            let is_libc = |it: &&Loaded| it.path.ends_with(b"/libc.so.6");
            let libc = found.iter().find(is_libc).unwrap();
            let code = (libc::getppid as unsafe extern "C" fn() -> i32) as usize as u64;
            assert!(
                libc.executable.iter().any(|it| it.contains(&code)),
                "{libc:?}"
            );
        }
    }

    /// The second library usually gets the addresses of the first one. Read from the listing
    /// before, it would have the path of the first one, which is freed.
    #[test]
    fn library_unloaded_while_headers_are_read_repeats_the_listing() {
        let alone = testing::alone();
        let paths = ["first.so", "other.so"].map(|name| alone.library(name));
        let [Some(first), Some(other)] = paths else {
            println!("skipped: no C compiler");
            return;
        };
        let mut library = Some(testing::load_library(&first));
        assert!(at(&loaded(), &first).is_some());
        let mut listings = 0;
        let found = read_after(ROOM, false, || {
            listings += 1;
            if listings == 1 {
                drop(library.take());
                library = Some(testing::load_library(&other));
            }
        });
        assert_eq!(listings, 2);
        assert_eq!(at(&found, &first), None);
        let after = at(&found, &other).expect("read after the change");
        assert_eq!(Some(&after), at(&loaded(), &other).as_ref());
    }

    #[test]
    fn library_loaded_while_headers_are_read_repeats_nothing() {
        let alone = testing::alone();
        let Some(path) = alone.library("added.so") else {
            println!("skipped: no C compiler");
            return;
        };
        let (mut library, mut listings) = (None, 0);
        let found = read_after(ROOM, false, || {
            listings += 1;
            library = Some(testing::load_library(&path));
        });
        assert_eq!((listings, at(&found, &path)), (1, None));
        assert!(at(&loaded(), &path).is_some());
    }

    #[test]
    fn libraries_unloaded_again_and_again_end_the_listings() {
        let alone = testing::alone();
        let Some(path) = alone.library("unsteady.so") else {
            println!("skipped: no C compiler");
            return;
        };
        let mut library = Some(testing::load_library(&path));
        let mut listings = 0;
        let found = read_after(0, false, || {
            listings += 1;
            drop(library.take());
            library = Some(testing::load_library(&path));
        });
        assert_eq!(listings, CALLS_MAX);
        assert!(found.iter().any(|it| it.path.ends_with(b"/libc.so.6")));
    }

    fn at(found: &[Loaded], path: &str) -> Option<Loaded> {
        found.iter().find(|it| it.path == path.as_bytes()).cloned()
    }

    /// The test program's own block has a fixed place, and its variables are in there.
    #[test]
    fn thread_local_blocks_have_fixed_places() {
        let blocks = loaded_with_blocks();
        let is_own = |it: &dwell_native::maps::Module| {
            let code = thread_local_blocks_have_fixed_places as fn() as usize as u64;
            let mut ranges = it.executable.iter();
            ranges.any(|range| range.addresses.contains(&code))
        };
        let text = std::fs::read("/proc/self/maps").unwrap();
        let mappings = dwell_native::maps::parse(&text).filter_map(Result::ok);
        let own = dwell_native::maps::modules(mappings)
            .into_iter()
            .find(is_own);
        let base = own.unwrap().header.unwrap().start;
        let block = blocks.iter().find(|it| it.base == base).unwrap().block;
        assert!(block.module > 0);
        let below = block.below.unwrap();
        for _ in 0..2 {
            let seen = std::thread::spawn(|| {
                // SAFETY: always succeeds.
                let pointer = unsafe { libc::pthread_self() };
                OWN.with(|own| pointer - (&raw const *own) as u64)
            });
            let distance = seen.join().unwrap();
            assert!(0 < distance && distance <= below, "{distance} {below}");
        }
    }
}
