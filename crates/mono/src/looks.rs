//! Wall-clock samples of Mono's threads: the place where a thread waits. Mono walks only the
//! calling thread, and a waiting thread is not woken for this. So the walk is ours, and uses our
//! knowledge of the code. Independent of the recorder's state: any runtime that runs Mono's code
//! could be sampled like this.

use crate::code;
use crate::known_libraries::{Place, VIEW, View};
use crate::sys::walk::NUMBERED;
use dwell_context::Context;
use dwell_recorder::looks::off::{Off, Waiting};
use dwell_recorder::looks::threads::{Holder, Threads};
use dwell_recorder::runtime::setup::Setup;
use dwell_recorder::runtime::{Looks, Runtime};
use dwell_signal::{Live, ThreadRecord};
use dwell_walker::native::{NativeRegs, NativeStep, Rule};
use dwell_walker::{Failure, Frame, FrameKind, Outcome, Walk};
use dwell_walker::{Host, Machine as _};

/// Takes wall-clock samples for one recording.
pub struct MonoLooks {
    live: Live,
}

impl<R: Runtime> Looks<R> for MonoLooks {
    /// Mono does not export owners of locks.
    type Claim = ();

    fn new(setup: &Setup<R>) -> MonoLooks {
        MonoLooks {
            live: setup.engine.live(),
        }
    }

    fn look(&self, _: &ThreadRecord, at: Waiting, frames: &mut [Frame]) -> (Off, Option<()>) {
        let walk = at
            .registers
            .and_then(|registers| self.walk_waiting(registers, frames));
        (Off::at(at.os, walk), None)
    }

    fn walk(&self, _: &ThreadRecord, at: (u64, u64), frames: &mut [Frame]) -> Option<Walk> {
        self.walk_waiting(at, frames)
    }

    fn is_still(&self, _: &ThreadRecord, (): &()) -> bool {
        true
    }

    fn holder(&self, (): &(), _: &Threads) -> Option<Holder> {
        None
    }

    fn mounted(&self, _: u64) -> Option<u64> {
        None
    }

    fn name_of_mounted(&self, _: u64) -> Option<Box<str>> {
        None
    }

    fn published(&self, _: u64) -> Option<Context> {
        None
    }
}

impl MonoLooks {
    fn walk_waiting(&self, (sp, pc): (u64, u64), frames: &mut [Frame]) -> Option<Walk> {
        let at = NativeRegs { pc, sp, fp: 0 };
        VIEW.read(|view| walk(&self.live, view, at, frames))
    }
}

/// A frame and its unwind rule; `None` if the code is unknown.
fn frame_at(view: &View, at: NativeRegs, is_exact: bool) -> Option<(Frame, Rule)> {
    let id = at.pc.wrapping_sub(u64::from(!is_exact));
    let frame = |kind| Frame { kind, bci: 0, id };
    match view.at(id) {
        Place::Native(rule) => Some((frame(FrameKind::Native), rule)),
        Place::Mono(rule) => Some((frame(FrameKind::Vm), rule)),
        Place::Managed => {
            let (found, method) = code::method_around(id)?;
            let frame = Frame {
                kind: found.frame_kind(),
                bci: i32::try_from(id - method.start).unwrap_or(-1),
                id: NUMBERED | u64::from(found.number),
            };
            Some((frame, method.rule))
        }
    }
}

/// Walks a thread that waits in the kernel: native frames by their tables, managed ones by their
/// first instructions. rbp is unknown until a frame has saved it; a method that needs it earlier
/// ends the walk.
fn walk(live: &Live, view: &View, mut at: NativeRegs, frames: &mut [Frame]) -> Walk {
    let mut len = 0;
    let mut managed_len = 0;
    // The thread waits in the kernel, so pc is exact: the instruction after the system call.
    let mut is_exact = true;
    let mut failure = Some(Failure::Truncated);
    // One entry is kept for a failure.
    while len + 1 < frames.len() {
        let Some((frame, rule)) = frame_at(view, at, is_exact) else {
            failure = Some(Failure::UnknownPc);
            break;
        };
        if let Some(place) = frames.get_mut(len) {
            *place = frame;
            len += 1;
        }
        if frame.kind.is_managed() {
            managed_len = len;
        }
        match Host.unwind(live, rule, at, None) {
            Ok(NativeStep::Caller(caller)) if caller.sp > at.sp => {
                (at, is_exact) = (caller, false);
            }
            Ok(NativeStep::Interrupted(interrupted)) => (at, is_exact) = (interrupted, true),
            Ok(NativeStep::End) => {
                failure = None;
                break;
            }
            Ok(NativeStep::Caller(_) | NativeStep::NoRule) | Err(_) => {
                failure = Some(Failure::NoNativeRule);
                break;
            }
        }
    }
    // Stacks of running threads end at the outermost method, too, because Mono's walk ends there.
    if failure.is_none() && managed_len > 0 {
        len = managed_len;
    }
    if let (Some(failure), Some(place)) = (failure, frames.get_mut(len)) {
        *place = Frame::failed(failure);
        len += 1;
    }
    Walk {
        len,
        outcome: failure.map_or(Outcome::Complete, Outcome::Failed),
        gaps: 0,
        flaw: None,
    }
}
