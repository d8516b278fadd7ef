//! The identity of a Java thread: fields of its object, and JVMTI's data about it.

#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "a reference is a pointer only to the VM, and comes from its callbacks"
)]

use super::mutf8;
use dwell_recorder::sys::process;
use dwell_recorder::threads::ThreadName;
use jvm_sys::jni::{FieldId, Object};
use jvm_sys::{Env, Jvmti};
use std::ffi::{CStr, c_char};

/// Field ids of `java.lang.Thread`. Valid as long as the VM lives, because that class is never
/// unloaded.
#[derive(Clone, Copy)]
pub struct ThreadFields {
    eetop: FieldId,
    tid: Option<FieldId>,
}

// SAFETY: field ids are numbers to their holder; only the VM looks into them.
unsafe impl Send for ThreadFields {}
// SAFETY: as above.
unsafe impl Sync for ThreadFields {}

impl ThreadFields {
    /// Looks the fields up.
    #[must_use]
    pub fn find(env: Env) -> Option<ThreadFields> {
        // SAFETY: `env` belongs to this attached thread: callers are JVMTI callbacks in the live
        // phase; the class reference is released before the end.
        unsafe {
            let class = env.find_class(c"java/lang/Thread")?;
            let eetop = env.field_id(class, c"eetop", c"J");
            let tid = env.field_id(class, c"tid", c"J");
            env.delete_local(class);
            Some(ThreadFields { eetop: eetop?, tid })
        }
    }

    /// For a fake JVM, which is never called.
    #[cfg(test)]
    pub(crate) fn made_up() -> ThreadFields {
        ThreadFields {
            eetop: std::ptr::null_mut(),
            tid: None,
        }
    }

    /// The `JavaThread*` of a platform thread; 0 if it is not alive.
    #[must_use]
    pub fn java_thread(&self, env: Env, thread: Object) -> u64 {
        // SAFETY: `thread` is a live reference to a java.lang.Thread, handed out by JVMTI, and the
        // field was looked up in that class.
        unsafe { env.long_field(thread, self.eetop) as u64 }
    }

    /// `Thread.getId()`, read from the object: subclasses can override the method.
    #[must_use]
    pub fn id(&self, env: Env, thread: Object) -> i64 {
        match self.tid {
            // SAFETY: as in `java_thread`.
            Some(field) => unsafe { env.long_field(thread, field) },
            None => 0,
        }
    }
}

/// Reads the identity of a Java thread.
#[must_use]
pub fn describe(
    jvmti: Jvmti,
    env: Env,
    fields: &ThreadFields,
    thread: Object,
    tid: i32,
) -> ThreadName {
    let mut name = ThreadName {
        tid,
        comm: process::thread_comm(tid),
        ..ThreadName::default()
    };
    name.id = fields.id(env, thread);
    // SAFETY: the phase is live and `thread` is a live reference; strings are read before they
    // are given back, local references are released.
    unsafe {
        if let Ok(info) = jvmti.thread_info(thread) {
            name.name = Some(take_text(jvmti, info.name));
            if !info.thread_group.is_null() {
                if let Ok(group) = jvmti.group_info(info.thread_group) {
                    name.group = Some(take_text(jvmti, group.name));
                    env.delete_local(group.parent);
                }
                env.delete_local(info.thread_group);
            }
            env.delete_local(info.context_class_loader);
        }
    }
    name
}

/// Copies a string of JVMTI's and gives it back.
///
/// # Safety
/// `text` must be null or a string allocated by `jvmti`, not used afterwards.
unsafe fn take_text(jvmti: Jvmti, text: *mut c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, and a C string by JVMTI's contract.
    let copy = mutf8::decode(unsafe { CStr::from_ptr(text) }.to_bytes());
    // SAFETY: it was allocated by this environment and `copy` does not borrow it.
    unsafe { jvmti.deallocate(text.cast()) };
    copy
}
