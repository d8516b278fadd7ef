//! Fetching ahead what is read of one thread after the other.

use super::Sampler;
use crate::runtime::Runtime;

/// Data of the thread that comes so many later are fetched ahead, ...
const AHEAD: usize = 12;
/// ... line of cache by line.
const LINE: usize = 64;

impl<R: Runtime> Sampler<'_, R> {
    /// Has the processor fetch what will be read of those who are asked next: their data lie far
    /// apart and are in no cache, as nobody has read them since the last tick.
    pub(super) fn fetch_ahead(&self, ids: &[u32], at: usize) {
        let fetch = |start: usize, bytes: usize| {
            (start..start + bytes)
                .step_by(LINE)
                .for_each(dwell_signal::fetch_ahead);
        };
        if let Some(next) = ids.get(at + AHEAD) {
            if let Some(known) = self.known.get(*next as usize) {
                fetch(std::ptr::from_ref(known).addr(), size_of_val(known));
            }
            if let Some(record) = self.setup.engine.record(*next) {
                fetch(std::ptr::from_ref(record).addr(), LINE);
            }
        }
        // Where its page is says the record, which is there by now.
        let soon = ids.get(at + AHEAD / 2);
        if let Some(record) = soon.and_then(|index| self.setup.engine.record(*index)) {
            self.setup.engine.fetch_turns(record);
        }
    }
}
