//! Profiles of other tools, read into the model of all reports: pprof, OTLP and collapsed stacks.
//!
//! All have sums of samples, and only OTLP may have their times. A warning of the profile names
//! missing data.

mod collapsed_stacks;
mod memory_and_locks;
mod otlp_file;
mod pprof_file;
mod sums_and_threads;

use dwell_profile::{Builder, FrameId, FrameKind, NodeId, Profile, Sample};

/// The reason why a file in a known format is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It has nothing to report.
    NoTime {
        /// The format's name.
        format: &'static str,
        /// The types of values that it has.
        types: Vec<String>,
    },
    /// Its tables would need too much memory.
    TooLarge,
    /// It is not whole.
    Damaged,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refused::NoTime { format, types } if types.is_empty() => {
                write!(f, "has no profile ({format})")
            }
            Refused::NoTime { format, types } => write!(
                f,
                "has no time, samples, memory or locks ({format}), only {}",
                types.join(", ")
            ),
            Refused::TooLarge => {
                let size = MESSAGE_MAX >> 20;
                write!(
                    f,
                    "pprof and OTLP files are read up to {size} MiB (unpacked)"
                )
            }
            Refused::Damaged => f.write_str(
                "is damaged or cut off, or in an unknown format; pprof and OTLP files must be \
                 whole: copy it again",
            ),
        }
    }
}

impl std::error::Error for Refused {}

/// Limit for a protobuf message: an empty sample has 2 bytes in the file and 80 in memory.
const MESSAGE_MAX: usize = 256 << 20;

/// The profile in an unpacked file; `None` if it is neither pprof, OTLP nor collapsed stacks.
///
/// # Errors
///
/// If a pprof or OTLP file has nothing to report, is too large or damaged.
pub fn imported(bytes: &[u8]) -> Result<Option<Profile>, Refused> {
    let is_small = bytes.len() <= MESSAGE_MAX;
    if is_small && let Some(profile) = pprof_file::read(bytes)? {
        return Ok(Some(profile));
    }
    if is_small && let Some(profile) = otlp_file::read(bytes)? {
        return Ok(Some(profile));
    }
    match collapsed_stacks::read(bytes) {
        None if is_message(bytes) && is_small => Err(Refused::Damaged),
        None if is_message(bytes) => Err(Refused::TooLarge),
        profile => Ok(profile),
    }
}

/// Whether a file that is not read may be pprof or OTLP: it begins with the first or second field,
/// and is no text.
fn is_message(bytes: &[u8]) -> bool {
    let is_control = |byte: &u8| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r');
    let mut rest = bytes.iter().take(1 << 16).skip(1);
    matches!(bytes.first(), Some(0x0a | 0x12)) && rest.any(is_control)
}

/// Marks of async-profiler at the ends of frames.
const MARKS: [(&str, FrameKind); 5] = [
    ("_[j]", FrameKind::C2),
    ("_[i]", FrameKind::Inlined),
    ("_[k]", FrameKind::Kernel),
    ("_[0]", FrameKind::Interpreted),
    ("_[1]", FrameKind::C1),
];
/// Endings of the source files of languages that are compiled before the program runs.
const NATIVE_SOURCES: [&str; 12] = [
    "c", "cc", "cpp", "cxx", "h", "hh", "hpp", "rs", "s", "S", "asm", "zig",
];
/// Frames of a deeper stack are left out, the outermost first.
const DEPTH_MAX: usize = 4096;

/// A function of another tool. Absent texts are empty, and an absent line is 0.
#[derive(Clone, Copy, Debug, Default)]
struct Function<'f> {
    /// `class.name`, or `library.so.name`.
    text: &'f str,
    library: &'f str,
    source: &'f str,
    line: u32,
    /// The kind, if the file says it.
    kind: Option<FrameKind>,
}

impl Function<'_> {
    /// The same, compiled into another function: only code of the runtime has this as its kind.
    fn inlined(self, is_inlined: bool) -> Self {
        let kind = self
            .kind
            .unwrap_or_else(|| kind_of(self.text, self.library, self.source));
        match kind {
            FrameKind::C2 if is_inlined => Self {
                kind: Some(FrameKind::Inlined),
                ..self
            },
            _ => self,
        }
    }

    /// The frame in the model.
    fn frame(self, builder: &mut Builder) -> FrameId {
        let mark = MARKS.iter().find(|(mark, _)| self.text.ends_with(mark));
        let text = mark.map_or(self.text, |(mark, _)| {
            self.text.strip_suffix(mark).unwrap_or(self.text)
        });
        let (text, descriptor) = signature(text);
        let text = dotted(text, self.source);
        let kind = mark
            .map(|(_, kind)| *kind)
            .or(self.kind)
            .unwrap_or_else(|| kind_of(&text, self.library, self.source));
        let method = match kind {
            _ if text.starts_with('[') => builder.method("", &text, ""),
            FrameKind::Native | FrameKind::Kernel => {
                let (library, name) = native_name(&text, self.library, kind);
                builder.method(library, name, "")
            }
            _ => {
                let (class, name) = managed_name(&text);
                let library = Some(self.library).filter(|library| !library.is_empty());
                builder.method_of(library, class, name, &descriptor)
            }
        };
        builder.frame(method, self.line, kind)
    }
}

/// The node of a stack, innermost frame first, cut to [`DEPTH_MAX`] frames.
fn add_stack(builder: &mut Builder, mut frames: Vec<FrameId>) -> NodeId {
    if frames.len() > DEPTH_MAX {
        frames.truncate(DEPTH_MAX);
        frames.push(builder.marker("[truncated]", FrameKind::Other));
    }
    builder.stack(frames.into_iter().rev())
}

/// Adds `count` samples with the weight of `sample` together.
fn add_samples(builder: &mut Builder, sample: Sample, count: u64) {
    let (mut count, mut weight) = (count, sample.weight);
    while count > 0 {
        let some = count.min(u64::from(u32::MAX));
        let part = match some == count {
            true => weight,
            false => (u128::from(weight) * u128::from(some) / u128::from(count)) as u64,
        };
        builder.sample(Sample {
            weight: part,
            count: some as u32,
            ..sample
        });
        (count, weight) = (count - some, weight - part);
    }
}

/// The name and the number in async-profiler's name of a thread, `[NAME tid=123]`.
fn name_and_id(text: &str) -> Option<(&str, i64)> {
    let text = text.strip_prefix('[')?.strip_suffix(']')?;
    let (name, id) = text.rsplit_once("tid=")?;
    Some((name.trim_end(), id.parse().unwrap_or(0)))
}

/// A method without its signature, and the signature: async-profiler has `|` in place of `;`.
fn signature(text: &str) -> (&str, String) {
    let (name, rest) = text.split_at(text.find('(').unwrap_or(text.len()));
    let (of, result) = rest.split_once(')').unwrap_or(("", ""));
    let is_type = |text: &str| {
        let text = text.trim_start_matches('[');
        let is_class = text.starts_with('L') && text.ends_with(['|', ';']);
        is_class || matches!(text, "V" | "B" | "C" | "D" | "F" | "I" | "J" | "S" | "Z")
    };
    match is_type(result) && !of.contains([' ', '*']) {
        true => (name, rest.replace('|', ";")),
        false => (text, String::new()),
    }
}

/// Java's internal names have slashes in place of dots, as paths and Go's packages do.
fn dotted(text: &str, source: &str) -> String {
    let path = text.split([' ', '(', '<', '[']).next().unwrap_or("");
    let package = path.rsplit_once('/').map_or("", |(package, _)| package);
    let is_go = source.ends_with(".go") || text.contains(".(");
    match package.is_empty() || package.contains('.') || path.starts_with('/') || is_go {
        true => text.to_owned(),
        false => {
            let (path, rest) = text.split_at(path.len());
            format!("{}{rest}", path.replace('/', "."))
        }
    }
}

/// The kind of a function by its name, library and source file. Other tools do not report which
/// compiler made the code.
fn kind_of(name: &str, library: &str, source: &str) -> FrameKind {
    let is_kernel = |text: &str| text.starts_with("[kernel") || text.ends_with(".ko");
    let is_native = |text: &str| text.ends_with(".so") || text.contains(".so.");
    if is_kernel(library) || is_kernel(name) {
        return FrameKind::Kernel;
    }
    if is_native(library) || is_native(name) || name.contains(".so.") {
        return FrameKind::Native;
    }
    if name.starts_with("[stub]") {
        return FrameKind::Stub;
    }
    // `libjvm.so.JavaThread::run` and C++ without a library; Java and Go have a dot. Functions of
    // scripts have a source file instead.
    let ending = source.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_script = !ending.is_empty() && !NATIVE_SOURCES.contains(&ending);
    let is_cpp = name.contains("::") || !name.contains('.');
    match is_cpp && !is_script {
        true => FrameKind::Native,
        false => FrameKind::C2,
    }
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
