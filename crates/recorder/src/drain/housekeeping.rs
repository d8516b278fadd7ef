//! Work that is done once a second besides flushing.

use super::blocked_signals::Silent;
use super::census::Census;
use super::sample::Sampler;
use crate::runtime::Runtime;
use crate::runtime::progress::Progress;
use crate::runtime::setup::Setup;
use crate::sys::process;
use dwell_signal::{Engine, ThreadRecord};
use rustc_hash::FxHashSet;

/// Maximum number of threads with a kernel ring: each takes two pages of locked memory.
const RINGS_MAX: usize = 256;
/// A thread gets a ring once it has had this many samples: short threads never get one.
const RING_SAMPLES_MIN: u64 = 2;

/// Maximum number of threads whose timers are checked at once. If there are more, each round
/// checks a part.
const TENDED_MAX: usize = 200;

/// State of the last round.
#[derive(Default)]
pub struct Keeper {
    /// The place from which the next round checks threads.
    tended: u32,
    /// The threads that have a ring: the places of records, and their generations; `None` before
    /// these are read.
    ringed: Option<FxHashSet<(u32, u32)>>,
    silent: Silent,
    has_new_signal: bool,
}

/// Uses another signal if a library has taken the present one. Returns whether the engine has
/// something new to report about it.
fn keep_signal(engine: &'static Engine) -> bool {
    let was_replaced = engine.is_replaced();
    let is_moved = dwell_signal::move_if_replaced(engine) == Ok(true);
    if is_moved {
        // This thread blocks all others.
        process::unblock_signal(engine.signal());
    }
    is_moved || engine.is_replaced() != was_replaced
}

impl Keeper {
    /// Finds new threads, and checks timers and threads that do not answer. Busy threads among
    /// those that were sampled lately get a ring for kernel frames.
    pub fn run<R: Runtime>(
        &mut self,
        setup: &Setup<R>,
        census: &mut Census<R>,
        sampler: &mut Sampler<'_, R>,
        progress: &Progress,
    ) {
        self.has_new_signal |= keep_signal(setup.engine);
        census.find_in_time(setup.engine);
        // The drainer's next step.
        census.note_check();
        setup.engine.check_lifetimes();
        self.tended = setup.engine.tend_some(self.tended, TENDED_MAX);
        self.silent.look(setup.engine, |record, why, owed_ns| {
            let now_ns = process::monotonic_ns();
            sampler.add_unreached(now_ns, record.user(), why, owed_ns, progress);
        });
        if setup.kernel_frames {
            let records = sampler
                .sampled
                .iter()
                .filter_map(|at| setup.engine.record(*at));
            let busy = records.filter(|r| r.is_live() && r.samples() >= RING_SAMPLES_MIN);
            self.give_rings(setup.engine, busy);
        }
    }

    /// Whether the signal has changed since the last call: the next chunk gives the reason.
    pub fn has_new_signal(&mut self) -> bool {
        std::mem::take(&mut self.has_new_signal)
    }

    fn give_rings(
        &mut self,
        engine: &'static Engine,
        busy: impl Iterator<Item = &'static ThreadRecord>,
    ) {
        let whose = |record: &ThreadRecord| (record.index(), record.generation());
        // Of the recording before, too.
        let ringed = self.ringed.get_or_insert_with(|| {
            let records = engine.live_records().filter(|record| record.has_ring());
            records.map(whose).collect()
        });
        if ringed.len() >= RINGS_MAX {
            ringed.retain(|(at, generation)| {
                let record = engine.record(*at);
                record.is_some_and(|it| it.is_live() && it.generation() == *generation)
            });
        }
        for record in busy {
            // Also for a thread that has had one: it may have been armed again.
            if ringed.contains(&whose(record)) || ringed.len() < RINGS_MAX {
                // Refused (locked-memory limit, no event): its samples have no kernel frames.
                let _ = engine.attach_ring(record);
                ringed.insert(whose(record));
            }
        }
    }
}
