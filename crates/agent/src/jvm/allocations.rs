//! Objects that the JVM's sampler chooses when they are allocated (JEP 331): JVMTI's
//! `SampledObjectAlloc`, from 11 on.
//!
//! The sampler puts points into each thread's stream of allocated bytes. After each point it draws
//! the distance to the next one, exponentially distributed with the interval as its mean
//! (src/hotspot/share/runtime/threadHeapSampler.cpp). So size and interval alone give an object's
//! weight. The JVM only counts bytes while an agent listens, and a thread keeps its last distance.
//! So its first object in a recording may have been chosen by another interval ([`DRAWN`]).
//!
//! The sampler has its own JVMTI environment, which is disposed of when a recording ends. Until the
//! next recording the JVM has no overhead.

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

/// An object that the sampler has chosen.
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

/// Callback for each object, on the allocating thread, which may be any of the program's.
pub type OnSample = fn(&Chosen);

/// The callback. It is set once in a process.
static ON_SAMPLE: OnceLock<OnSample> = OnceLock::new();
/// The environment of the recording that runs, if allocations are sampled.
static ENVIRONMENT: Mutex<Option<Jvmti>> = Mutex::new(None);
/// The sampler's interval, in bytes.
static INTERVAL: AtomicU64 = AtomicU64::new(SAMPLING_INTERVAL as u64);
/// Callbacks that failed, which is a bug of ours. Only the first is reported.
static FAILED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The interval by which this thread's next distance was drawn. 0: the JVM's default interval.
    static DRAWN: Cell<u64> = const { Cell::new(0) };
}

/// The JVM's sampler for a recording. Disposed of if it is never begun.
pub struct Sampling {
    jvmti: Jvmti,
    interval: u64,
    begun: bool,
}

impl Sampling {
    /// Requests the sampler, for samples with a mean distance of `interval` bytes. `asked` is the
    /// option, for messages. The first `on_sample` of a process gets all objects.
    ///
    /// # Errors
    /// One line for the user, if this JVM has no such sampler or another agent has it.
    pub fn prepare(
        java_vm: JavaVm,
        asked: &str,
        interval: u64,
        on_sample: OnSample,
    ) -> Result<Sampling, String> {
        let _ = ON_SAMPLE.set(on_sample);
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
                    "{asked}: another agent uses the JVM's allocation sampler (JVMTI error {}); \
                     end that agent, or leave the option out",
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

    /// Lets the JVM report allocations until [`end`].
    pub fn begin(mut self) {
        INTERVAL.store(self.interval, Ordering::Relaxed);
        // SAFETY: the environment has the capability and the callback.
        if let Err(error) = unsafe { self.jvmti.enable(Event::SampledObjectAlloc, true) } {
            let why = error.0;
            eprintln!("dwell: no allocations are recorded (JVMTI error {why})");
        }
        self.begun = true;
        let mut environment = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
        *environment = Some(self.jvmti);
    }
}

/// Sets the sampling interval in bytes. Each thread uses it after its next point. Has no effect
/// while no objects are sampled.
///
/// # Errors
/// One line for the user: the JVM refuses it, and the interval stays.
pub fn set_interval(bytes: u64) -> Result<(), String> {
    let environment = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(jvmti) = *environment else {
        return Ok(());
    };
    // SAFETY: an environment is only disposed of after it was taken out of its place, which is
    // locked.
    unsafe { jvmti.set_sampling_interval(i32::try_from(bytes).unwrap_or(i32::MAX)) }
        .map_err(|e| format!("alloc={bytes}: the JVM refuses it (JVMTI error {})", e.0))?;
    INTERVAL.store(bytes, Ordering::Relaxed);
    Ok(())
}

/// The same in a callback. Its thread has already drawn its next point, with the old interval:
/// HotSpot reports an object when the scope of its allocation ends (`MemAllocator::Allocation` in
/// src/hotspot/share/gc/shared/memAllocator.cpp). False: the interval stays, because the JVM
/// refuses it or the sampler is being disposed of.
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

/// Ends sampling with the recording. A callback may still run, but uses nothing that is disposed of
/// here.
pub fn end() {
    let mut environment = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(jvmti) = environment.take() {
        // SAFETY: the environment is disposed of below, and nowhere else.
        let _ = unsafe { jvmti.enable(Event::SampledObjectAlloc, false) };
        give_back(jvmti);
        INTERVAL.store(SAMPLING_INTERVAL as u64, Ordering::Relaxed);
    }
}

/// Disposes of an environment, and resets the sampler's interval.
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
        // The thread drew its next point just before this, even if the sample is dropped.
        let interval = INTERVAL.load(Ordering::Relaxed);
        let drawn = DRAWN.try_with(|drawn| drawn.replace(interval)).unwrap_or(0);
        let drawn = match drawn {
            0 => SAMPLING_INTERVAL as u64,
            drawn => drawn,
        };
        if let Some(on_sample) = ON_SAMPLE.get() {
            on_sample(&Chosen {
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
        eprintln!("dwell: internal error in an event; the JVM continues");
    }
}

/// The number of an object's class. Holds no lock of ours while it asks the JVM.
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

/// The class name in files for this signature: `java/lang/String`, but `[B` and
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
    fn class_signature_gives_the_name_in_files() {
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
