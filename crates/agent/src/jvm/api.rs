//! The native methods of the Java API. Classes of the API that are loaded before the agent are
//! connected by [`connect`]. Later ones find the functions by name, because HotSpot also searches
//! the libraries of agents.

#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "a reference is a pointer only to the VM, which calls these functions"
)]

use crate::here::here;
use dwell_context::{Acquired, Handle};
use dwell_inside::jvm::threads::ThreadFields;
use dwell_recorder::context::Contexts;
use dwell_recorder::context::requests::Request;
use dwell_recorder::context::spans::Span;
use dwell_recorder::context::texts::{Endpoint, Kind, OTHER_ID};
use dwell_recorder::sys::process;
use jvm_sys::jni::{NativeMethod, Object, STRING_MAX};
use jvm_sys::{Env, Jvmti};
use std::ffi::{CStr, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

/// The class with the native methods, as JVMTI spells it.
const CLASS: &CStr = c"Lio/dwell/api/Native;";
/// Version of the contract with that class: layout of records, meaning of the methods.
const PROTOCOL: i32 = 3;

static FIELDS: OnceLock<Option<ThreadFields>> = OnceLock::new();

/// Calls `body`. A panic in it is a bug of ours; the application continues without a context.
fn guarded<T>(nothing: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(nothing)
}

/// `int protocol()`.
#[unsafe(no_mangle)]
pub extern "C" fn Java_io_dwell_api_Native_protocol(_: Env, _: Object) -> i32 {
    PROTOCOL
}

/// `ByteBuffer records()`: the memory of all records, or null.
#[unsafe(no_mangle)]
pub extern "C" fn Java_io_dwell_api_Native_records(env: Env, _: Object) -> Object {
    guarded(std::ptr::null_mut(), || {
        let Some(contexts) = Contexts::get_or_make() else {
            return std::ptr::null_mut();
        };
        let memory = contexts.memory();
        let address = memory.address() as *mut c_void;
        // SAFETY: the VM calls this on the thread `env` belongs to; the memory is never unmapped.
        let buffer = unsafe { env.direct_buffer(address, memory.bytes() as i64) };
        buffer.unwrap_or(std::ptr::null_mut())
    })
}

/// `long acquire(Thread)`: a hold on the record of the calling thread, or 0.
#[unsafe(no_mangle)]
pub extern "C" fn Java_io_dwell_api_Native_acquire(env: Env, _: Object, thread: Object) -> i64 {
    guarded(0, || {
        let fields = FIELDS.get_or_init(|| ThreadFields::find(env));
        let (Some(fields), Some(contexts)) = (fields, Contexts::get_or_make()) else {
            return 0;
        };
        if thread.is_null() {
            return 0;
        }
        let id = fields.id(env, thread) as u64;
        if let Some((agent, record)) = here() {
            // The sample must run on the thread itself to read its context.
            agent.engine.must_signal_now(record);
        }
        match contexts.slab().acquire(id) {
            Acquired::Held(handle) => handle.to_bits() as i64,
            Acquired::Full => 0,
        }
    })
}

/// `void release(long)`.
#[unsafe(no_mangle)]
pub extern "C" fn Java_io_dwell_api_Native_release(_: Env, _: Object, handle: i64) {
    guarded((), || {
        if let Some(contexts) = Contexts::get() {
            let _ = contexts.slab().release(Handle::from_bits(handle as u64));
        }
    });
}

/// `int intern(int kind, String)`: 0 for an endpoint, else a label's number plus one.
#[unsafe(no_mangle)]
pub extern "C" fn Java_io_dwell_api_Native_intern(
    env: Env,
    _: Object,
    kind: i32,
    text: Object,
) -> i32 {
    guarded(OTHER_ID as i32, || {
        let Some(contexts) = Contexts::get_or_make() else {
            return 0;
        };
        let kind = match kind.checked_sub(1).map(u8::try_from) {
            Some(Ok(label)) => Kind::Label(label),
            _ => Kind::Endpoint,
        };
        contexts.texts().intern(kind, &string(env, text)) as i32
    })
}

/// `int label(String)`: the label's number, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn Java_io_dwell_api_Native_label(env: Env, _: Object, name: Object) -> i32 {
    guarded(-1, || {
        let contexts = Contexts::get_or_make();
        let number = contexts.and_then(|contexts| contexts.texts().label(&string(env, name)));
        number.map_or(-1, i32::from)
    })
}

/// `void endpoint(long localRoot, int endpoint)`.
#[unsafe(no_mangle)]
pub extern "C" fn Java_io_dwell_api_Native_endpoint(_: Env, _: Object, root: i64, endpoint: i32) {
    guarded((), || {
        if let Some(contexts) = Contexts::get() {
            contexts.tell_endpoint(Endpoint {
                time_ns: process::monotonic_ns(),
                local_root: root as u64,
                endpoint: endpoint as u32,
            });
        }
    });
}

/// `void request(long traceHi, long traceLo, long localRoot, int endpoint, long nanos, int count)`:
/// a request has just ended.
#[unsafe(no_mangle)]
pub extern "C" fn Java_io_dwell_api_Native_request(
    _: Env,
    _: Object,
    trace_hi: i64,
    trace_lo: i64,
    local_root: i64,
    endpoint: i32,
    duration_ns: i64,
    requests: i32,
) {
    guarded((), || {
        if let Some(contexts) = Contexts::get() {
            let duration_ns = u64::try_from(duration_ns).unwrap_or(0);
            contexts.tell_request(Request {
                start_ns: process::monotonic_ns().saturating_sub(duration_ns),
                duration_ns,
                trace: u128::from(trace_hi as u64) << 64 | u128::from(trace_lo as u64),
                local_root: local_root as u64,
                endpoint: endpoint as u32,
                count: u64::try_from(requests).unwrap_or(1),
            });
        }
    });
}

/// `void span(long traceHi, long traceLo, long localRoot, long span, int endpoint, long nanos)`: a
/// span inside of a request has just ended.
#[unsafe(no_mangle)]
pub extern "C" fn Java_io_dwell_api_Native_span(
    _: Env,
    _: Object,
    trace_hi: i64,
    trace_lo: i64,
    local_root: i64,
    span: i64,
    endpoint: i32,
    duration_ns: i64,
) {
    guarded((), || {
        if let Some(contexts) = Contexts::get() {
            let duration_ns = u64::try_from(duration_ns).unwrap_or(0);
            contexts.tell_span(Span {
                start_ns: process::monotonic_ns().saturating_sub(duration_ns),
                duration_ns,
                trace: u128::from(trace_hi as u64) << 64 | u128::from(trace_lo as u64),
                local_root: local_root as u64,
                span: span as u64,
                endpoint: endpoint as u32,
            });
        }
    });
}

fn string(env: Env, text: Object) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the VM calls us on the thread `env` belongs to, with a live reference to a string.
    let (units, len) = unsafe { env.string_start(text, STRING_MAX) };
    String::from_utf16_lossy(units.get(..len).unwrap_or(&[]))
}

fn natives() -> [NativeMethod; 9] {
    let method = |name: &'static CStr, descriptor: &'static CStr, function| NativeMethod {
        name: name.as_ptr(),
        descriptor: descriptor.as_ptr(),
        function,
    };
    [
        method(
            c"protocol",
            c"()I",
            Java_io_dwell_api_Native_protocol as *const c_void,
        ),
        method(
            c"records",
            c"()Ljava/nio/ByteBuffer;",
            Java_io_dwell_api_Native_records as *const c_void,
        ),
        method(
            c"acquire",
            c"(Ljava/lang/Thread;)J",
            Java_io_dwell_api_Native_acquire as *const c_void,
        ),
        method(
            c"release",
            c"(J)V",
            Java_io_dwell_api_Native_release as *const c_void,
        ),
        method(
            c"intern",
            c"(ILjava/lang/String;)I",
            Java_io_dwell_api_Native_intern as *const c_void,
        ),
        method(
            c"label",
            c"(Ljava/lang/String;)I",
            Java_io_dwell_api_Native_label as *const c_void,
        ),
        method(
            c"endpoint",
            c"(JI)V",
            Java_io_dwell_api_Native_endpoint as *const c_void,
        ),
        method(
            c"request",
            c"(JJJIJI)V",
            Java_io_dwell_api_Native_request as *const c_void,
        ),
        method(
            c"span",
            c"(JJJJIJ)V",
            Java_io_dwell_api_Native_span as *const c_void,
        ),
    ]
}

/// Connects all loaded copies of the API, in all class loaders, with the agent. Attach operations
/// and `VMInit` only.
pub fn connect(jvmti: Jvmti, env: Env) {
    // SAFETY: the phase is live; the array and its references are given back below.
    let Ok((count, list)) = (unsafe { jvmti.loaded_classes() }) else {
        return;
    };
    for i in 0..count {
        // SAFETY: JVMTI filled `count` entries; each is a local reference of this frame.
        let class = unsafe { *list.add(i) };
        if is_the_api(jvmti, class) {
            // SAFETY: a live class; names, descriptors and functions fit `Native.java`.
            unsafe {
                if env.register_natives(class, &natives()) {
                    let _ = env.call_static(class, c"connect");
                }
            }
        }
        // SAFETY: as above; not used afterwards.
        unsafe { env.delete_local(class) };
    }
    // SAFETY: allocated by this environment, not used afterwards.
    unsafe { jvmti.deallocate(list.cast()) };
}

/// Registers the functions of a class that was just prepared, if it is a copy of the API. Its
/// initialiser then connects it.
pub fn connect_one(jvmti: Jvmti, env: Env, class: Object) {
    if is_the_api(jvmti, class) {
        // SAFETY: a live class; names, descriptors and functions fit `Native.java`.
        unsafe { env.register_natives(class, &natives()) };
    }
}

fn is_the_api(jvmti: Jvmti, class: Object) -> bool {
    // SAFETY: the phase is live, the class is a live reference; the text is compared before it is
    // given back.
    unsafe {
        let Ok(signature) = jvmti.class_signature(class) else {
            return false;
        };
        let is = CStr::from_ptr(signature) == CLASS;
        jvmti.deallocate(signature.cast());
        is
    }
}
