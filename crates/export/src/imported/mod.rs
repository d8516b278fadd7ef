//! Profiles of other tools, read into the model of all reports: pprof and collapsed stacks.
//!
//! Both have sums of samples without their times. A warning of the profile names missing data.

mod collapsed_stacks;
mod pprof_file;

use dwell_profile::{Builder, FrameId, FrameKind, Profile};

/// The reason why a file in a known format has nothing to report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoTime {
    /// The types of values that it has.
    pub types: Vec<String>,
}

impl std::fmt::Display for NoTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let types = self.types.join(", ");
        write!(
            f,
            "a pprof file without CPU time, wall time or samples: it has {types}"
        )
    }
}

impl std::error::Error for NoTime {}

/// The profile in an unpacked file; `None` if it is neither pprof nor collapsed stacks.
///
/// # Errors
///
/// If a pprof file has no time.
pub fn imported(bytes: &[u8]) -> Result<Option<Profile>, NoTime> {
    match pprof_file::read(bytes)? {
        Some(profile) => Ok(Some(profile)),
        None => Ok(collapsed_stacks::read(bytes)),
    }
}

/// The kind of a function by its name and library. Other tools do not report which compiler made
/// the code.
fn kind_of(name: &str, library: &str) -> FrameKind {
    let is_kernel = |text: &str| text.starts_with("[kernel") || text.ends_with(".ko");
    let is_native = |text: &str| text.ends_with(".so") || text.contains(".so.");
    if is_kernel(library) || is_kernel(name) {
        return FrameKind::Kernel;
    }
    // `libjvm.so.JavaThread::run` and C++ without a library; Java and Go have a dot.
    let is_cpp = name.contains("::") || !name.contains('.');
    match is_native(library) || is_native(name) || name.contains(".so.") || is_cpp {
        true => FrameKind::Native,
        false => FrameKind::C2,
    }
}

/// The frame of a function `class.name`, or `library.so.name`.
fn frame(builder: &mut Builder, text: &str, library: &str, line: u32, kind: FrameKind) -> FrameId {
    let method = match kind {
        _ if text.starts_with('[') => builder.method("", text, ""),
        FrameKind::Native | FrameKind::Kernel => {
            let (library, name) = native_name(text, library, kind);
            builder.method(library, name, "")
        }
        _ => {
            let (class, name) = managed_name(text);
            let library = Some(library).filter(|library| !library.is_empty());
            builder.method_of(library, class, name, "")
        }
    };
    builder.frame(method, line, kind)
}

/// The library and the name of a native function.
fn native_name<'t>(text: &'t str, library: &'t str, kind: FrameKind) -> (&'t str, &'t str) {
    let rest = text
        .strip_prefix(library)
        .and_then(|it| it.strip_prefix('.'));
    if let Some(name) = rest.filter(|_| !library.is_empty()) {
        return (library, name);
    }
    // `libc.so.6.read`: versions are digits and dots.
    if let Some(at) = text.find(".so.") {
        let digits = text.get(at + 4..).unwrap_or("");
        let len = digits
            .find(|c: char| c != '.' && !c.is_ascii_digit())
            .unwrap_or(0);
        let (library, name) = text.split_at(at + 4 + len);
        return (library.trim_end_matches('.'), name);
    }
    match kind {
        FrameKind::Kernel if library.is_empty() => ("[kernel]", text),
        _ => (library, text),
    }
}

/// The class and the name of a method. Type arguments and parameters may have dots as well.
fn managed_name(text: &str) -> (&str, &str) {
    // Go has receivers in parentheses, `http.(*conn).serve`; Java has `C.<init>`.
    let end = match text.contains(".(") {
        true => text.len(),
        false => text.find(['(', '<', '[', ' ']).unwrap_or(text.len()),
    };
    let dot = text.get(..end).and_then(|path| path.rfind('.'));
    match dot {
        Some(dot) => (
            text.get(..dot).unwrap_or(""),
            text.get(dot + 1..).unwrap_or(""),
        ),
        None => ("", text),
    }
}

#[cfg(test)]
mod tests;
