//! The helpers written in C, compiled by the linker that Rust needs anyway.

use std::ffi::{CString, c_int, c_long, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;

type VforkChild = unsafe extern "C" fn(c_long, c_int, c_int) -> c_int;
type ForkChild = unsafe extern "C" fn(c_long, c_int, *const u32) -> libc::pid_t;
type BareThread = unsafe extern "C" fn(*mut c_void, *mut c_int, *const c_int) -> c_long;

/// The functions of `helpers.c`.
#[derive(Clone, Copy)]
pub struct Helpers {
    vfork_child: VforkChild,
    fork_child: ForkChild,
    bare_thread: BareThread,
}

/// Compiles them; each process has its own library.
pub fn compile() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/anywhere/helpers.c");
    let name = format!("anywhere-{}.so", std::process::id());
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut command = Command::new("cc");
    command.args(["-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-o"]);
    let status = command.arg(&library).arg(source).status().expect("cc");
    assert!(status.success(), "{status}");
    library
}

/// As a path that the loader takes.
pub fn c_path(path: &Path) -> CString {
    CString::new(path.to_str().expect("a plain path")).expect("no NUL")
}

impl Helpers {
    /// Loads them permanently.
    pub fn load(library: &Path) -> Helpers {
        let path = c_path(library);
        // SAFETY: our own library, whose constructor only adds numbers.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null());
        let symbol = |name: &std::ffi::CStr| {
            // SAFETY: a handle of dlopen and a C string.
            let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
            assert!(!address.is_null(), "{name:?}");
            address
        };
        // SAFETY: the functions have these types in `helpers.c`, and are never unloaded.
        unsafe {
            Helpers {
                vfork_child: std::mem::transmute::<*mut c_void, VforkChild>(symbol(c"vfork_child")),
                fork_child: std::mem::transmute::<*mut c_void, ForkChild>(symbol(c"fork_child")),
                bare_thread: std::mem::transmute::<*mut c_void, BareThread>(symbol(c"bare_thread")),
            }
        }
    }

    /// Exit status of a child that shares our memory.
    pub fn vfork_child(&self, cpu_ns: i64, signal: i32, exec: bool) -> i32 {
        // SAFETY: the child only adds numbers before it exits or becomes another program.
        unsafe { (self.vfork_child)(cpu_ns, signal, c_int::from(exec)) }
    }

    /// A child with a copy of our memory.
    pub fn fork_child(&self, cpu_ns: i64, signal: i32, flag: &std::sync::atomic::AtomicU32) -> i32 {
        // SAFETY: the child calls nothing but libc, which is whole after its own fork().
        unsafe { (self.fork_child)(cpu_ns, signal, flag.as_ptr()) }
    }

    /// A thread without thread-local storage. `stack_end`, `tid` and `stop` must outlive it.
    pub fn bare_thread(&self, stack_end: *mut c_void, tid: *mut i32, stop: *const i32) -> i64 {
        // SAFETY: it uses no stack of its own but for signal frames, and the caller waits for it.
        unsafe { (self.bare_thread)(stack_end, tid, stop) }
    }
}
