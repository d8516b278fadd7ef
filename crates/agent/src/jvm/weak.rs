//! Weak global references (JNI), for who follows objects.
//!
//! They keep nothing alive. Collectors clear those whose objects they find dead, as they do for the
//! JVM's own (src/hotspot/share/gc/shared/weakProcessor.cpp), beside their other work.

use dwell_recorder::alive::References;
use jvm_sys::Env;
use jvm_sys::jni::Object;

/// Weak references, by the calling thread's environment.
pub struct Weak {
    /// The calling thread's environment.
    pub env: Env,
    /// The object that is to be followed; null where none is.
    pub object: Object,
}

impl References for Weak {
    fn make(&self) -> usize {
        // SAFETY: the callback's own reference to the object it tells of, in its own environment.
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
    /// For who makes no references.
    #[must_use]
    pub fn asking(env: Env) -> Weak {
        let object = std::ptr::null_mut();
        Weak { env, object }
    }
}
