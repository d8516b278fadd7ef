//! Names of native functions for people: demangled, without parameters, and without the addresses
//! that stand in for a name where a library has no symbols.

use std::borrow::Cow;

use cpp_demangle::{DemangleOptions, Symbol};

/// Stands for the name of a function that has no symbol.
pub const NO_SYMBOL: &str = "[no symbol]";
/// A longer name is left as it is: demangling may take long, and no compiler made it.
const MANGLED_MAX: usize = 4096;

/// The readable name and the remaining detail (see [`crate::Method::descriptor`]).
///
/// Functions without a symbol are recorded by address; each address would be a function of its own.
/// They are put together per library, and the address becomes the descriptor.
pub(crate) fn readable(name: &str) -> (Cow<'_, str>, &str) {
    if is_address(name) {
        return (Cow::Borrowed(NO_SYMBOL), name);
    }
    let readable = if name.len() > MANGLED_MAX {
        None
    } else {
        demangled(name)
    };
    (readable.map_or(Cow::Borrowed(name), Cow::Owned), "")
}

/// A function's name for people: demangled, without parameters, if it was mangled.
#[must_use]
pub fn readable_function(name: &str) -> String {
    readable(name).0.into_owned()
}

pub(crate) fn is_address(name: &str) -> bool {
    let digits = name.strip_prefix("0x").unwrap_or("");
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn demangled(name: &str) -> Option<String> {
    if !name.starts_with("_Z") && !name.starts_with("_R") {
        return None;
    }
    // The old mangling of Rust is valid C++ mangling too, but ends in a hash.
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return Some(format!("{rust:#}"));
    }
    // A clone of the compiler ("name.isra.0") is the same function to a reader.
    let whole = name.split('.').next()?;
    let options = DemangleOptions::new().no_params().no_return_type();
    let symbol = Symbol::new(whole.as_bytes()).ok()?;
    symbol
        .demangle_with_options(&options)
        .ok()
        .filter(|readable| !readable.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn demangles_both_languages() {
        for (name, readable_name) in [
            (
                "_ZN13CompileBroker20compiler_thread_loopEv",
                "CompileBroker::compiler_thread_loop",
            ),
            ("_ZL19thread_native_entryP6Thread", "thread_native_entry"),
            (
                "_ZN12PhaseChaitin16gather_lrg_masksEb.part.0",
                "PhaseChaitin::gather_lrg_masks",
            ),
            (
                "_ZN5dwell5drain4loop17h0123456789abcdefE",
                "dwell::drain::loop",
            ),
            ("_RNvC5dwell4main", "dwell::main"),
            ("read", "read"),
            ("_Znonsense", "_Znonsense"),
            ("finish_task_switch.isra.0", "finish_task_switch.isra.0"),
            ("", ""),
        ] {
            assert_eq!(readable(name), (Cow::Borrowed(readable_name), ""), "{name}");
        }
    }

    #[test]
    fn addresses_are_no_names() {
        assert_eq!(readable("0x4a26"), (Cow::Borrowed(NO_SYMBOL), "0x4a26"));
        for name in ["0x", "0xyz", "4a26", "0x4a26+8"] {
            assert_eq!(readable(name), (Cow::Borrowed(name), ""));
        }
    }

    #[test]
    fn very_long_names_are_left_alone() {
        let name = format!("_ZN{}E", "1a".repeat(10_000));
        assert_eq!(readable(&name).0, name);
    }

    proptest! {
        #[test]
        fn never_panics(name in "(_Z|_R|0x)?[\\x00-\\x7f]{0,200}") {
            let (readable, _) = readable(&name);
            prop_assert!(name.is_empty() || !readable.is_empty());
        }
    }
}
