//! Parses Mono's names of methods: `(wrapper KIND) Space.Class/Nested<T>:Method<U> (Args)`. Pure.

use dwell_recorder::record::names::{Name, Origin};

/// The kind of a method's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A method of the program or of a library.
    Plain = 0,
    /// The wrapper through which managed code calls native code.
    ToNative = 1,
    /// A wrapper through which native code calls managed code: the frames below are native.
    FromNative = 2,
}

impl Kind {
    /// The kind with this number.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Kind {
        match bits {
            1 => Kind::ToNative,
            2 => Kind::FromNative,
            _ => Kind::Plain,
        }
    }
}

/// The wrapper's kind, and the name without it.
fn wrapper(full: &str) -> (Option<&str>, &str) {
    full.strip_prefix("(wrapper ")
        .and_then(|rest| rest.split_once(") "))
        .map_or((None, full), |(kind, rest)| (Some(kind), rest))
}

/// The kind of code of a method with this full name.
#[must_use]
pub fn kind(full: &str) -> Kind {
    match wrapper(full).0 {
        Some("managed-to-native") => Kind::ToNative,
        Some("native-to-managed" | "runtime-invoke") => Kind::FromNative,
        _ => Kind::Plain,
    }
}

/// The origin of an image's methods, by its name and its file; none if both are unknown. The file
/// has the form of a jar's location in recordings.
#[must_use]
pub fn origin(image: &str, file: &str) -> Option<Origin> {
    let location = match file.starts_with('/') {
        true => format!("file:{file}"),
        false => String::new(),
    };
    let origin = Origin {
        module: image.to_owned(),
        location,
    };
    origin.is_known().then_some(origin)
}

/// The name in the form of recordings: class with slashes for its dots, method, arguments.
#[must_use]
pub fn name(full: &str) -> Name {
    let (wrapper, rest) = wrapper(full);
    let (path, arguments) = match rest.rsplit_once(" (") {
        Some((path, arguments)) => (path, arguments.strip_suffix(')').unwrap_or(arguments)),
        None => (rest, ""),
    };
    // Not a colon within the arguments of a generic class.
    let (class, method) = path.split_once(':').unwrap_or(("", path));
    let method = method.strip_prefix(':').unwrap_or(method);
    let mut name = method.to_owned();
    if let Some(wrapper) = wrapper {
        name.push_str(&format!(" [{wrapper}]"));
    }
    Name {
        class: class.replace('.', "/"),
        name,
        descriptor: format!("({arguments})"),
        modifiers: 0,
        origin: None,
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]
mod tests {
    use super::*;

    fn parts(full: &str) -> (String, String, String) {
        let name = name(full);
        (name.class, name.name, name.descriptor)
    }

    fn expected(class: &str, name: &str, descriptor: &str) -> (String, String, String) {
        (class.into(), name.into(), descriptor.into())
    }

    #[test]
    fn names_are_parsed() {
        assert_eq!(
            parts("System.String:Concat (string,string)"),
            expected("System/String", "Concat", "(string,string)")
        );
        assert_eq!(
            parts("Space.Outer/Inner:.ctor ()"),
            expected("Space/Outer/Inner", ".ctor", "()")
        );
        assert_eq!(
            parts("(wrapper managed-to-native) System.Math:Sin (double)"),
            expected("System/Math", "Sin [managed-to-native]", "(double)")
        );
        assert_eq!(parts("odd"), expected("", "odd", "()"));
        assert_eq!(parts(""), expected("", "", "()"));
    }

    #[test]
    fn image_origin_includes_its_file() {
        let told = |image: &str, file: &str| {
            origin(image, file).map(|origin| (origin.module, origin.location))
        };
        let expected = ("Work".into(), "file:/app/Work.exe".into());
        assert_eq!(told("Work", "/app/Work.exe"), Some(expected));
        assert_eq!(told("Made", "Made"), Some(("Made".into(), String::new())));
        assert_eq!(told("", ""), None);
    }

    #[test]
    fn kinds_are_those_of_wrappers() {
        assert_eq!(kind("A:B ()"), Kind::Plain);
        assert_eq!(
            kind("(wrapper alloc) object:AllocSmall (intptr,intptr)"),
            Kind::Plain
        );
        assert_eq!(kind("(wrapper managed-to-native) A:B ()"), Kind::ToNative);
        assert_eq!(
            kind("(wrapper runtime-invoke) <Module>:x (a)"),
            Kind::FromNative
        );
        assert_eq!(kind("(wrapper native-to-managed) A:B ()"), Kind::FromNative);
        for kind in [Kind::Plain, Kind::ToNative, Kind::FromNative] {
            assert_eq!(Kind::from_bits(kind as u32), kind);
        }
    }
}
