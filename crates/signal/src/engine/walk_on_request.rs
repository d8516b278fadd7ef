//! The engine's side of threads that wait to be walked, see [`crate::pause`].

use crate::engine::Engine;
use crate::slots::WalkTarget;
use core::sync::atomic::Ordering;

impl Engine {
    /// Whether a walking thread is at work, so that threads may wait for it.
    #[inline]
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.pause.is_served()
    }

    /// The walking thread, or 0.
    #[must_use]
    pub fn server(&self) -> i32 {
        self.pause.server()
    }

    /// Walks the threads that wait in their handlers, until [`Engine::end_serving`]. To be called
    /// by one thread at a time, from a function that `handler-graph` has as a root.
    #[inline]
    pub fn serve(&self, mut walk: impl FnMut(&mut WalkTarget<'_>)) {
        self.pause.serve(&self.pool, |slot| {
            let frames_max = self.frames_max.load(Ordering::Relaxed) as usize;
            walk(&mut WalkTarget::new(slot, self.live, frames_max));
        });
    }

    /// Lets [`Engine::serve`] be called, or end.
    pub fn end_serving(&self, ended: bool) {
        self.pause.end(ended);
    }
}
