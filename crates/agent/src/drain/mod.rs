//! The drainer: one plain thread that walks snapshots, names frames and writes the recording.
//!
//! It is never attached to the JVM and calls nothing of it, so it works while the JVM is at a
//! safepoint, hangs or collects garbage. It reads the JVM's memory fault-tolerantly.

pub mod causes;
pub mod census;
pub mod contexts;
pub mod describe;
pub mod freezer;
pub mod histogram;
pub mod housekeeping;
pub mod named;
pub mod outer;
pub mod paused;
pub mod processors;
pub mod sample;
pub mod unsampled;
pub mod wall;
pub mod writer;

use crate::session::{Orders, Progress, Setup};
use crate::sys::memory::OwnThread;
use crate::sys::process;
use sample::Sampler;
use std::sync::Arc;
use std::time::{Duration, Instant};
use writer::Writer;

/// Time between two looks at the slots. Short enough that a method's class is hardly ever unloaded
/// before its name is read, long enough to cost little.
const TICK_MAX: Duration = Duration::from_millis(20);
/// The shortest, where many samples come.
const TICK_MIN: Duration = Duration::from_millis(5);
/// And where code and classes go away before their samples are looked at.
const TICK_LOSING: Duration = Duration::from_millis(1);
/// So many samples may wait for a look: an eighth of the smallest slots.
const WAITING_MAX: u32 = 128;
/// Time between two flushes: what may be lost when the process is killed.
const FLUSH: Duration = Duration::from_millis(1000);
/// The first flush comes early, so that a short recording shows something soon.
const FIRST_FLUSH: Duration = Duration::from_millis(100);

/// The time between two looks when all processors are busy with what is sampled.
fn tick(interval: Duration, processors: usize) -> Duration {
    let processors = u32::try_from(processors).unwrap_or(u32::MAX).max(1);
    let filling = interval.saturating_mul(WAITING_MAX) / processors;
    filling.clamp(TICK_MIN, TICK_MAX)
}

/// Runs until told to stop; then drains and writes the rest.
pub fn run(setup: &Setup, orders: &Orders, progress: &Arc<Progress>) {
    process::block_signals();
    process::unblock_signal(setup.engine.signal());
    process::ask_for_early_turns();
    let _own = OwnThread::begin();
    let mut sampler = Sampler::new(setup);
    sampler.publish();
    // Until here snapshots were taken, which need no walk in a hurry.
    let walking = paused::take_position(setup);
    let mut census = census::Census::new(setup.agent, false);
    let mut writer = Writer::new(setup, progress);
    let mut unsampled = unsampled::Unsampled::new(setup.process_cpu_at_start);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let tick = tick(setup.options.cpu_interval, processors);
    let mut flush_at = Instant::now() + FIRST_FLUSH;
    loop {
        census.find_if_changed(setup.engine);
        let now_ns = process::monotonic_ns();
        let losing = progress.patience.losing(now_ns);
        setup.engine.set_behind(progress.patience.behind(now_ns));
        let order = orders.wait(if losing { tick.min(TICK_LOSING) } else { tick });
        let mut all = sampler.drain(progress);
        if all {
            orders.looked();
        }
        census.bury(setup.engine);
        let due = Instant::now() >= flush_at;
        if due || order.flush || order.stop || !all {
            if due {
                flush_at = Instant::now() + FLUSH;
                housekeeping::run(setup, &mut census);
            }
            if due || order.stop {
                let weight_ns = unsampled.take(&setup.agent.registry);
                sampler.add_unsampled(weight_ns, progress);
            }
            if order.stop {
                let mut owing = Vec::new();
                setup.engine.stop_showing(|record, owed_ns| {
                    owing.push((record.user(), owed_ns));
                });
                writer.end_of_sampling(&walking);
                all = sampler.drain(progress);
                for (thread, owed_ns) in owing {
                    sampler.add_owed(thread, owed_ns, progress);
                }
                sampler.end_of_wall();
            }
            // At most as often as there are slots; in fact a few times.
            while order.stop && !all {
                // As the last one: a new file could stay without samples.
                writer.flush(&mut sampler, true, &mut census, &walking);
                all = sampler.drain(progress);
            }
            writer.flush(&mut sampler, order.stop, &mut census, &walking);
        }
        if order.stop {
            drop(walking);
            crate::context::set_recording(false);
            orders.done(&order);
            return;
        }
        orders.done(&order);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_samples_are_looked_at_sooner() {
        let of = |us, processors| tick(Duration::from_micros(us), processors).as_micros();
        assert_eq!(of(10_000, 2), 20_000);
        assert_eq!(of(1000, 2), 20_000);
        assert_eq!(of(1000, 10), 12_800);
        assert_eq!(of(1000, 64), 5000);
        assert_eq!(of(100, 2), 6400);
        assert_eq!(of(u64::MAX / 2000, 0), 20_000);
    }
}
