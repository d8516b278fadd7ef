//! The functions of Mono that are called, found by name when Mono loads the module: one that a
//! Mono lacks is told by its name, instead of a loader's error that nobody sees.
//!
//! Source: Mono's public headers (`mono/metadata/profiler.h`, version 3 of the interface, and
//! `mono-debug.h`), declared here as far as they are used.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

/// A method (`MonoMethod *`).
pub type Method = *const c_void;
/// A class (`MonoClass *`).
pub type Class = *const c_void;
/// An image (`MonoImage *`).
pub type Image = *const c_void;
/// What the JIT knows of a method's code (`MonoJitInfo *`).
pub type JitInfo = *const c_void;
/// An application domain (`MonoDomain *`).
pub type Domain = *const c_void;
/// The profiler's own data, unused (`MonoProfiler *`).
pub type Profiler = *mut c_void;
/// `MonoProfilerHandle`.
pub type Handle = *mut c_void;

/// Sees one frame: method, domain, start of the code, offset of the frame's address from there,
/// and what the walk was given. Answers whether to end the walk.
pub type FrameCallback =
    unsafe extern "C" fn(Method, Domain, *const c_void, c_int, *mut c_void) -> c_int;

/// Before threads are stopped; the collector's locks are taken (`MonoProfilerGCEvent`).
pub const GC_PRE_STOP_WORLD_LOCKED: c_int = 10;
/// Threads run again.
pub const GC_POST_START_WORLD: c_int = 9;
/// Mono's own sampler sleeps (`MonoProfilerSampleMode`).
pub const SAMPLE_MODE_NONE: c_int = 0;

/// Where a method's code came from in its source (`MonoDebugSourceLocation`).
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

/// The beginning of what is known of a method's code (`MonoDebugMethodJitInfo`).
#[repr(C)]
#[derive(Debug)]
pub struct DebugJitInfo {
    code_start: *const c_void,
    code_size: u32,
    prologue_end: u32,
    epilogue_begin: u32,
    wrapper: *const c_void,
    /// How many places there are.
    pub num_line_numbers: u32,
    /// Them.
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
            /// The name of the first one that this Mono lacks.
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
    /// Asks for Mono's handler of samples; while Mono starts only.
    mono_profiler_enable_sampling: fn(Handle) -> c_int;
    /// Sets what Mono's own sampler does, and its frequency.
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
    /// There is other code: start, size, kind, and what depends on the kind.
    mono_profiler_set_jit_code_buffer_callback:
        fn(Handle, Option<unsafe extern "C" fn(Profiler, *const u8, u64, c_int, *const c_void)>);
    /// The collector: event, generation, whether the world stands still for all of it.
    mono_profiler_set_gc_event_callback:
        fn(Handle, Option<unsafe extern "C" fn(Profiler, c_int, u32, c_int)>);
    /// The calling thread begins.
    mono_profiler_set_thread_started_callback:
        fn(Handle, Option<unsafe extern "C" fn(Profiler, usize)>);
    /// The calling thread ends.
    mono_profiler_set_thread_stopping_callback:
        fn(Handle, Option<unsafe extern "C" fn(Profiler, usize)>);
    /// A thread is called so.
    mono_profiler_set_thread_name_callback:
        fn(Handle, Option<unsafe extern "C" fn(Profiler, usize, *const c_char)>);
    /// Called by Mono's handler of samples: instruction, and the signal's context.
    mono_profiler_set_sample_hit_callback:
        fn(Handle, Option<unsafe extern "C" fn(Profiler, *const u8, *const c_void)>);
    /// Where a method's code begins.
    mono_jit_info_get_code_start: fn(JitInfo) -> *const c_void;
    /// Its length, in bytes.
    mono_jit_info_get_code_size: fn(JitInfo) -> c_int;
    /// A method's full name, with its signature if that is not 0; to be freed.
    mono_method_full_name: fn(Method, c_int) -> *mut c_char;
    /// The class that a method belongs to.
    mono_method_get_class: fn(Method) -> Class;
    /// The image, a part of an assembly, that a class is from.
    mono_class_get_image: fn(Class) -> Image;
    /// Its name; stays Mono's.
    mono_image_get_name: fn(Image) -> *const c_char;
    /// Its file; stays Mono's.
    mono_image_get_filename: fn(Image) -> *const c_char;
    /// Frees what Mono gave.
    mono_free: fn(*mut c_void);
    /// Mono's version, in words; to be freed.
    mono_get_runtime_build_info: fn() -> *mut c_char;
    /// The calling thread's domain.
    mono_domain_get: fn() -> Domain;
    /// Whether there are lines (`mono --debug`).
    mono_debug_enabled: fn() -> c_int;
    /// Places in a method's code; to be freed.
    mono_debug_find_method: fn(Method, Domain) -> *mut DebugJitInfo;
    /// Frees these.
    mono_debug_free_method_jit_info: fn(*mut DebugJitInfo);
    /// Where the code at an offset came from; to be freed.
    mono_debug_lookup_source_location: fn(Method, u32, Domain) -> *mut SourceLocation;
    /// Frees it.
    mono_debug_free_source_location: fn(*mut SourceLocation);
    /// Walks managed frames from a signal's context; of all these the only one that is called in a
    /// handler.
    mono_stack_walk_async_safe: fn(FrameCallback, *mut c_void, *mut c_void);
}

static API: OnceLock<Api> = OnceLock::new();

/// Finds Mono's functions.
///
/// # Errors
/// The name of one that this Mono lacks.
pub fn find() -> Result<&'static Api, &'static str> {
    match API.get() {
        Some(api) => Ok(api),
        None => Api::find().map(|api| API.get_or_init(|| api)),
    }
}

/// Mono's functions, once found.
#[must_use]
pub fn get() -> Option<&'static Api> {
    API.get()
}

/// Takes a text that Mono gave, and frees it; empty for none.
///
/// # Safety
/// Null, or a C string that one of Mono's functions has just given to the caller.
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

/// A text that stays Mono's; empty for none.
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

/// The name and the file of the image that a method is from; empty where there is none, as for one
/// that the program makes while it runs.
///
/// # Safety
/// A method that lives through the call.
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

/// Mono's version, in words.
#[must_use]
pub fn version(api: &Api) -> String {
    // SAFETY: it may be called at any time, on any thread; the text is the caller's.
    unsafe { take_text(api, (api.mono_get_runtime_build_info)()) }
}
