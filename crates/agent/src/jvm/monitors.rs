//! Waits for monitors that other threads have, as the JVM tells them: JVMTI's
//! `MonitorContendedEnter` and `MonitorContendedEntered`.
//!
//! Both come from the JVM's slow path, after a first round of spinning was in vain
//! (`ObjectMonitor::enter`, src/hotspot/share/runtime/objectMonitor.cpp): locking without
//! contention is as without us. A virtual thread that gives its carrier up (24 and later, JEP 491)
//! is told to have the monitor when it has been mounted again (`jvmti_mount_end` in
//! continuationFreezeThaw.cpp), which may be on another carrier.
//!
//! All of this has an environment of its own, which is given back when a recording ends.

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

/// Who is told of waits, on the thread itself, which may be any of the program's.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// The thread is about to wait.
    pub begins: fn(),
    /// It has the monitor of this object: environments to ask about its class.
    pub ends: fn(Jvmti, Env, Object),
}

/// Who is told; the first one of a process is told of all.
static TOLD: OnceLock<Told> = OnceLock::new();
/// The environment of the recording that runs, if waits are told.
static ENVIRONMENT: Mutex<Option<Jvmti>> = Mutex::new(None);
/// Callbacks that failed: an error of ours, told once.
static FAILED: AtomicU64 = AtomicU64::new(0);

const EVENTS: [Event; 2] = [Event::MonitorContendedEntered, Event::MonitorContendedEnter];

/// What a recording needs to be told of waits. Gives all of it back where it is not begun.
pub struct Watching {
    jvmti: Jvmti,
    begun: bool,
}

impl Watching {
    /// Gets what is needed of the JVM.
    ///
    /// # Errors
    /// One line for the user, if this JVM does not give it.
    pub fn prepare(java_vm: JavaVm, told: Told) -> Result<Watching, String> {
        let _ = TOLD.set(told);
        // SAFETY: the VM calls us, so it is alive.
        let env = unsafe { java_vm.get_env(VERSION) };
        let jvmti = Jvmti(env.ok_or("lock: this JVM gives no environment for events")?);
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
                "lock: the JVM does not tell of waits for monitors (JVMTI error {}); leave it out",
                error.0
            )),
        }
    }

    /// Lets the JVM tell of waits, until [`end`].
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

/// The recording is over: the JVM tells us of no waits any more. A callback may still be at work;
/// it uses nothing that is given back.
pub fn end() {
    let mut environment = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(jvmti) = environment.take() {
        for event in EVENTS {
            // SAFETY: the environment is disposed of below, and by nobody else.
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
    guarded(|told| (told.begins)());
}

unsafe extern "C" fn on_entered(jvmti: Jvmti, env: Env, _thread: Object, object: Object) {
    guarded(|told| (told.ends)(jvmti, env, object));
}

fn guarded(work: impl FnOnce(&Told)) {
    let work = || TOLD.get().map(work);
    if catch_unwind(AssertUnwindSafe(work)).is_err() && FAILED.fetch_add(1, Ordering::Relaxed) == 0
    {
        eprintln!("dwell: internal error in a wait for a monitor; the JVM goes on without it");
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
