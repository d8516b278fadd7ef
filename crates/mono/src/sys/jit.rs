//! Notes new code. It calls Mono, on a thread of Mono that is not in a handler, and holds no lock
//! of ours during these calls.

use crate::code::{self, Called, Line, Place};
use crate::prologue;
use crate::sys::functions::{self, Api, Domain, JitInfo, Method};
use std::ffi::{CStr, c_int, c_void};

/// Maximum number of places that are read per method.
const LINES_MAX: usize = 4096;

/// Kinds of other code (`MonoProfilerCodeBufferType`), by number.
const BUFFERS: [&str; 10] = [
    "method",
    "method trampoline",
    "unbox trampoline",
    "interface trampoline",
    "generics trampoline",
    "trampoline",
    "helper",
    "monitor",
    "delegate invoke",
    "exception handling",
];
const SPECIFIC_TRAMPOLINE: c_int = 5;

/// Notes a method's code.
///
/// # Safety
/// Null, or the arguments of Mono's callback for compiled methods, during that callback.
pub unsafe fn note_method(api: &Api, method: Method, info: JitInfo) {
    if method.is_null() || info.is_null() {
        return;
    }
    // SAFETY: both are what Mono just told, and live during its callback.
    let (start, len, name) = unsafe {
        (
            (api.mono_jit_info_get_code_start)(info) as u64,
            (api.mono_jit_info_get_code_size)(info),
            functions::take_text(api, (api.mono_method_full_name)(method, 1)),
        )
    };
    #[cfg(feature = "experiments")]
    crate::sys::experiments::spoil(&name, start, usize::try_from(len).unwrap_or(0));
    let lines = lines(api, method);
    let len = u32::try_from(len).unwrap_or(0);
    if start != 0 {
        let begin = prologue::BYTES_MAX.min(len as usize);
        // SAFETY: the code that Mono has just reported, which is `len` bytes long and readable.
        let code = unsafe { std::slice::from_raw_parts(start as *const u8, begin) };
        let is_ahead = is_of_a_file(start);
        let place = Place {
            start,
            len,
            is_ahead,
        };
        // SAFETY: the method lives during Mono's callback.
        let (image, file) = unsafe { functions::image_of(api, method) };
        let called = Called {
            full: name,
            origin: code::origin(image, file),
        };
        code::add(place, called, lines, prologue::rule(code));
    }
}

/// Whether the code belongs to a library, like all code compiled before the program ran: Mono loads
/// it with the dynamic linker. Code that its compiler makes now is in anonymous memory.
fn is_of_a_file(start: u64) -> bool {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: it writes to a structure of ours, and takes any address.
    unsafe { libc::dladdr(start as *const c_void, info.as_mut_ptr()) != 0 }
}

/// The lines of a method's code, if Mono knows them.
fn lines(api: &Api, method: Method) -> Vec<Line> {
    // SAFETY: plain questions on a thread of Mono's.
    let (is_known, domain) = unsafe { ((api.mono_debug_enabled)(), (api.mono_domain_get)()) };
    if is_known == 0 || domain.is_null() {
        return Vec::new();
    }
    // SAFETY: the method lives during the callback.
    let info = unsafe { (api.mono_debug_find_method)(method, domain) };
    if info.is_null() {
        return Vec::new();
    }
    // SAFETY: what Mono gave is ours until it is freed below.
    let (entries, count) = unsafe { ((*info).line_numbers, (*info).num_line_numbers) };
    let count = (count as usize).min(LINES_MAX);
    let mut lines = Vec::new();
    for at in 0..count {
        if entries.is_null() {
            break;
        }
        // SAFETY: there are at least `count` of them.
        let offset = unsafe { (*entries.add(at)).native_offset };
        if let Some(row) = line(api, method, offset, domain) {
            lines.push((offset, row));
        }
    }
    // SAFETY: not used any more.
    unsafe { (api.mono_debug_free_method_jit_info)(info) };
    lines.sort_unstable();
    lines.dedup_by_key(|(offset, _)| *offset);
    lines
}

fn line(api: &Api, method: Method, offset: u32, domain: Domain) -> Option<u32> {
    /// The line number that compilers give to code without a line.
    const HIDDEN: u32 = 0xfe_efee;
    // SAFETY: the method lives during the callback.
    let location = unsafe { (api.mono_debug_lookup_source_location)(method, offset, domain) };
    if location.is_null() {
        return None;
    }
    // SAFETY: what Mono gave is ours until it is freed.
    let row = unsafe {
        let row = (*location).row;
        (api.mono_debug_free_source_location)(location);
        row
    };
    (row != 0 && row != HIDDEN).then_some(row)
}

/// Notes code that does not belong to a method.
///
/// # Safety
/// The arguments of Mono's callback for such code, during that callback.
pub unsafe fn note_buffer(start: *const u8, len: u64, kind: c_int, data: *const c_void) {
    let name = usize::try_from(kind)
        .ok()
        .and_then(|kind| BUFFERS.get(kind));
    let name = name.copied().unwrap_or("trampoline");
    if kind == SPECIFIC_TRAMPOLINE && !data.is_null() {
        // SAFETY: of this kind it is a C string.
        let text = unsafe { CStr::from_ptr(data.cast()) }.to_string_lossy();
        return code::add_stub(start as u64, len, &text);
    }
    code::add_stub(start as u64, len, name);
}
