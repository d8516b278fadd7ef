//! Safe wrappers for the JVMTI functions that need only a live environment. For attached threads in
//! the live phase only: attach operations and JVMTI callbacks.

use super::mutf8;
use jvm_sys::jni::Object;
use jvm_sys::jvmti::Event;
use jvm_sys::{Env, Jvmti};
use std::ffi::CStr;

/// A system property; empty if it is not set.
#[must_use]
pub fn property(jvmti: Jvmti, name: &CStr) -> String {
    // SAFETY: the phase is live, where GetSystemProperty is allowed; the text is copied before it
    // is given back.
    unsafe {
        let Ok(text) = jvmti.system_property(name) else {
            return String::new();
        };
        let copy = mutf8::decode(CStr::from_ptr(text).to_bytes());
        jvmti.deallocate(text.cast());
        copy
    }
}

/// Switches the events of a recording on or off. On: also requests the stubs generated so far.
pub fn set_events(jvmti: Jvmti, on: bool) {
    // SAFETY: the callbacks were set when the environment was made, and they are functions of a
    // library that stays loaded; both calls are allowed in the live phase.
    unsafe {
        for event in [
            Event::ThreadStart,
            Event::ThreadEnd,
            Event::DynamicCodeGenerated,
            Event::GarbageCollectionStart,
            Event::GarbageCollectionFinish,
        ] {
            let _ = jvmti.enable(event, on);
        }
        if on {
            let _ = jvmti.generate(Event::DynamicCodeGenerated);
        }
    }
}

/// Visits every live platform thread.
pub fn for_each_thread(jvmti: Jvmti, env: Env, mut visit: impl FnMut(Object)) {
    // SAFETY: the phase is live; the array and its references are given back below.
    let Ok((count, list)) = (unsafe { jvmti.all_threads() }) else {
        return;
    };
    for i in 0..count {
        // SAFETY: JVMTI filled `count` entries; each is a local reference of this frame.
        unsafe {
            let thread = *list.add(i);
            visit(thread);
            env.delete_local(thread);
        }
    }
    // SAFETY: allocated by this environment, not used afterwards.
    unsafe { jvmti.deallocate(list.cast()) };
}
