//! Data about the process's libraries that walks need, published by the drainer.

use dwell_recorder::native::Modules;
use dwell_recorder::native::modules::CodeMap;
use dwell_recorder::sys::published::Published;
use dwell_walker::native::{NativeCode, Rule};
use std::ops::Range;
use std::sync::Arc;

/// Native code and its unwind rules.
pub struct View {
    map: Arc<CodeMap>,
    /// Address ranges of methods that were compiled ahead of time: libraries with managed code.
    ahead: Vec<Range<u64>>,
}

/// The view for walks; none until the drainer has read the libraries' tables.
pub static VIEW: Published<View> = Published::new();

/// Publishes the view of `modules`.
pub fn publish(modules: &Modules) {
    VIEW.replace(View {
        map: modules.map(),
        ahead: modules.ranges_of(is_ahead_of_time),
    });
}

/// Whether a view is published.
#[must_use]
pub fn is_known() -> bool {
    VIEW.read(|_| ()).is_some()
}

/// Whether the library of this name holds methods compiled ahead of time.
#[must_use]
pub fn is_ahead_of_time(name: &str) -> bool {
    name.ends_with(".dll.so") || name.ends_with(".exe.so")
}

/// The kind of code at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Native code, and its rule.
    Native(Rule),
    /// Code of Mono itself, and its rule.
    Mono(Rule),
    /// No library (methods, trampolines), or one with methods.
    Managed,
}

impl View {
    /// The kind of code at `pc`. Safe in a handler.
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
