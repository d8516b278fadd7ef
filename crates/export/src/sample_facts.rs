//! The facts of a sample that formats have besides its stack: thread, request, and cause of
//! waiting.

use dwell_profile::{Frame, FrameKind, MethodId, Profile};

use crate::typed_values::Key;

/// Facts of a sample. A text is empty, and a number 0, if it is unknown.
#[derive(Debug, Default)]
pub struct Facts<'p> {
    pub thread: &'p str,
    /// The operating system's id of the thread, or Java's id for a virtual thread.
    pub thread_id: i64,
    pub endpoint: &'p str,
    pub trace_id: u128,
    pub span_id: u64,
    /// Labels set by the program.
    pub labels: Vec<(&'p str, &'p str)>,
    pub cause: &'p str,
    pub detail: &'p str,
    pub owner: &'p str,
}

impl<'p> Facts<'p> {
    /// The facts in a profile.
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

/// The name of a function without one.
pub const UNNAMED: &str = "[unnamed]";

/// The name of a method.
pub fn function_name(profile: &Profile, method: MethodId) -> String {
    let name = profile.method_name(method);
    if name.is_empty() {
        UNNAMED.to_owned()
    } else {
        name
    }
}

/// The jar, folder or library of a frame's code; empty if unknown.
pub fn library<'p>(profile: &'p Profile, frame: &Frame) -> &'p str {
    let text = |name| profile.names().text(name);
    let Some(method) = profile.methods().get(frame.method as usize) else {
        return "";
    };
    match method.library {
        Some(library) => text(library),
        // Outside of Java, the library takes the place of the class.
        None if is_java(profile, frame) => "",
        None => text(method.class),
    }
}

/// Whether a frame is a Java method, including native methods. These have a descriptor, but so have
/// functions of libraries in recordings, for readers that expect one: their class is a file's name.
pub fn is_java(profile: &Profile, frame: &Frame) -> bool {
    if frame.kind != FrameKind::Native {
        return frame.kind.is_java();
    }
    profile
        .methods()
        .get(frame.method as usize)
        .is_some_and(|method| {
            let class = profile.names().text(method.class);
            let is_library = class.contains(".so") || class.starts_with('[');
            profile.names().text(method.descriptor).starts_with('(') && !is_library
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::Builder;

    #[test]
    fn functions_of_libraries_are_not_java_despite_descriptors() {
        let mut builder = Builder::default();
        let mut frame = |class, kind| {
            let method = builder.method(class, "f", "()V");
            builder.frame(method, 0, kind)
        };
        let frames = [
            frame("a.B", FrameKind::C2),
            frame("java.lang.Thread", FrameKind::Native),
            frame("libc.so.6", FrameKind::Native),
            frame("[vdso]", FrameKind::Native),
            frame("libjvm.so", FrameKind::Vm),
            frame("[stub]", FrameKind::Stub),
            frame("[kernel]", FrameKind::Kernel),
        ];
        let profile = builder.finish();
        let found = frames.map(|id| is_java(&profile, &profile.frames()[id as usize]));
        assert_eq!(found, [true, true, false, false, false, false, false]);
    }
}
