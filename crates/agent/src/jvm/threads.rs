//! Who a thread is: names from JVMTI for Java threads, from the kernel for all others.

#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "a reference is a pointer only to the VM, and comes from its callbacks"
)]

use super::mutf8;
use crate::sys::process;
use jvm_sys::jni::{FieldId, Object};
use jvm_sys::{Env, Jvmti};
use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A thread's identity in the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadName {
    /// Kernel id.
    pub tid: i32,
    /// Name the kernel knows it by, at most 15 bytes.
    pub comm: String,
    /// Name of the Java thread.
    pub java_name: Option<String>,
    /// `Thread.getId()`; 0 if it is not a Java thread.
    pub java_id: i64,
    /// Name of its group.
    pub group: Option<String>,
}

/// All threads met, by a key that is never used again.
pub struct ThreadTable {
    next: AtomicU64,
    salt: u64,
    names: Mutex<HashMap<u64, Arc<ThreadName>>>,
}

impl Default for ThreadTable {
    fn default() -> Self {
        Self::new()
    }
}

impl ThreadTable {
    /// An empty table.
    #[must_use]
    pub fn new() -> ThreadTable {
        ThreadTable {
            next: AtomicU64::new(1),
            // Other points in each process, so that two recordings are two experiments.
            salt: process::epoch_ns().wrapping_mul(u64::from(std::process::id()) | 1),
            names: Mutex::new(HashMap::new()),
        }
    }

    /// Adds a thread and answers its key.
    pub fn add(&self, name: ThreadName) -> u64 {
        let key = self.next.fetch_add(1, Ordering::Relaxed);
        self.set(key, name);
        key
    }

    /// The seed of a thread's sampling points. Threads that follow each other have seeds that do.
    #[must_use]
    pub fn seed(&self, key: u64) -> u64 {
        key.wrapping_add(self.salt)
    }

    /// Replaces what is known of a thread.
    pub fn set(&self, key: u64, name: ThreadName) {
        if let Ok(mut names) = self.names.lock() {
            names.insert(key, Arc::new(name));
        }
    }

    /// What is known of a thread.
    #[must_use]
    pub fn get(&self, key: u64) -> Option<Arc<ThreadName>> {
        self.names.lock().ok()?.get(&key).cloned()
    }

    /// Forgets threads that ended and whose samples are written.
    pub fn forget(&self, keys: &[u64]) {
        if let Ok(mut names) = self.names.lock() {
            for key in keys {
                names.remove(key);
            }
        }
    }
}

/// Field ids of `java.lang.Thread`; valid as long as the VM lives, that class is never unloaded.
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

    /// The `JavaThread*` of a platform thread; 0 if it is not alive.
    #[must_use]
    pub fn java_thread(&self, env: Env, thread: Object) -> u64 {
        // SAFETY: `thread` is a live reference to a java.lang.Thread, handed out by JVMTI, and the
        // field was looked up in that class.
        unsafe { env.long_field(thread, self.eetop) as u64 }
    }

    /// `Thread.getId()` as it is in the object, which no subclass can change.
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
    name.java_id = fields.id(env, thread);
    // SAFETY: the phase is live and `thread` is a live reference; strings are read before they
    // are given back, local references are released.
    unsafe {
        if let Ok(info) = jvmti.thread_info(thread) {
            name.java_name = Some(take_text(jvmti, info.name));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_never_reused() {
        let table = ThreadTable::new();
        let a = table.add(ThreadName {
            tid: 1,
            ..ThreadName::default()
        });
        table.forget(&[a]);
        let b = table.add(ThreadName {
            tid: 1,
            ..ThreadName::default()
        });
        assert_ne!(a, b);
        assert!(table.get(a).is_none());
        assert_eq!(table.get(b).unwrap().tid, 1);
    }
}
