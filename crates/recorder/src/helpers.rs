//! The threads that sample for a recording, except its drainer. They are ended together with the
//! recording: by the session, or by the drainer if the recording reaches one of its limits.

use crate::runtime::progress::Progress;
use crate::runtime::setup::Setup;
use crate::runtime::{Runtime, Watch};
use crate::wall::WallSampler;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

struct State<R: Runtime> {
    wall: Option<WallSampler>,
    watch: Option<R::Watch>,
    is_over: bool,
}

/// The wall-clock sampler, and the runtime's watchers.
pub struct Helpers<R: Runtime>(Mutex<State<R>>);

impl<R: Runtime> Helpers<R> {
    /// No helpers yet.
    #[must_use]
    pub fn none() -> Helpers<R> {
        Helpers(Mutex::new(State {
            wall: None,
            watch: None,
            is_over: false,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State<R>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts them, unless the recording is over already.
    pub fn start(&self, setup: &Arc<Setup<R>>, progress: &Arc<Progress>) {
        let mut state = self.state();
        if !state.is_over {
            state.wall = WallSampler::start(setup, progress);
            state.watch = R::Watch::start(setup, progress);
        }
    }

    /// Ends them, and prevents new ones from being started. Their results are queued for the
    /// drainer then. If another thread is already ending them, this call does not wait for it.
    pub fn end(&self, setup: &Setup<R>) {
        let (wall, watch) = {
            let mut state = self.state();
            state.is_over = true;
            (state.wall.take(), state.watch.take())
        };
        if let Some(wall) = wall {
            wall.end(setup);
        }
        if let Some(watch) = watch {
            watch.end();
        }
    }
}
