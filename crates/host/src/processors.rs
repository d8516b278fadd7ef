//! The processor time of all processes, on the processors that one process may run on.

use crate::sys::{self, MASK_WORDS};
use crate::{Whose, small_files};
use dwell_wall::machine::{self, Sums};

/// Maximum number of bytes read from `/proc/stat`. The lines of processors, some 80 bytes each,
/// come first.
const BYTES_MAX: u64 = 256 << 10;
/// Processor time since the machine was started, in ns; `None` if it cannot be read.
#[must_use]
pub fn used(whose: Whose) -> Option<Sums> {
    let bytes = small_files::read_start("/proc/stat", BYTES_MAX).ok()?;
    let mask = allowed(whose);
    let is_allowed = |number: usize| match &mask {
        Some(mask) => mask
            .get(number / 64)
            .is_some_and(|word| word >> (number % 64) & 1 == 1),
        None => true,
    };
    // The lines of processors are ASCII; later bytes do not matter.
    let ticks = machine::ticks(&String::from_utf8_lossy(&bytes), is_allowed)?;
    let per_second = sys::ticks_a_second();
    let ns = |ticks: u64| ticks.saturating_mul(1_000_000_000 / per_second);
    Some(Sums {
        processors: ticks.processors,
        busy: ns(ticks.busy),
        idle: ns(ticks.idle),
        stolen: ns(ticks.stolen),
    })
}

/// Number of processors that the process's first thread may run on, regardless of its control
/// group's limit; 0 if that is not known.
#[must_use]
pub fn allowed_count(whose: Whose) -> u32 {
    allowed(whose).map_or(0, |mask| mask.iter().map(|word| word.count_ones()).sum())
}

/// The mask of processors that the process's first thread may run on; `None` if it is not known.
fn allowed(whose: Whose) -> Option<[u64; MASK_WORDS]> {
    sys::affinity(whose.pid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_processors_match_the_kernels_count() {
        assert!(allowed_count(Whose::Own) > 0);
        assert_eq!(
            u64::from(allowed_count(Whose::Own)),
            used(Whose::Own).unwrap().processors
        );
    }

    #[test]
    fn time_passes_on_the_processors_that_may_be_used() {
        let before = used(Whose::Own).unwrap();
        let allowed = std::thread::available_parallelism().unwrap().get() as u64;
        assert!(before.processors >= allowed, "{before:?}");
        // The kernel counts in ticks, so some have to pass.
        let began = std::time::Instant::now();
        while began.elapsed() < std::time::Duration::from_millis(100) {
            std::hint::spin_loop();
        }
        let since = used(Whose::Own).unwrap().since(&before);
        assert!(since.busy + since.idle + since.stolen > 0, "{since:?}");
    }
}
