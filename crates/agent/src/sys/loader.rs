//! The dynamic loader: libjvm's exported symbols, and whether libraries came or went.

use std::ffi::{CStr, c_int, c_void};

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

/// The address of an exported symbol of any loaded library; libjvm's are visible this way only if
/// it was loaded globally, so it is opened again by path (which only counts a reference).
pub struct Library(*mut c_void);

impl Library {
    /// A handle to an already loaded library; `None` if it is not loaded.
    #[must_use]
    pub fn loaded(path: &CStr) -> Option<Library> {
        // SAFETY: RTLD_NOLOAD never runs code of the library; path is a C string.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
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
