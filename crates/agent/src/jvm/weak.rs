//! Weak global references (JNI), to follow objects.
//!
//! They keep no object alive. Collectors clear the references to dead objects together with the
//! JVM's own weak references (src/hotspot/share/gc/shared/weakProcessor.cpp).

use dwell_recorder::alive::References;
use jvm_sys::Env;
use jvm_sys::jni::Object;

/// Weak references, by the calling thread's environment.
pub struct Weak {
    /// The calling thread's environment.
    pub env: Env,
    /// The object to follow, or null.
    pub object: Object,
}

impl References for Weak {
    fn make(&self) -> usize {
        // SAFETY: the callback's own reference to its object, in its own environment.
        let weak = unsafe { self.env.new_weak(self.object) };
        weak.map_or(0, |weak| weak as usize)
    }

    fn is_alive(&self, reference: usize) -> bool {
        // SAFETY: the table holds what `make` answered, and hands it out to one thread at a time;
        // the environment is the calling thread's.
        !unsafe { self.env.is_gone(reference as Object) }
    }

    fn give_back(&self, reference: usize) {
        // SAFETY: as above; the table forgets it.
        unsafe { self.env.delete_weak(reference as Object) };
    }
}

impl Weak {
    /// For a caller that makes no references.
    #[must_use]
    pub fn asking(env: Env) -> Weak {
        let object = std::ptr::null_mut();
        Weak { env, object }
    }
}
