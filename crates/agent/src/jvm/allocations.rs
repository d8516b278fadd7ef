//! Objects that the JVM's sampler chooses while they are allocated (JEP 331): JVMTI's
//! `SampledObjectAlloc`, from 11 on.
//!
//! The sampler puts a point into each thread's stream of allocated bytes, in a distance that is
//! drawn anew, exponentially around the interval, once an object has met it
//! (src/hotspot/share/runtime/threadHeapSampler.cpp). So what an object stands for follows from its
//! size and the interval alone. The JVM only counts while somebody listens, and a thread keeps the
//! distance that was drawn for it last: its first object of a recording was met by a point of
//! another interval, where that has changed ([`DRAWN`]).
//!
//! All of this has an environment of its own, which is given back when a recording ends: until the
//! next one the JVM does nothing for it.

#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "a reference is a pointer only to the VM, and comes from its callbacks"
)]

use dwell_inside::jvm::mutf8;
use dwell_recorder::allocated::Classes;
use jvm_sys::jni::Object;
use jvm_sys::jvmti::{Callbacks, Event, SAMPLING_INTERVAL, VERSION_11};
use jvm_sys::{Env, JavaVm, Jvmti};
use std::cell::Cell;
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// An object that the sampler has chosen, as its callback tells it.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    /// An environment to ask about its class.
    pub jvmti: Jvmti,
    /// The allocating thread's environment.
    pub env: Env,
    /// A local reference to it.
    pub object: Object,
    /// A local reference to its class.
    pub class: Object,
    /// Its size in bytes.
    pub size: u64,
    /// The interval around which the distance to its point was drawn, in bytes.
    pub interval: u64,
}

/// What is called for each object, on the allocating thread, which may be any of the program's.
pub type Told = fn(&Chosen);

/// Who is told.
static TOLD: OnceLock<Told> = OnceLock::new();
/// The environment of the recording that runs, if allocations are sampled.
static ENVIRONMENT: Mutex<Option<Jvmti>> = Mutex::new(None);
/// The sampler's interval, in bytes.
static INTERVAL: AtomicU64 = AtomicU64::new(SAMPLING_INTERVAL as u64);
/// Callbacks that failed: an error of ours, told once.
static FAILED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The interval that the distance to this thread's next point was drawn by; 0: that which the
    /// JVM has while it is not told another one.
    static DRAWN: Cell<u64> = const { Cell::new(0) };
}

/// What a recording needs to sample allocations. Gives all of it back where it is not begun.
pub struct Sampling {
    jvmti: Jvmti,
    interval: u64,
    begun: bool,
}

impl Sampling {
    /// Gets what is needed of the JVM, for samples `interval` bytes apart in the mean, as the
    /// option `asked` wants it. The first `told` of a process is told of all.
    ///
    /// # Errors
    /// One line for the user, if this JVM has no such sampler or another agent has it.
    pub fn prepare(
        java_vm: JavaVm,
        asked: &str,
        interval: u64,
        told: Told,
    ) -> Result<Sampling, String> {
        let _ = TOLD.set(told);
        // SAFETY: the VM calls us, so it is alive.
        let env = unsafe { java_vm.get_env(VERSION_11) };
        let jvmti = Jvmti(env.ok_or_else(|| {
            format!("{asked}: this JVM cannot sample allocations (JDK 11 and later can)")
        })?);
        let sampling = Sampling {
            jvmti,
            interval,
            begun: false,
        };
        let callbacks = Callbacks::default().allocation(on_allocation);
        // SAFETY: a fresh environment of a version that has all of this; capabilities may be added
        // in the live phase, and the callback is a function of a library that stays loaded.
        unsafe {
            jvmti.add_sampled_allocations().map_err(|e| {
                format!(
                    "{asked}: the JVM gives its sampler of allocations to nobody else \
                     while another agent has it (JVMTI error {}); end that one, or leave it out",
                    e.0
                )
            })?;
            let refused = |e: jvm_sys::jvmti::Error| {
                format!("{asked}: the JVM refuses it (JVMTI error {})", e.0)
            };
            jvmti.set_callbacks(&callbacks).map_err(refused)?;
            let bytes = i32::try_from(interval).unwrap_or(i32::MAX);
            jvmti.set_sampling_interval(bytes).map_err(refused)?;
        }
        Ok(sampling)
    }

    /// Lets the JVM tell what is allocated, until [`end`].
    pub fn begin(mut self) {
        INTERVAL.store(self.interval, Ordering::Relaxed);
        // SAFETY: the environment has the capability and the callback.
        if let Err(error) = unsafe { self.jvmti.enable(Event::SampledObjectAlloc, true) } {
            let why = error.0;
            eprintln!("dwell: no allocations are recorded: the JVM tells none (JVMTI error {why})");
        }
        self.begun = true;
        let mut environment = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
        *environment = Some(self.jvmti);
    }
}

/// Objects are chosen around this interval from now on, in bytes, by each thread when it has met
/// its next point. Nothing happens where none are.
///
/// # Errors
/// One line for the user: the JVM refuses it, and the interval stays.
pub fn set_interval(bytes: u64) -> Result<(), String> {
    let environment = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(jvmti) = *environment else {
        return Ok(());
    };
    // SAFETY: the environment is given back only by who takes it out of its place, which is locked.
    unsafe { jvmti.set_sampling_interval(i32::try_from(bytes).unwrap_or(i32::MAX)) }
        .map_err(|e| format!("alloc={bytes}: the JVM refuses it (JVMTI error {})", e.0))?;
    INTERVAL.store(bytes, Ordering::Relaxed);
    Ok(())
}

/// The same in a callback, whose thread has drawn its next point before, by the old interval:
/// HotSpot tells of an object when the scope of its allocation ends (`MemAllocator::Allocation` in
/// src/hotspot/share/gc/shared/memAllocator.cpp). False: it stays, as the JVM refuses it or the
/// sampler is being given back.
pub fn adapt(bytes: u64) -> bool {
    let Ok(environment) = ENVIRONMENT.try_lock() else {
        return false;
    };
    let Some(jvmti) = *environment else {
        return false;
    };
    // SAFETY: as in `set_interval`.
    let set = unsafe { jvmti.set_sampling_interval(i32::try_from(bytes).unwrap_or(i32::MAX)) };
    if set.is_ok() {
        INTERVAL.store(bytes, Ordering::Relaxed);
    }
    set.is_ok()
}

impl Drop for Sampling {
    fn drop(&mut self) {
        if !self.begun {
            give_back(self.jvmti);
        }
    }
}

/// The recording is over: the JVM samples no allocations for us any more. A callback may still be
/// at work; it uses nothing that is given back.
pub fn end() {
    let mut environment = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(jvmti) = environment.take() {
        // SAFETY: the environment is disposed of below, and by nobody else.
        let _ = unsafe { jvmti.enable(Event::SampledObjectAlloc, false) };
        give_back(jvmti);
        INTERVAL.store(SAMPLING_INTERVAL as u64, Ordering::Relaxed);
    }
}

/// Gives an environment back, and leaves the sampler as it was.
fn give_back(jvmti: Jvmti) {
    // SAFETY: the caller has taken the environment from where others could find it, and the VM is
    // alive: a command is carried out. The callback's own use of its environment is over by then,
    // or it gets an error for an answer: HotSpot keeps what is disposed of until a safepoint at
    // which no thread is in a callback (src/hotspot/share/prims/jvmtiEnvBase.cpp).
    unsafe {
        let _ = jvmti.set_sampling_interval(SAMPLING_INTERVAL);
        jvmti.dispose();
    }
}

/// The calling thread has just begun, and the distance to its first point was drawn.
pub fn thread_begins() {
    let interval = INTERVAL.load(Ordering::Relaxed);
    let _ = DRAWN.try_with(|drawn| drawn.set(interval));
}

unsafe extern "C" fn on_allocation(
    jvmti: Jvmti,
    env: Env,
    _thread: Object,
    object: Object,
    class: Object,
    size: i64,
) {
    let work = || {
        // The next point was drawn just before this, whatever becomes of the sample.
        let interval = INTERVAL.load(Ordering::Relaxed);
        let drawn = DRAWN.try_with(|drawn| drawn.replace(interval)).unwrap_or(0);
        let drawn = match drawn {
            0 => SAMPLING_INTERVAL as u64,
            drawn => drawn,
        };
        if let Some(told) = TOLD.get() {
            told(&Chosen {
                jvmti,
                env,
                object,
                class,
                size: size.max(0) as u64,
                interval: drawn,
            });
        }
    };
    if catch_unwind(AssertUnwindSafe(work)).is_err() && FAILED.fetch_add(1, Ordering::Relaxed) == 0
    {
        eprintln!("dwell: internal error in a sample of allocations; the JVM goes on without it");
    }
}

/// The number of an object's class. Nothing of ours is locked while the JVM is asked.
pub fn number_of(classes: &Classes, jvmti: Jvmti, class: Object) -> u32 {
    // SAFETY: a callback's reference to a class, in the live phase; the text is used before it is
    // given back.
    unsafe {
        let Ok(signature) = jvmti.class_signature(class) else {
            return u32::MAX;
        };
        let bytes = CStr::from_ptr(signature).to_bytes();
        let number = classes.number(bytes, || name(&mutf8::decode(bytes)));
        jvmti.deallocate(signature.cast());
        number
    }
}

/// What files call a class with this signature: `java/lang/String`, but `[B` and
/// `[Ljava/lang/String;`.
fn name(signature: &str) -> String {
    let inner = signature
        .strip_prefix('L')
        .and_then(|rest| rest.strip_suffix(';'));
    inner.unwrap_or(signature).to_owned()
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_called_as_in_files() {
        for (signature, expected) in [
            ("Ljava/lang/String;", "java/lang/String"),
            ("[B", "[B"),
            ("[[Ljava/lang/String;", "[[Ljava/lang/String;"),
            ("La/B$$Lambda.0x7f;", "a/B$$Lambda.0x7f"),
        ] {
            assert_eq!(name(signature), expected);
        }
    }
}
