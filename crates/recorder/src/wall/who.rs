//! Whom a look tells of beside the thread that waits: who has what it waits for, and which logical
//! thread is on it.

use super::look::{Kernel, walk_holder};
use crate::looks::shelf::{Note, Notes};
use crate::looks::threads::{Holder, Threads};
use crate::runtime::{Looks, Runtime};
use crate::threads::VIRTUAL_KEY;
use dwell_walker::Frame;

/// A thread that a look tells of.
#[derive(Debug)]
pub struct Who {
    /// The thread.
    pub key: u64,
    /// How many frames tell where it is.
    pub len: usize,
    /// Of a logical one, its name if that can be told.
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

/// The thread that has what is waited for; `frames` get where it is, if it waits as well.
pub fn holder<R: Runtime, L: Looks<R>>(
    looks: &L,
    (kernel, threads): (&Kernel, &Threads),
    claim: &L::Claim,
    frames: &mut [Frame],
) -> Option<Who> {
    let (place, is_platform) = match looks.holder(claim, threads)? {
        // Where it is, is not looked for.
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
