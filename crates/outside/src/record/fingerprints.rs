//! The fingerprint of a thread's place: words that can be read at a tenth of the cost of its stack.

use crate::look::{Looker, VmState, Whom};
use crate::memory::Overlay;
use crate::task::Files;
use dwell_walker::Memory;
use dwell_walker::hotspot::layout::{Layout, present};
use dwell_walker::hotspot::threads;
use dwell_wall::proc::{Target, Whereabouts};
use dwell_wallclock::Fingerprint;

/// Bytes of a `JavaThread` that are read at once, if the fields are within so many.
const SPAN_MAX: usize = 4096;

/// The fingerprint of a Java thread. `has_run`: it may have run since its last read.
pub(super) fn of(looker: &Looker<'_, '_>, whom: Whom, files: &Files, has_run: bool) -> Fingerprint {
    let vm = looker.vm;
    let (fingerprint, state) = words(looker, whom.java_thread);
    match files.whereabouts() {
        // A blocked thread has work again, but no processor.
        Some(Whereabouts::Ready) if !has_run || state == Some(VmState::Blocked) => {
            Fingerprint::woken()
        }
        Some(Whereabouts::Ready) => Fingerprint::running(),
        Some(Whereabouts::Off { call, sp, pc }) => {
            let descriptor = match call {
                Some(Target::Descriptor(descriptor)) => Some(descriptor),
                Some(Target::Poll { fds, count: 1 }) => vm.live.i32(fds).ok(),
                _ => None,
            };
            let on = descriptor.map_or(u64::MAX, |it| u64::from(it.cast_unsigned()));
            [sp, pc, on]
                .into_iter()
                .fold(fingerprint, Fingerprint::with)
        }
        // The kernel does not report it.
        None => fingerprint,
    }
}

/// The words of its `JavaThread`, and its state.
fn words(looker: &Looker<'_, '_>, thread: u64) -> (Fingerprint, Option<VmState>) {
    let (live, layout) = (looker.vm.live, &looker.vm.layout);
    let (first, len) = span(layout);
    let mut buf = [0; SPAN_MAX];
    let bytes = buf.get_mut(..len).unwrap_or_default();
    let low = thread.wrapping_add(first);
    let none = (Fingerprint::of([], false), None);
    if live.read(low, bytes).is_err() {
        return none;
    }
    let now = Overlay::new(live, low, bytes);
    let Ok(at) = threads::place(&now, layout, thread) else {
        return none;
    };
    // Another virtual thread may be mounted later, with the same stack depth.
    let entry = layout.extra.cont_entry;
    let has_other = present(entry) && now.word(thread.wrapping_add(entry)) != Ok(0);
    let mounted = match has_other {
        true => looker.mounted(&now, thread),
        false => 0,
    };
    let words = [
        at.state,
        at.monitor_use,
        at.monitor,
        at.owner,
        at.sp,
        at.pc,
        mounted,
    ];
    let state = u32::try_from(at.state);
    let state = state.ok().map(|value| looker.state_of(value));
    (Fingerprint::of(words, false), state)
}

/// The part of a `JavaThread` with the fields that are read: its first offset and its length.
fn span(layout: &Layout) -> (u64, usize) {
    let anchor = |field: u64| layout.thread_anchor.wrapping_add(field);
    let fields = [
        layout.thread_state,
        layout.thread_pending_monitor,
        layout.thread_waiting_monitor,
        layout.extra.cont_entry,
        anchor(layout.anchor_sp),
        anchor(layout.anchor_pc),
        anchor(layout.anchor_fp),
    ];
    let known = || fields.into_iter().filter(|offset| present(*offset));
    let first = known().min().unwrap_or(0);
    let end = known().max().unwrap_or(0).saturating_add(8);
    let len = usize::try_from(end - first).unwrap_or(0);
    (first, if len <= SPAN_MAX { len } else { 0 })
}
