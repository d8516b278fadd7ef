//! The drainer: one plain thread that walks snapshots, names frames and writes the recording.
//!
//! It is unknown to the runtime and calls none of its functions. So it works while the runtime
//! stands still, hangs or collects garbage. It reads the process's memory fault-tolerantly.

pub mod account;
pub mod alive;
mod answers;
pub mod blocked_signals;
pub mod causes;
pub mod census;
pub mod contexts;
mod copies;
pub mod describe;
pub mod histogram;
pub mod housekeeping;
mod in_kernel;
pub mod inbox;
pub mod machine;
pub mod named;
pub mod owners;
pub mod pace;
pub mod paused;
mod preempted;
pub mod process_cpu;
pub mod processors;
pub mod sample;
pub mod splice;
mod stopped_process;
pub mod stops;
mod switching;
pub mod threads;
pub mod unsampled;
pub mod virtual_names;
pub mod wall;
pub mod writer;

use crate::ended::Ended;
use crate::orders::Order;
use crate::runtime::Runtime;
use crate::runtime::progress::Progress;
use crate::runtime::setup::Setup;
use crate::sys::allocator::OwnThread;
use crate::sys::process;
use crate::threads::NOBODY_KEY;
use dwell_signal::Cause;
use inbox::Inbox;
use sample::Sampler;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use writer::Writer;

/// Time between two flushes: samples of that time may be lost when the process is killed.
const FLUSH: Duration = Duration::from_millis(1000);
/// The first flush is early, so that a short recording soon has data.
const FIRST_FLUSH: Duration = Duration::from_millis(100);

/// Has handlers walk where copies are walked too late. True if samples have been lost lately.
fn update_walks<R: Runtime>(
    setup: &Setup<R>,
    progress: &Progress,
    sampler: &mut Sampler<'_, R>,
) -> bool {
    let now_ns = process::monotonic_ns();
    let behind = progress.patience.behind(now_ns);
    // Handlers that walk, if only for want of a copy, need ready tables of libraries.
    if behind || setup.engine.count(Cause::WalkedInstead) > 0 {
        sampler.modules.make_ready();
    }
    setup.engine.set_behind(behind);
    copies::update(setup, progress.bytes.load(Ordering::Relaxed) != 0);
    progress.patience.losing(now_ns)
}

/// Recording has stopped; state that the next recording can use is kept.
fn end<R: Runtime>(setup: &Setup<R>, sampler: &Sampler<'_, R>, walking: impl Sized) {
    drop(walking);
    setup.recorder.libraries.put(sampler.modules.own_images());
    crate::context::set_recording(false);
}

/// Runs until an order or a limit ends the recording; then drains and writes the last samples.
pub fn run<R: Runtime>(setup: &Setup<R>, inbox: &Inbox<'_>, progress: &Arc<Progress>) {
    process::block_signals();
    process::unblock_signal(setup.engine.signal());
    process::ask_for_early_turns();
    let _own = OwnThread::begin();
    let mut sampler = Sampler::new(setup);
    sampler.publish();
    // Until here snapshots were taken, whose walks are not urgent.
    let walking = paused::take_position(setup);
    let mut census = census::Census::new(setup.recorder, false);
    let processors = describe::processors();
    let mut writer = Writer::new(setup, progress, processors);
    let mut unsampled = unsampled::Unsampled::new(setup.process_cpu_at_start);
    let mut pace = copies::pace(setup, processors);
    let mut keeper = housekeeping::Keeper::default();
    let mut flush_at = Instant::now() + FIRST_FLUSH;
    let mut paid_ns = 0;
    loop {
        census.find_if_changed(setup.engine);
        let losing = update_walks(setup, progress, &mut sampler);
        let wait = pace.wait(sampler.work.walks, losing);
        let order = writer.wait(inbox, copies::in_time(setup, wait));
        let mut all = writer.drain(&mut sampler, progress);
        if all {
            inbox.orders.looked();
        }
        retire_threads(&mut census, setup, progress, &mut sampler);
        let due = Instant::now() >= flush_at;
        let flushes = due || order != Order::default() || !all;
        if flushes {
            if due {
                flush_at = Instant::now() + FLUSH;
                keeper.run(setup, &mut census, &mut sampler, progress);
            }
            if order.stop {
                let ended = setup.end_sampling();
                writer.end_of_sampling(&walking, &ended.clocks);
                all = take_remaining(&ended, progress, &mut sampler, &mut unsampled);
            } else if due {
                let weight_ns = unsampled.take(&setup.recorder.registry);
                sampler.add_unsampled(process::monotonic_ns(), weight_ns, progress);
            }
            if order.flush && (all || !order.stop) {
                sampler.tell_alive();
            }
            // At most once for each slot; in practice a few times.
            while order.stop && !all {
                // Flushes without rotation: a new file could stay without samples.
                writer.flush(&mut sampler, true, &mut census, &walking);
                all = writer.drain(&mut sampler, progress);
                if all {
                    sampler.tell_alive();
                }
            }
            if order.renew || keeper.has_new_signal() {
                writer.renew();
            }
            writer.flush(&mut sampler, order.stop, &mut census, &walking);
        }
        if order.stop {
            end(setup, &sampler, walking);
            inbox.orders.done(&order);
            return;
        }
        // The wall-clock sampler pays for work on its samples, but not for the drainer's rounds.
        let before_ns = std::mem::replace(&mut paid_ns, spent_on_looks(&sampler, &writer));
        setup.shelf.add_drain_cpu_ns(paid_ns - before_ns);
        inbox.orders.done(&order);
    }
}

/// Retires threads that have ended, and takes their debt.
fn retire_threads<R: Runtime>(
    census: &mut census::Census<R>,
    setup: &Setup<R>,
    progress: &Progress,
    sampler: &mut Sampler<'_, R>,
) {
    // These threads' debt was noted when sampling ended: their names stay until it is written.
    if !setup.engine.is_running() {
        return;
    }
    census.retire(setup.engine, |thread, owed_ns| {
        sampler.add_ended(process::monotonic_ns(), thread, owed_ns, progress);
    });
}

/// Takes the remaining samples at the end, and the threads' debt at that time. Returns whether all
/// samples were taken.
fn take_remaining<R: Runtime>(
    ended: &Ended,
    progress: &Progress,
    sampler: &mut Sampler<'_, R>,
    unsampled: &mut unsampled::Unsampled,
) -> bool {
    let now_ns = ended.clocks.now_ns;
    let (while_ending_ns, before_ns) = unsampled.take_last(&ended.clocks);
    sampler.add_unsampled(now_ns, before_ns, progress);
    if let Some(weight_ns) = while_ending_ns {
        sampler.add_owed(now_ns, NOBODY_KEY, weight_ns, progress);
    }
    let all = sampler.drain(progress);
    for owed in &ended.debts {
        if let Some(why) = owed.unreachable {
            sampler.add_unreached(now_ns, owed.thread, why, owed.ns, progress);
        } else if owed.lives {
            sampler.add_owed(now_ns, owed.thread, owed.ns, progress);
        } else {
            sampler.add_ended(now_ns, owed.thread, owed.ns, progress);
        }
    }
    all
}

fn spent_on_looks<R: Runtime>(sampler: &Sampler<'_, R>, writer: &Writer<'_, R>) -> u64 {
    sampler.work.looks_cpu_ns + writer.looks_cpu_ns
}
