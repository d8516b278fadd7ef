//! Why collections happened: for want of memory, or because somebody asked for them. Pure.

use crate::names::NameId;

/// A collection with its cause, from the JDK's recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collection {
    /// Its cause, as the JVM calls it: `System.gc()`.
    pub cause: NameId,
    /// How long it had all threads stand still.
    pub paused_ns: u64,
}

/// Requested collections, with the number of all collections of known cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// How many were asked for.
    pub asked: u64,
    /// How long all threads stood still for these.
    pub asked_ns: u64,
    /// How many there were.
    pub all: u64,
    /// How long all threads stood still for them.
    pub all_ns: u64,
}

impl Asked {
    pub(crate) fn add(&mut self, is_asked: bool, count: u64, ns: u64) {
        self.all = self.all.saturating_add(count);
        self.all_ns = self.all_ns.saturating_add(ns);
        if is_asked {
            self.asked = self.asked.saturating_add(count);
            self.asked_ns = self.asked_ns.saturating_add(ns);
        }
    }

    /// Whether they are most of what collections cost.
    #[must_use]
    pub fn is_most(&self) -> bool {
        let (asked, all) = match self.all_ns {
            0 => (self.asked, self.all),
            all_ns => (self.asked_ns, all_ns),
        };
        self.asked > 0 && asked >= all.div_ceil(2)
    }
}
