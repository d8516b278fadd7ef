//! What walks need to know of the process's libraries, published by the drainer.

use dwell_recorder::native::Modules;
use dwell_recorder::native::modules::CodeMap;
use dwell_recorder::sys::published::Published;
use dwell_walker::native::{NativeCode, Rule};
use std::ops::Range;
use std::sync::Arc;

/// Where native code is, and how it is unwound.
pub struct View {
    map: Arc<CodeMap>,
    /// Where methods are that were compiled ahead of time: libraries whose code is managed.
    ahead: Vec<Range<u64>>,
}

/// The view that walks use; none until the drainer has read the libraries' tables.
pub static VIEW: Published<View> = Published::new();

/// Makes the view known that `modules` are.
pub fn publish(modules: &Modules) {
    VIEW.replace(View {
        map: modules.map(),
        ahead: modules.ranges_of(is_ahead_of_time),
    });
}

/// Whether a view is known.
#[must_use]
pub fn is_known() -> bool {
    VIEW.read(|_| ()).is_some()
}

/// Whether the library of this name holds methods compiled ahead of time.
#[must_use]
pub fn is_ahead_of_time(name: &str) -> bool {
    name.ends_with(".dll.so") || name.ends_with(".exe.so")
}

/// What is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Native code, and its rule.
    Native(Rule),
    /// Code of Mono itself, and its rule.
    Mono(Rule),
    /// No library: methods, trampolines; or one with methods.
    Managed,
}

impl View {
    /// What is at `pc`. Safe in a handler.
    #[inline]
    #[must_use]
    pub fn at(&self, pc: u64) -> Place {
        let is_ahead = self.ahead.iter().any(|range| range.contains(&pc));
        match self.map.rule(pc) {
            Some(rule) if !is_ahead && self.map.is_vm(pc) => Place::Mono(rule),
            Some(rule) if !is_ahead => Place::Native(rule),
            _ => Place::Managed,
        }
    }
}
