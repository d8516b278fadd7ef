//! The dynamic loader: exported symbols of a library, and whether libraries were loaded or
//! unloaded.

use super::joined;
use dwell_signal::{Live, sys};
use std::ffi::{CStr, c_int, c_void};
use std::ops::Range;

/// How many libraries were loaded and unloaded since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generation {
    /// Loaded.
    pub adds: u64,
    /// Unloaded.
    pub subs: u64,
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

/// Reads the loader's counters (dl_iterate_phdr(3)). Takes the loader's short lock.
#[must_use]
pub fn generation() -> Generation {
    let mut out = Generation::default();
    // SAFETY: the callback gets a pointer to `out`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(take_counters), (&raw mut out).cast()) };
    out
}

/// Most program headers of a library that are read.
const HEADERS_MAX: usize = 256;

/// Copies the program headers of a library. They lie in the mapped file, and if somebody has
/// truncated the file, reading them raises SIGBUS. Empty if they cannot be read.
fn headers(info: &libc::dl_phdr_info, live: Option<Live>) -> Vec<libc::Elf64_Phdr> {
    let count = usize::from(info.dlpi_phnum).min(HEADERS_MAX);
    let mut headers = Vec::with_capacity(count);
    let size = count * size_of::<libc::Elf64_Phdr>();
    let Some(live) = live else {
        return headers;
    };
    // SAFETY: the destination is the vector's own room for so many headers. They consist of
    // integers, so any bytes are valid, and the length covers copied headers only.
    unsafe {
        let copied = live.copy(headers.as_mut_ptr().cast(), info.dlpi_phdr as u64, size);
        headers.set_len(copied / size_of::<libc::Elf64_Phdr>());
    }
    headers
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
}

/// All libraries of the agent's namespace, in time that depends on their number only: reading
/// `/proc/self/maps` takes longer the more a program has mapped. Takes the loader's short lock.
#[must_use]
pub fn loaded() -> Vec<Loaded> {
    let mut out = Vec::new();
    // SAFETY: the callback gets a pointer to `out`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(take_loaded), (&raw mut out).cast()) };
    out
}

unsafe extern "C" fn take_loaded(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    out: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid info, whose name is there as long as the library is, and
    // `out` is the vector of `loaded`.
    let (info, path, out) = unsafe {
        let info = &*info;
        let path = match info.dlpi_name.is_null() {
            true => c"",
            false => CStr::from_ptr(info.dlpi_name),
        };
        (info, path, &mut *out.cast::<Vec<Loaded>>())
    };
    let headers = headers(info, Live::install().ok());
    let page_mask = sys::page_bytes() as u64 - 1;
    let segments = || headers.iter().filter(|it| it.p_type == libc::PT_LOAD);
    let Some(lowest) = segments().min_by_key(|it| it.p_vaddr) else {
        return 0;
    };
    let code = segments().filter(|it| it.p_flags & libc::PF_X != 0);
    let pages = |it: &libc::Elf64_Phdr| {
        let start = info.dlpi_addr.wrapping_add(it.p_vaddr);
        let end = start.wrapping_add(it.p_memsz).wrapping_add(page_mask) & !page_mask;
        start & !page_mask..end
    };
    out.push(Loaded {
        base: base_of(info, lowest.p_vaddr),
        path: path.to_bytes().to_vec(),
        executable: code.map(pages).collect(),
        has_headers: lowest.p_offset & !page_mask == 0,
        headers: info.dlpi_phdr as u64,
    });
    0
}

/// Where threads keep the thread-local variables of one library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The library's lowest address.
    pub base: u64,
    /// The loader's number of it, from 1 on.
    pub module: u64,
    /// How far the block begins below the thread pointer, if that is the same in all threads.
    pub below: Option<u64>,
}

/// The blocks of all libraries that have thread-local variables.
///
/// A thread begins with exactly the blocks that have a fixed place. They lie between its stack and
/// its thread pointer. So a new thread reports its blocks. It touches no variable: that could make
/// a block, or settle its place.
#[must_use]
pub fn thread_local_blocks() -> Vec<Block> {
    let asked = std::thread::Builder::new()
        .name("dwell-blocks".into())
        .spawn(|| {
            let mut out = Vec::new();
            // SAFETY: the callback gets a pointer to `out`, which outlives the call.
            unsafe { libc::dl_iterate_phdr(Some(take_block), (&raw mut out).cast()) };
            out
        });
    asked
        .ok()
        .and_then(|thread| joined::value_within(thread, joined::LIMIT))
        .unwrap_or_default()
}

/// The lowest address of a library, rounded as its file's is (`dwell_native::elf::Elf::base_svma`).
fn base_of(info: &libc::dl_phdr_info, lowest_vaddr: u64) -> u64 {
    info.dlpi_addr.wrapping_add(lowest_vaddr) & !0xfff
}

unsafe extern "C" fn take_block(
    info: *mut libc::dl_phdr_info,
    size: usize,
    out: *mut c_void,
) -> c_int {
    let here = 0u8;
    if size < size_of::<libc::dl_phdr_info>() {
        return 1; // an old loader, which does not report it
    }
    // SAFETY: the loader passes a valid info, as long as this says, and `out` is the vector of
    // `thread_local_blocks`.
    let (info, out) = unsafe { (&*info, &mut *out.cast::<Vec<Block>>()) };
    let headers = headers(info, Live::install().ok());
    let loaded = headers.iter().filter(|it| it.p_type == libc::PT_LOAD);
    let Some(lowest) = loaded.map(|it| it.p_vaddr).min() else {
        return 0;
    };
    if info.dlpi_tls_modid == 0 {
        return 0;
    }
    // SAFETY: always succeeds; with glibc it is the thread pointer.
    let pointer = unsafe { libc::pthread_self() };
    let (block, stack) = (info.dlpi_tls_data as u64, (&raw const here) as u64);
    let is_fixed = stack < block && block < pointer;
    out.push(Block {
        base: base_of(info, lowest),
        module: info.dlpi_tls_modid as u64,
        below: is_fixed.then(|| pointer.wrapping_sub(block)),
    });
    0
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
    use std::cell::Cell;

    thread_local! {
        static OWN: Cell<u64> = const { Cell::new(7) };
    }

    /// The test program's own block has a fixed place, and its variables are in there.
    #[test]
    fn thread_local_blocks_have_fixed_places() {
        let blocks = thread_local_blocks();
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
        let block = blocks.iter().find(|block| block.base == base).unwrap();
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
