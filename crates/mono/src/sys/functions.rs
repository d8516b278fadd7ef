//! The functions of Mono that the module calls, found by name when Mono loads the module. If one is
//! missing, the module reports its name, instead of a loader's error that the user never sees.
//!
//! Source: Mono's public headers (`mono/metadata/profiler.h`, version 3 of the interface, and
//! `mono-debug.h`). Only the used parts are declared here.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

/// A method (`MonoMethod *`).
pub type Method = *const c_void;
/// A class (`MonoClass *`).
pub type Class = *const c_void;
/// An image (`MonoImage *`).
pub type Image = *const c_void;
/// The JIT's data about a method's code (`MonoJitInfo *`).
pub type JitInfo = *const c_void;
/// An application domain (`MonoDomain *`).
pub type Domain = *const c_void;
/// The profiler's own data, unused (`MonoProfiler *`).
pub type Profiler = *mut c_void;
/// `MonoProfilerHandle`.
pub type Handle = *mut c_void;

/// Receives one frame: method, domain, start of the code, offset of the frame's address from there,
/// and the walk's argument. Returns whether to end the walk.
pub type FrameCallback =
    unsafe extern "C" fn(Method, Domain, *const c_void, c_int, *mut c_void) -> c_int;

/// Before threads are stopped; the collector's locks are taken (`MonoProfilerGCEvent`).
pub const GC_PRE_STOP_WORLD_LOCKED: c_int = 10;
/// Threads run again.
pub const GC_POST_START_WORLD: c_int = 9;
/// Mono's own sampler sleeps (`MonoProfilerSampleMode`).
pub const SAMPLE_MODE_NONE: c_int = 0;

/// A place in the source of a method's code (`MonoDebugSourceLocation`).
#[repr(C)]
#[derive(Debug)]
pub struct SourceLocation {
    /// The file.
    pub source_file: *const c_char,
    /// Its line, from 1 on.
    pub row: u32,
    /// Its column.
    pub column: u32,
    /// Index in the bytecode.
    pub il_offset: u32,
}

/// A place in the code (`MonoDebugLineNumberEntry`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LineEntry {
    /// Index in the bytecode.
    pub il_offset: u32,
    /// Offset from the code's start.
    pub native_offset: u32,
}

/// First fields of the data about a method's code (`MonoDebugMethodJitInfo`).
#[repr(C)]
#[derive(Debug)]
pub struct DebugJitInfo {
    code_start: *const c_void,
    code_size: u32,
    prologue_end: u32,
    epilogue_begin: u32,
    wrapper: *const c_void,
    /// Number of places.
    pub num_line_numbers: u32,
    /// The places.
    pub line_numbers: *const LineEntry,
}

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// Mono's functions.
        #[derive(Clone, Copy)]
        pub struct Api {
            $($(#[$doc])* pub $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
        }

        impl Api {
            /// Finds them all.
            ///
            /// # Errors
            /// The name of the first function that this Mono lacks.
            fn find() -> Result<Api, &'static str> {
                $(
                    let name = concat!(stringify!($name), "\0");
                    // SAFETY: a C string; looking a symbol up has no effect on it.
                    let $name = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr().cast()) };
                    if $name.is_null() {
                        return Err(stringify!($name));
                    }
                    // SAFETY: the function of this name has this signature (see the head).
                    let $name = unsafe {
                        std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($arg),*) $(-> $ret)?,
                        >($name)
                    };
                )*
                Ok(Api { $($name,)* })
            }
        }
    };
}

functions! {
    /// Makes a profiler.
    mono_profiler_create: fn(Profiler) -> Handle;
    /// Requests Mono's handler of samples; only while Mono starts.
    mono_profiler_enable_sampling: fn(Handle) -> c_int;
    /// Sets the mode of Mono's own sampler, and its frequency.
    mono_profiler_set_sample_mode: fn(Handle, c_int, u32) -> c_int;
    /// Mono is ready to run the program.
    mono_profiler_set_runtime_initialized_callback:
        fn(Handle, Option<unsafe extern "C" fn(Profiler)>);
    /// Mono is about to end.
    mono_profiler_set_runtime_shutdown_begin_callback:
        fn(Handle, Option<unsafe extern "C" fn(Profiler)>);
    /// A method has code.
    mono_profiler_set_jit_done_callback:
        fn(Handle, Option<unsafe extern "C" fn(Profiler, Method, JitInfo)>);
    /// There is other code: start, size, kind, and data that depend on the kind.
    mono_profiler_set_jit_code_buffer_callback:
        fn(Handle, Option<unsafe extern "C" fn(Profiler, *const u8, u64, c_int, *const c_void)>);
    /// The collector: event, generation, whether all threads stay stopped during the whole
    /// collection.
    mono_profiler_set_gc_event_callback:
        fn(Handle, Option<unsafe extern "C" fn(Profiler, c_int, u32, c_int)>);
    /// The calling thread begins.
    mono_profiler_set_thread_started_callback:
        fn(Handle, Option<unsafe extern "C" fn(Profiler, usize)>);
    /// The calling thread ends.
    mono_profiler_set_thread_stopping_callback:
        fn(Handle, Option<unsafe extern "C" fn(Profiler, usize)>);
    /// A thread has a new name.
    mono_profiler_set_thread_name_callback:
        fn(Handle, Option<unsafe extern "C" fn(Profiler, usize, *const c_char)>);
    /// Called by Mono's handler of samples: instruction, and the signal's context.
    mono_profiler_set_sample_hit_callback:
        fn(Handle, Option<unsafe extern "C" fn(Profiler, *const u8, *const c_void)>);
    /// Start of a method's code.
    mono_jit_info_get_code_start: fn(JitInfo) -> *const c_void;
    /// Its length, in bytes.
    mono_jit_info_get_code_size: fn(JitInfo) -> c_int;
    /// A method's full name, with its signature if that is not 0; must be freed.
    mono_method_full_name: fn(Method, c_int) -> *mut c_char;
    /// The class that a method belongs to.
    mono_method_get_class: fn(Method) -> Class;
    /// The image (a part of an assembly) of a class.
    mono_class_get_image: fn(Class) -> Image;
    /// The image's name; owned by Mono.
    mono_image_get_name: fn(Image) -> *const c_char;
    /// The image's file; owned by Mono.
    mono_image_get_filename: fn(Image) -> *const c_char;
    /// Frees memory from Mono.
    mono_free: fn(*mut c_void);
    /// Mono's version, as text; must be freed.
    mono_get_runtime_build_info: fn() -> *mut c_char;
    /// The calling thread's domain.
    mono_domain_get: fn() -> Domain;
    /// Whether there are lines (`mono --debug`).
    mono_debug_enabled: fn() -> c_int;
    /// Places in a method's code; must be freed.
    mono_debug_find_method: fn(Method, Domain) -> *mut DebugJitInfo;
    /// Frees these.
    mono_debug_free_method_jit_info: fn(*mut DebugJitInfo);
    /// The source location of the code at an offset; must be freed.
    mono_debug_lookup_source_location: fn(Method, u32, Domain) -> *mut SourceLocation;
    /// Frees it.
    mono_debug_free_source_location: fn(*mut SourceLocation);
    /// Walks managed frames from a signal's context. The only function here that is called in a
    /// handler.
    mono_stack_walk_async_safe: fn(FrameCallback, *mut c_void, *mut c_void);
}

static API: OnceLock<Api> = OnceLock::new();

/// Finds Mono's functions.
///
/// # Errors
/// The name of a function that this Mono lacks.
pub fn find() -> Result<&'static Api, &'static str> {
    match API.get() {
        Some(api) => Ok(api),
        None => Api::find().map(|api| API.get_or_init(|| api)),
    }
}

/// Mono's functions, after they were found.
#[must_use]
pub fn get() -> Option<&'static Api> {
    API.get()
}

/// Copies a text from Mono, and frees it; empty for null.
///
/// # Safety
/// Null, or a C string that one of Mono's functions has just returned to the caller.
#[must_use]
pub unsafe fn take_text(api: &Api, text: *mut c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: by contract it is a C string, and ours to free.
    unsafe {
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        (api.mono_free)(text.cast());
        copy
    }
}

/// A copy of a text that Mono owns; empty for null.
///
/// # Safety
/// Null, or a C string that lives through the call.
unsafe fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: by contract it is a C string.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// Name and file of a method's image; empty if unknown, as for a method that the program makes
/// while it runs.
///
/// # Safety
/// A method that lives during the call.
#[must_use]
pub unsafe fn image_of(api: &Api, method: Method) -> (String, String) {
    // SAFETY: by contract the method lives, and so do its class and the image of that, and their
    // texts, of which copies are made.
    unsafe {
        let class = (api.mono_method_get_class)(method);
        if class.is_null() {
            return Default::default();
        }
        let image = (api.mono_class_get_image)(class);
        if image.is_null() {
            return Default::default();
        }
        (
            text_of((api.mono_image_get_name)(image)),
            text_of((api.mono_image_get_filename)(image)),
        )
    }
}

/// Mono's version, as text.
#[must_use]
pub fn version(api: &Api) -> String {
    // SAFETY: it may be called at any time, on any thread; the text is the caller's.
    unsafe { take_text(api, (api.mono_get_runtime_build_info)()) }
}
