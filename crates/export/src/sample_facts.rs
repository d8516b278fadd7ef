//! What formats say of a sample besides its stack: its thread, its request, and what it waited for.

use dwell_profile::{Frame, FrameKind, Profile};

use crate::typed_values::Key;

/// What is known of a sample. Texts are empty and numbers 0 where something is not known.
#[derive(Debug, Default)]
pub struct Facts<'p> {
    pub thread: &'p str,
    /// The operating system's number of the thread, or Java's where there is none: of a virtual
    /// thread.
    pub thread_id: i64,
    pub endpoint: &'p str,
    pub trace_id: u128,
    pub span_id: u64,
    /// Names and values that the program set.
    pub labels: Vec<(&'p str, &'p str)>,
    pub cause: &'p str,
    pub detail: &'p str,
    pub owner: &'p str,
}

impl<'p> Facts<'p> {
    /// What a profile knows.
    pub fn of(profile: &'p Profile, key: &Key<'p>) -> Facts<'p> {
        let text = |name| profile.names().text(name);
        let thread = profile.threads().get(key.thread as usize);
        let mut facts = Facts {
            thread: profile.thread_name(key.thread),
            thread_id: thread.map_or(0, |it| match it.os_tid {
                0 => it.java_tid,
                os_tid => os_tid,
            }),
            cause: key.cause.unwrap_or(""),
            detail: key.detail.map_or("", text),
            owner: key.owner.map_or("", |owner| profile.thread_name(owner)),
            ..Facts::default()
        };
        let Some(id) = key.context else {
            return facts;
        };
        facts.endpoint = profile.endpoint(id).unwrap_or("");
        if let Some(context) = profile.contexts().get(id as usize) {
            facts.trace_id = context.trace_id;
            facts.span_id = context.span_id;
            let labels = context.labels.iter();
            let labels = labels.map(|(name, value)| (text(*name), text(*value)));
            facts.labels = labels.filter(|(name, _)| !name.is_empty()).collect();
        }
        facts
    }
}

/// The jar, folder or library that a frame's code is from; empty if that is not known.
pub fn library<'p>(profile: &'p Profile, frame: &Frame) -> &'p str {
    let text = |name| profile.names().text(name);
    let Some(method) = profile.methods().get(frame.method as usize) else {
        return "";
    };
    match method.library {
        Some(library) => text(library),
        // Of functions outside of Java the library stands in the place of the class.
        None if is_java(profile, frame) => "",
        None => text(method.class),
    }
}

/// Whether a frame is of a method of Java, be it a native one.
pub fn is_java(profile: &Profile, frame: &Frame) -> bool {
    let method = profile.methods().get(frame.method as usize);
    let has_descriptor =
        method.is_some_and(|it| profile.names().text(it.descriptor).starts_with('('));
    frame.kind.is_java() || has_descriptor && frame.kind != FrameKind::Kernel
}
