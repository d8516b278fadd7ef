//! How the JVM calls us: agent entry points and JVMTI callbacks. Each catches panics, because
//! unwinding into the JVM would end it.

use crate::alive;
use crate::command::{self, Caller};
use crate::jvm::{allocations, api, attaching};
use dwell_inside::hotspot::{self, Agent};
use dwell_inside::jvm::mutf8;
use dwell_recorder::options::{self, Options};
use dwell_recorder::reply;
use dwell_recorder::sys::{allocator, process};
use jvm_sys::jni::{OK, Object, VERSION_1_8};
use jvm_sys::jvmti::{Callbacks, Event, VERSION};
use jvm_sys::{Env, JavaVm, Jvmti};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The options of `-agentpath`, until the JVM is initialised.
static AT_START: Mutex<Option<(Options, String)>> = Mutex::new(None);
/// The agent's environment. It is the same for all attaches.
static JVMTI: OnceLock<Jvmti> = OnceLock::new();

fn guarded<T>(default: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        eprintln!("dwell: internal error; the JVM continues");
        default
    })
}

/// `-agentpath:libdwell.so=options`. Never refuses: the JVM would not start.
///
/// # Safety
/// Called by the JVM only, as the JVMTI specification says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Agent_OnLoad(vm: JavaVm, text: *const c_char, _: *mut c_void) -> c_int {
    guarded((), || {
        allocator::set_aside();
        // SAFETY: the JVM passes null or a C string.
        let text = unsafe { option_text(text) };
        match options::parse(&text) {
            Ok(options) => match environment(vm) {
                Ok(jvmti) => {
                    let mut slot = AT_START.lock().unwrap_or_else(PoisonError::into_inner);
                    *slot = Some((options, text));
                    // SAFETY: the callbacks are set; VMInit and VMDeath may be enabled on load.
                    unsafe {
                        let _ = jvmti.enable(Event::VmInit, true);
                    }
                }
                Err(error) => eprintln!("dwell: {error}; not recording"),
            },
            Err(error) => eprintln!("dwell: {error}; not recording"),
        }
    });
    OK
}

/// Carries out a command of a client that attaches, and answers it.
///
/// # Safety
/// Called by the JVM only, as the JVMTI specification says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Agent_OnAttach(vm: JavaVm, text: *const c_char, _: *mut c_void) -> c_int {
    guarded(1, || {
        allocator::set_aside();
        // SAFETY: the JVM passes null or a C string.
        let text = unsafe { option_text(text) };
        // SAFETY: the attach listener's thread is attached to the VM it calls us for.
        let env = unsafe { vm.get_env(VERSION_1_8) }.map(Env);
        let (outcome, was_written) = execute(vm, env, &text);
        match &outcome {
            _ if was_written => (),
            Ok(text) => eprint!("dwell: {text}"),
            Err(text) => eprintln!("dwell: {text}"),
        }
        c_int::from(outcome.is_err())
    })
}

/// `io.dwell.agent.DwellAgent.execute(options)`: the same, for a program that has loaded the
/// library itself. Prints one line if the command failed, and returns its code.
///
/// # Safety
/// Called by the JVM only, with a live reference to a string or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Java_io_dwell_agent_DwellAgent_execute(
    env: Env,
    _: Object,
    options: Object,
) -> c_int {
    guarded(1, || {
        allocator::set_aside();
        // SAFETY: the JVM passes a live reference to a string or null.
        let text = unsafe { env.string(options) }.map(|text| mutf8::decode(text.to_bytes()));
        let Some(vm) = env.java_vm() else { return 1 };
        let (outcome, was_written) = execute(vm, Some(env), &text.unwrap_or_default());
        if let Some(jvmti) = JVMTI.get() {
            // The JVM finds the API's functions only in libraries that it loaded as agents.
            // SAFETY: the callback is set, and the phase is live.
            let _ = unsafe { jvmti.enable(Event::ClassPrepare, true) };
        }
        if let (Err(text), false) = (&outcome, was_written) {
            eprintln!("dwell: {text}");
        }
        c_int::from(outcome.is_err())
    })
}

/// Carries out the command in `text`, and writes the reply to the file that it names. Returns the
/// outcome, and whether the text names such a file.
fn execute(vm: JavaVm, env: Option<Env>, text: &str) -> (Result<String, String>, bool) {
    let parsed = options::parse(text).map_err(|e| e.to_string());
    // Also if the options are wrong.
    let reply_path = command::value_of(text, "reply=");
    let outcome = parsed.and_then(|options| {
        if JVMTI.get().is_none() {
            attaching::wait()?;
        }
        let caller = Caller {
            java_vm: vm,
            env: env.ok_or("the calling thread has no JNI environment")?,
            jvmti: environment(vm)?,
        };
        command::run(caller, &options, text)
    });
    if let Some(path) = reply_path
        && let Err(error) = reply::write(path, &outcome)
    {
        eprintln!("dwell: cannot write the reply to {path}: {error}");
    }
    (outcome, reply_path.is_some())
}

/// The library is about to be unloaded, at the end of the JVM.
///
/// # Safety
/// Called by the JVM only, as the JVMTI specification says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn Agent_OnUnload(_: JavaVm) {
    guarded((), || finish(None));
}

/// # Safety
/// `text` is null or a C string.
unsafe fn option_text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: a C string by contract; it is copied.
    String::from_utf8_lossy(unsafe { CStr::from_ptr(text) }.to_bytes()).into_owned()
}

fn environment(vm: JavaVm) -> Result<Jvmti, String> {
    if let Some(jvmti) = JVMTI.get() {
        return Ok(*jvmti);
    }
    // SAFETY: the VM calls us, so it is alive.
    let env = unsafe { vm.get_env(VERSION) };
    let jvmti = Jvmti(env.ok_or("this JVM offers no JVMTI environment")?);
    let callbacks = Callbacks::default()
        .thread(Event::VmInit, on_vm_init)
        .thread(Event::ThreadStart, on_thread_start)
        .thread(Event::ThreadEnd, on_thread_end)
        .class_prepared(on_class_prepared)
        .death(on_vm_death)
        .collection_start(on_collection_start)
        .collection_finish(on_collection_finish)
        .code(on_code);
    // SAFETY: a fresh environment; the callbacks are functions of a library that stays loaded.
    unsafe {
        jvmti
            .set_callbacks(&callbacks)
            .map_err(|e| format!("SetEventCallbacks failed: {}", e.0))?;
        let _ = jvmti.enable(Event::VmDeath, true);
        let _ = jvmti.add_collection_events();
    }
    Ok(*JVMTI.get_or_init(|| jvmti))
}

unsafe extern "C" fn on_vm_init(jvmti: Jvmti, env: Env, _thread: Object) {
    guarded((), || {
        let asked = AT_START
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some((options, text)) = asked else { return };
        let Some(java_vm) = env.java_vm() else { return };
        let caller = Caller {
            java_vm,
            env,
            jvmti,
        };
        let outcome = command::run(caller, &options, &text);
        if let Some(path) = &options.reply {
            let _ = reply::write(path, &outcome);
        } else if let Err(error) = outcome {
            eprintln!("dwell: {error}; not recording");
        }
    });
}

unsafe extern "C" fn on_vm_death(_: Jvmti, env: Env) {
    guarded((), || finish(Some(env)));
}

/// Ends the recording, if one runs. Only a thread that the JVM knows can check which objects are
/// alive.
fn finish(env: Option<Env>) {
    if let Some(agent) = hotspot::agent() {
        if let Some(env) = env {
            alive::look(agent, env);
        }
        agent.finish();
    }
}

unsafe extern "C" fn on_thread_start(_: Jvmti, env: Env, thread: Object) {
    guarded((), || {
        if let Some(agent) = hotspot::agent() {
            agent.callbacks.run(|| begin_thread(agent, env, thread));
        }
    });
}

fn begin_thread(agent: &'static Agent, env: Env, thread: Object) {
    if command::switches_off_if_over(agent, env) {
        return;
    }
    let tid = process::own_tid();
    if command::returns(agent, env, thread, tid) {
        allocations::thread_begins();
        return;
    }
    // The JVM reports the main thread late, so it may be registered already.
    let record = agent.registry.get(tid);
    if record.is_none_or(|record| record.managed_thread() == 0) {
        allocations::thread_begins();
    }
    command::register(agent, env, thread, Some(tid));
}

unsafe extern "C" fn on_thread_end(_: Jvmti, env: Env, _thread: Object) {
    guarded((), || {
        if let Some(agent) = hotspot::agent() {
            agent.callbacks.run(|| {
                agent.own_thread_ends();
                command::switches_off_if_over(agent, env);
            });
        }
    });
}

unsafe extern "C" fn on_class_prepared(jvmti: Jvmti, env: Env, _thread: Object, class: Object) {
    guarded((), || api::connect_one(jvmti, env, class));
}

/// Classes and code may be unloaded in the pause, so pending samples are walked now.
unsafe extern "C" fn on_collection_start(_: Jvmti) {
    guarded((), || {
        if let Some(agent) = hotspot::agent() {
            agent.pause_begins();
        }
    });
}

unsafe extern "C" fn on_collection_finish(_: Jvmti) {
    guarded((), || {
        if let Some(agent) = hotspot::agent() {
            agent.pause_ends();
        }
    });
}

unsafe extern "C" fn on_code(_: Jvmti, name: *const c_char, start: *const c_void, len: c_int) {
    guarded((), || {
        if let Some(agent) = hotspot::agent()
            && !name.is_null()
        {
            // SAFETY: JVMTI passes a C string.
            let name = mutf8::decode(unsafe { CStr::from_ptr(name) }.to_bytes());
            agent
                .runtime
                .stubs
                .add(start as u64, len.max(0) as u64, name);
        }
    });
}
