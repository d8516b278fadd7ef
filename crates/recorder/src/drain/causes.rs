//! Why threads did not run, from their wall-clock samples and the names of their frames, which are
//! known only at the flush.

use crate::record::batch::{PendingFrame, PendingWall};
use crate::record::names::{NameId, Names};
use crate::record::resolve::Resolver;
use dwell_wall::cause::{Cause, Facts, Known, Monitor, Named, Os};
use rustc_hash::FxHashMap;

/// The innermost frames show what a thread waits for.
const FRAMES_MAX: usize = 64;

/// Causes of one flush: many threads wait at the same place for the same reason.
#[derive(Default)]
pub struct Causes(FxHashMap<(Option<u32>, Os, Monitor, bool), Cause>);

impl Causes {
    /// The cause of a sample with `frames`.
    pub fn of(
        &mut self,
        wall: &PendingWall,
        frames: &[PendingFrame],
        resolver: &mut Resolver,
        known: &Known,
        names: &mut Names,
    ) -> Cause {
        let key = (wall.stack, wall.os, wall.monitor, wall.is_owned_lock);
        *self
            .0
            .entry(key)
            .or_insert_with(|| find(wall, frames, resolver, known, names))
    }
}

/// Whether the awaited object and its owner, as sampled, belong to this cause. The runtime may
/// still name an object on which the thread was parked before.
#[must_use]
pub fn has_object(cause: Cause) -> bool {
    !matches!(
        cause,
        Cause::Unknown
            | Cause::GcStall
            | Cause::JitWait
            | Cause::VmLock
            | Cause::ClassInit
            | Cause::Stopped
            | Cause::PageFault
    )
}

fn find(
    wall: &PendingWall,
    frames: &[PendingFrame],
    resolver: &mut Resolver,
    known: &Known,
    names: &mut Names,
) -> Cause {
    let top = frames.iter().take(FRAMES_MAX);
    let ids: Vec<NameId> = top.map(|frame| resolver.name(frame.code, names)).collect();
    let named = |id: &NameId| {
        let name = names.get(*id)?;
        Some(Named {
            class: &name.class,
            name: &name.name,
            // Only methods have descriptors.
            is_managed: !name.descriptor.is_empty(),
        })
    };
    let frames: Vec<Named<'_>> = ids.iter().filter_map(named).collect();
    let facts = Facts {
        os: wall.os,
        monitor: wall.monitor,
        is_owned_lock: wall.is_owned_lock,
        frames: &frames,
    };
    known.cause(&facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_of_the_runtime_itself_have_no_object() {
        for cause in [
            Cause::Unknown,
            Cause::GcStall,
            Cause::JitWait,
            Cause::Stopped,
        ] {
            assert!(!has_object(cause), "{}", cause.name());
        }
        // A virtual thread that is ready waits for a carrier.
        for cause in [
            Cause::Monitor,
            Cause::Lock,
            Cause::Park,
            Cause::ObjectWait,
            Cause::Socket,
            Cause::File,
            Cause::IdlePool,
            Cause::Runnable,
        ] {
            assert!(has_object(cause), "{}", cause.name());
        }
    }
}
