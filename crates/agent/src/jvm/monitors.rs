//! Waits for monitors that other threads hold: JVMTI's `MonitorContendedEnter` and
//! `MonitorContendedEntered`.
//!
//! Both come from the JVM's slow path, after a first round of spinning failed
//! (`ObjectMonitor::enter`, src/hotspot/share/runtime/objectMonitor.cpp). Uncontended locking has
//! no overhead.
//!
//! A virtual thread may leave its carrier during the wait (24 and later, JEP 491). The JVM then
//! sends the second event when the thread has been mounted again, perhaps on another carrier
//! (`jvmti_mount_end` in continuationFreezeThaw.cpp).
//!
//! The events have their own JVMTI environment, which is disposed of when a recording ends.

#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "a reference is a pointer only to the VM, and comes from its callbacks"
)]

use super::allocations::number_of;
use dwell_recorder::allocated::Classes;
use jvm_sys::jni::Object;
use jvm_sys::jvmti::{Callbacks, Event, VERSION};
use jvm_sys::{Env, JavaVm, Jvmti};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Callbacks for waits, on the waiting thread, which may be any of the program's.
#[derive(Clone, Copy, Debug)]
pub struct WaitCallbacks {
    /// The thread is about to wait.
    pub begins: fn(),
    /// It has the monitor of this object. The environments give access to its class.
    pub ends: fn(Jvmti, Env, Object),
}

/// The callbacks. The first ones of a process get all waits.
static CALLBACKS: OnceLock<WaitCallbacks> = OnceLock::new();
/// The environment of the running recording, if it records waits.
static ENVIRONMENT: Mutex<Option<Jvmti>> = Mutex::new(None);
/// Callbacks that failed, which is a bug of ours. Only the first is reported.
static FAILED: AtomicU64 = AtomicU64::new(0);

const EVENTS: [Event; 2] = [Event::MonitorContendedEntered, Event::MonitorContendedEnter];

/// The JVM's events for a recording of waits. Disposed of if they are never begun.
pub struct Watching {
    jvmti: Jvmti,
    begun: bool,
}

impl Watching {
    /// Requests the events.
    ///
    /// # Errors
    /// One line for the user, if this JVM does not grant them.
    pub fn prepare(java_vm: JavaVm, callbacks: WaitCallbacks) -> Result<Watching, String> {
        let _ = CALLBACKS.set(callbacks);
        // SAFETY: the VM calls us, so it is alive.
        let env = unsafe { java_vm.get_env(VERSION) };
        let jvmti =
            Jvmti(env.ok_or("lock: this JVM offers no JVMTI environment; it may be ending")?);
        let watching = Watching {
            jvmti,
            begun: false,
        };
        let callbacks = Callbacks::default()
            .monitor(Event::MonitorContendedEnter, on_enter)
            .monitor(Event::MonitorContendedEntered, on_entered);
        // SAFETY: a fresh environment; capabilities may be added in the live phase, and the
        // callbacks are functions of a library that stays loaded.
        let set = unsafe {
            let added = jvmti.add_monitor_events();
            added.and_then(|()| jvmti.set_callbacks(&callbacks))
        };
        match set {
            Ok(()) => Ok(watching),
            Err(error) => Err(format!(
                "lock: the JVM does not report monitor waits (JVMTI error {}); record without lock",
                error.0
            )),
        }
    }

    /// Lets the JVM report waits until [`end`].
    pub fn begin(mut self) {
        for event in EVENTS {
            // SAFETY: the environment has the capability and the callbacks.
            if let Err(error) = unsafe { self.jvmti.enable(event, true) } {
                let why = error.0;
                eprintln!("dwell: no waits for monitors are recorded (JVMTI error {why})");
            }
        }
        self.begun = true;
        let mut environment = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
        *environment = Some(self.jvmti);
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if !self.begun {
            give_back(self.jvmti);
        }
    }
}

/// Ends the events with the recording. A callback may still run, but uses nothing that is disposed
/// of here.
pub fn end() {
    let mut environment = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(jvmti) = environment.take() {
        for event in EVENTS {
            // SAFETY: the environment is disposed of below, and nowhere else.
            let _ = unsafe { jvmti.enable(event, false) };
        }
        give_back(jvmti);
    }
}

fn give_back(jvmti: Jvmti) {
    // SAFETY: the caller has taken the environment from where others could find it, and the VM is
    // alive: a command is carried out. The callback's own use of its environment is over by then,
    // or it gets an error for an answer: HotSpot keeps what is disposed of until a safepoint at
    // which no thread is in a callback (src/hotspot/share/prims/jvmtiEnvBase.cpp).
    unsafe { jvmti.dispose() };
}

unsafe extern "C" fn on_enter(_: Jvmti, _: Env, _thread: Object, _object: Object) {
    guarded(|callbacks| (callbacks.begins)());
}

unsafe extern "C" fn on_entered(jvmti: Jvmti, env: Env, _thread: Object, object: Object) {
    guarded(|callbacks| (callbacks.ends)(jvmti, env, object));
}

fn guarded(work: impl FnOnce(&WaitCallbacks)) {
    let work = || CALLBACKS.get().map(work);
    if catch_unwind(AssertUnwindSafe(work)).is_err() && FAILED.fetch_add(1, Ordering::Relaxed) == 0
    {
        eprintln!("dwell: internal error in an event; the JVM continues");
    }
}

/// The number of the class of a callback's object.
pub fn class_of(classes: &Classes, jvmti: Jvmti, env: Env, object: Object) -> u32 {
    if object.is_null() {
        return u32::MAX;
    }
    // SAFETY: the callback's own reference, on the thread to which the environment belongs; the
    // class's one is given back when it has been used.
    unsafe {
        let Some(class) = env.object_class(object) else {
            return u32::MAX;
        };
        let number = number_of(classes, jvmti, class);
        env.delete_local(class);
        number
    }
}
