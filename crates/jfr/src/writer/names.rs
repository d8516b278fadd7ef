//! Makes names safe for readers that parse them: the JDK's tools take a method's descriptor apart
//! without checking it. Nothing here knows the encoding.

use std::borrow::Cow;

/// A descriptor that the JDK's tools can parse: `descriptor` itself if it is well formed, otherwise
/// `()V` (a native function has no descriptor).
pub(crate) fn printable_descriptor(descriptor: &str) -> &str {
    if is_method_descriptor(descriptor) {
        descriptor
    } else {
        "()V"
    }
}

/// A class name that tools can take apart: `[kernel]` would be read as an array (arrays have no
/// methods of their own), and becomes `(kernel)`. The reader turns it back.
pub(crate) fn printable_class(class: &str) -> Cow<'_, str> {
    match class.strip_prefix('[') {
        Some(rest) => {
            let (rest, end) = rest
                .strip_suffix(']')
                .map_or((rest, ""), |rest| (rest, ")"));
            Cow::Owned(format!("({rest}{end}"))
        }
        None => Cow::Borrowed(class),
    }
}

/// The same for the class of an object, which may be that of arrays: these are called as in class
/// files (`[B`, `[Ljava/lang/String;`).
pub(crate) fn printable_object_class(class: &str) -> Cow<'_, str> {
    match class.starts_with('[') && skip_type(class) == Some("") {
        true => Cow::Borrowed(class),
        false => printable_class(class),
    }
}

fn is_method_descriptor(descriptor: &str) -> bool {
    let Some((parameters, result)) = descriptor
        .strip_prefix('(')
        .and_then(|rest| rest.rsplit_once(')'))
    else {
        return false;
    };
    let mut rest = parameters;
    while !rest.is_empty() {
        let Some(after) = skip_type(rest) else {
            return false;
        };
        rest = after;
    }
    result == "V" || skip_type(result) == Some("")
}

/// The text after the first field type of `text`.
fn skip_type(text: &str) -> Option<&str> {
    let element = text.trim_start_matches('[');
    let mut characters = element.chars();
    match characters.next()? {
        'B' | 'C' | 'D' | 'F' | 'I' | 'J' | 'S' | 'Z' => Some(characters.as_str()),
        'L' => {
            let (name, after) = characters.as_str().split_once(';')?;
            (!name.is_empty() && !name.contains(['(', ')', '['])).then_some(after)
        }
        _ => None,
    }
}

/// The package of a class name with slashes; `None` for the unnamed package and for names that are
/// not class names (`libjvm.so`, `[kernel]`, a path).
pub(crate) fn package(class: &str) -> Option<&str> {
    let (package, simple) = class.rsplit_once('/')?;
    let named =
        !package.is_empty() && !simple.is_empty() && !package.starts_with(['/', '[', '(', '.']);
    named.then_some(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_formed_descriptors_stay() {
        for good in [
            "()V",
            "(I)I",
            "([[JLjava/lang/String;Z)[Ljava/util/Map;",
            "(LÀ;)LÀ;",
        ] {
            assert_eq!(printable_descriptor(good), good);
        }
    }

    #[test]
    fn anything_else_becomes_the_empty_descriptor() {
        let bad = [
            "", "(", ")", "()", "(L)V", "(Lx)V", "(L;)V", "([)V", "(Q)V", "()VV", "V", "(V)V",
        ];
        for bad in bad.into_iter().chain(["(I)I)V", "()[V", "(Ljava", "(()V"]) {
            assert_eq!(printable_descriptor(bad), "()V", "{bad}");
        }
    }

    #[test]
    fn only_class_names_that_look_like_arrays_change() {
        for good in ["a/B", "", "(x)", "libjvm.so", "a[b]"] {
            assert_eq!(printable_class(good), good);
        }
        let bad = [
            ("[kernel]", "(kernel)"),
            ("[", "("),
            ("[x", "(x"),
            ("[]", "()"),
            ("[I", "(I"),
        ];
        for (bad, good) in bad {
            assert_eq!(printable_class(bad), good);
        }
    }

    #[test]
    fn array_classes_are_named_as_arrays() {
        for good in ["[B", "[[J", "[Ljava/lang/String;", "a/B", "[[La;"] {
            assert_eq!(printable_object_class(good), good);
        }
        for (bad, good) in [("[kernel]", "(kernel)"), ("[", "("), ("[BB", "(BB")] {
            assert_eq!(printable_object_class(bad), good);
        }
    }

    #[test]
    fn packages_are_found_only_in_class_names() {
        assert_eq!(package("java/lang/String"), Some("java/lang"));
        for none in [
            "Main",
            "libjvm.so",
            "/usr/lib/libc.so",
            "[kernel]",
            "[Ljava/lang/A;",
            "a/",
            "",
        ] {
            assert_eq!(package(none), None, "{none}");
        }
    }
}
