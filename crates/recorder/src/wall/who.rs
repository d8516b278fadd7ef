//! Other threads in the sample of a waiting thread: the owner of what it waits for, and the
//! logical thread that is mounted on it.

use super::look::{Kernel, walk_holder};
use crate::looks::shelf::{Note, Notes};
use crate::looks::threads::{Holder, Threads};
use crate::runtime::{Looks, Runtime};
use crate::threads::VIRTUAL_KEY;
use dwell_walker::Frame;

/// Another thread that a sample names.
#[derive(Debug)]
pub struct Who {
    /// The thread's key in the recording.
    pub key: u64,
    /// Frames of its stack; 0 if it was not walked.
    pub len: usize,
    /// Name of a logical thread, if it is known.
    name: Option<Box<str>>,
}

impl Who {
    /// A logical thread.
    #[must_use]
    pub fn of_id(id: u64, name: Option<Box<str>>) -> Who {
        Who {
            key: id | VIRTUAL_KEY,
            len: 0,
            name,
        }
    }

    pub(super) fn tell_name(self, notes: &mut Notes) {
        if let Some(name) = self.name {
            let thread = self.key;
            notes.add(Note::Name { thread, name }, 0);
        }
    }
}

/// The thread that owns what is waited for. If it waits as well, `frames` receive its stack.
pub fn holder<R: Runtime, L: Looks<R>>(
    looks: &L,
    (kernel, threads): (&Kernel, &Threads),
    claim: &L::Claim,
    frames: &mut [Frame],
) -> Option<Who> {
    let (place, is_platform) = match looks.holder(claim, threads)? {
        // The stack of an unmounted owner is not read.
        Holder::Unmounted(id) => return Some(Who::of_id(id, None)),
        Holder::Platform(place) => (place, true),
        Holder::On(place) => (place, false),
    };
    let record = threads.record(place)?;
    let walk = walk_holder(looks, kernel, record, frames);
    let thread = record.managed_thread();
    let mounted = match is_platform {
        true => None,
        false => looks.mounted(thread),
    };
    let name = mounted.and_then(|_| looks.name_of_mounted(thread));
    Some(Who {
        key: mounted.map_or(record.user(), |id| id | VIRTUAL_KEY),
        len: walk.map_or(0, |walk| walk.len),
        name,
    })
}
