//! How Mono calls us: the entry point and its callbacks. Each catches panics, because unwinding
//! into Mono would end the process.
//!
//! Callbacks run on Mono's threads, and other threads may wait for them. They take short locks of
//! ours, and never call Mono under these. Callbacks of the collector take no locks and allocate
//! nothing: a thread that is stopped for the collector may hold any lock.

use crate::mono::{self, Mono};
use crate::sys::functions::{self, Api, Handle, JitInfo, Method, Profiler};
use crate::sys::handlers::{self, Handlers};
use crate::sys::{exit, jit, walk};
use crate::threads;
use dwell_recorder::options::{self, Command, Options};
use dwell_recorder::recorder::Recorder;
use dwell_recorder::reply;
use dwell_recorder::source::Source;
use dwell_recorder::sys::process;
use dwell_signal::sys::signal_bit;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// The user's request, until Mono is ready.
struct Asked {
    options: Options,
    text: String,
    /// Handlers before Mono installed its own.
    handlers: Handlers,
}

static ASKED: Mutex<Option<Asked>> = Mutex::new(None);

fn guarded(body: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(body)).is_err() {
        eprintln!("dwell: internal error; the program goes on without it");
    }
}

/// `--profile=dwell:options`.
///
/// # Safety
/// Called by Mono only, while it starts, with null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mono_profiler_init_dwell(text: *const c_char) {
    guarded(|| {
        let text = match text.is_null() {
            true => String::new(),
            // SAFETY: a C string by contract; it is copied.
            false => unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned(),
        };
        // The text after the module's name is ours.
        let text = text.split_once(':').map_or("", |(_, rest)| rest);
        if let Err(error) = prepare(text) {
            eprintln!("dwell: {error}; not recording");
        }
    });
}

fn prepare(text: &str) -> Result<(), String> {
    let options = options::parse(text).map_err(|error| error.to_string())?;
    if options.command != Command::Start {
        return Err(
            "Mono loads profilers at its start only, which begins a recording: \
                    leave stop, dump and status out"
                .into(),
        );
    }
    if !cfg!(target_arch = "x86_64") {
        return Err(format!(
            "Mono is supported on x86-64 only, and this machine is {}; run the program on an \
             x86-64 machine",
            std::env::consts::ARCH
        ));
    }
    let api = functions::find().map_err(|name| format!("this Mono has no function {name}"))?;
    #[cfg(feature = "experiments")]
    crate::sys::experiments::prepare();
    walk::set_stack_walk(api.mono_stack_walk_async_safe);
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    if asked.is_some() {
        return Err("the module was requested twice; request it once".into());
    }
    *asked = Some(Asked {
        options,
        text: text.to_owned(),
        handlers: handlers::now(),
    });
    drop(asked);
    install(api)
}

fn install(api: &Api) -> Result<(), String> {
    // SAFETY: Mono calls us to do this now. The callbacks have the types of the interface, and are
    // functions of a library that stays loaded.
    unsafe {
        let handle: Handle = (api.mono_profiler_create)(std::ptr::null_mut());
        if (api.mono_profiler_enable_sampling)(handle) == 0 {
            return Err("Mono no longer lets profilers sample".into());
        }
        // Refused if another module owns Mono's sampler: then that module configures it.
        let _ = (api.mono_profiler_set_sample_mode)(handle, functions::SAMPLE_MODE_NONE, 0);
        (api.mono_profiler_set_runtime_initialized_callback)(handle, Some(on_ready));
        (api.mono_profiler_set_runtime_shutdown_begin_callback)(handle, Some(on_end));
        // The callback provides names. It also makes Mono look up methods compiled ahead of time at
        // their first call, and not when our walk meets them in a handler.
        (api.mono_profiler_set_jit_done_callback)(handle, Some(on_method));
        (api.mono_profiler_set_jit_code_buffer_callback)(handle, Some(on_buffer));
        (api.mono_profiler_set_gc_event_callback)(handle, Some(on_collector));
        (api.mono_profiler_set_thread_started_callback)(handle, Some(on_thread_begin));
        (api.mono_profiler_set_thread_stopping_callback)(handle, Some(on_thread_end));
        (api.mono_profiler_set_thread_name_callback)(handle, Some(on_thread_name));
        (api.mono_profiler_set_sample_hit_callback)(handle, Some(walk::dwell_mono_sample_hook));
    }
    Ok(())
}

unsafe extern "C" fn on_ready(_: Profiler) {
    guarded(|| {
        let asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(asked) = asked else { return };
        let outcome = start(&asked);
        if let Some(path) = &asked.options.reply {
            let _ = reply::write(path, &outcome);
        }
        if let Err(error) = outcome {
            eprintln!("dwell: {error}; not recording");
        }
    });
}

fn start(asked: &Asked) -> Result<String, String> {
    let api = functions::get().ok_or("Mono's functions are not known")?;
    handlers::note(&asked.handlers).map_err(|count| {
        format!(
            "Mono's handler of samples cannot be identified: {count} signals have a new handler"
        )
    })?;
    // Another profiler may make Mono itself sample. Ours calls Mono's handler. If that handler ran
    // inside itself, the process would end, because Mono has one word for whether a thread is in
    // it. So neither interrupts the other.
    let blocked = handlers::noted().map_or(0, |(signal, _)| signal_bit(signal));
    let source = Source::start_off_alternate_stacks(asked.options.engine, blocked)?;
    handlers::block_in_mono_handler(source.engine.signal());
    source.engine.set_walk(walk::dwell_mono_walk_hook);
    #[cfg(feature = "experiments")]
    crate::sys::experiments::watch_stops(&asked.handlers, source.engine.signal());
    let mono = Mono {
        version: functions::version(api),
    };
    let agent = mono::publish(Recorder::new(mono, source));
    let started = agent.start(&asked.options, &asked.text, || {
        threads::report_all(agent);
        agent.find_threads();
    })?;
    exit::finish_at_exit(finish);
    Ok(started)
}

/// Ends the recording with the process.
fn finish() {
    if let Some(agent) = mono::agent() {
        agent.finish();
    }
}

unsafe extern "C" fn on_end(_: Profiler) {
    guarded(|| {
        finish();
        #[cfg(feature = "experiments")]
        crate::sys::experiments::print_stop_counts();
    });
}

unsafe extern "C" fn on_method(_: Profiler, method: Method, info: JitInfo) {
    guarded(|| {
        if let Some(api) = functions::get() {
            // SAFETY: the arguments of Mono's callback.
            unsafe { jit::note_method(api, method, info) };
        }
    });
}

unsafe extern "C" fn on_buffer(
    _: Profiler,
    start: *const u8,
    len: u64,
    kind: c_int,
    data: *const c_void,
) {
    // SAFETY: the arguments of Mono's callback.
    guarded(|| unsafe { jit::note_buffer(start, len, kind, data) });
}

unsafe extern "C" fn on_collector(_: Profiler, event: c_int, _generation: u32, _serial: c_int) {
    guarded(|| {
        let Some(agent) = mono::agent() else { return };
        // Not `pause_begins`: stacks are walked in the handler, so there is no hurry. The thread
        // woken here might also have to wait for a thread that is stopped.
        match event {
            functions::GC_PRE_STOP_WORLD_LOCKED => {
                agent.stretches.pauses.begin(process::monotonic_ns())
            }
            functions::GC_POST_START_WORLD => agent.stretches.pauses.end(process::monotonic_ns()),
            _ => {}
        }
    });
}

unsafe extern "C" fn on_thread_begin(_: Profiler, id: usize) {
    guarded(|| threads::begins(id));
}

unsafe extern "C" fn on_thread_end(_: Profiler, id: usize) {
    guarded(|| threads::ends(id));
}

unsafe extern "C" fn on_thread_name(_: Profiler, id: usize, name: *const c_char) {
    guarded(|| {
        if !name.is_null() {
            // SAFETY: Mono passes a C string.
            let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
            threads::set_name(id, name.into_owned());
        }
    });
}
