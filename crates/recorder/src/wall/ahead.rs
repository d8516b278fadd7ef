//! Fetching ahead what is read of one thread after the other.

use super::Sampler;
use crate::runtime::{Looks, Runtime};

/// Data of the thread that comes so many later are fetched ahead, ...
const AHEAD: usize = 12;
/// ... line of cache by line.
const LINE: usize = 64;

impl<R: Runtime> Sampler<'_, R> {
    /// Has the processor fetch what will be read of those who are asked next: their data lie far
    /// apart and are in no cache, as nobody has read them since the last tick.
    pub(super) fn fetch_ahead(&self, ids: &[u32], at: usize) {
        if at == 0 {
            // Nobody has fetched those of the first ones.
            ids.iter().take(AHEAD).for_each(|id| self.fetch_own(*id));
            let soon = ids.iter().take(AHEAD / 2);
            soon.for_each(|id| self.fetch_others(*id));
        }
        if let Some(next) = ids.get(at + AHEAD) {
            self.fetch_own(*next);
        }
        if let Some(soon) = ids.get(at + AHEAD / 2) {
            self.fetch_others(*soon);
        }
    }

    /// What we have of it.
    fn fetch_own(&self, index: u32) {
        let fetch = |start: usize, bytes: usize| {
            (start..start + bytes)
                .step_by(LINE)
                .for_each(dwell_signal::fetch_ahead);
        };
        if let Some(known) = self.known.get(index as usize) {
            fetch(std::ptr::from_ref(known).addr(), size_of_val(known));
        }
        if let Some(record) = self.setup.engine.record(index) {
            fetch(std::ptr::from_ref(record).addr(), LINE);
        }
    }

    /// What the kernel and the runtime have: where that is says the record, which is there by now.
    fn fetch_others(&self, index: u32) {
        if let Some(record) = self.setup.engine.record(index) {
            self.setup.engine.fetch_turns(record);
            if self.by_sign {
                self.looks.fetch_sign(record);
            }
        }
    }
}
