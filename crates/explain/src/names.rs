//! Patterns for names of methods: tables of rules are made of them.

use dwell_profile::{MethodId, Profile};

/// Whether `full`, as `package.Class.method`, is like `pattern`: `*` stands for anything.
fn is_like(pattern: &str, full: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == full,
        // The usual case first: it costs least.
        Some((head, "")) => full.starts_with(head),
        Some(_) => dwell_profile::matches(pattern, full),
    }
}

/// The methods that some patterns name.
pub(crate) struct Set {
    has: Vec<bool>,
    is_empty: bool,
}

impl Set {
    pub(crate) fn new(profile: &Profile, patterns: &[&str]) -> Set {
        let methods = profile.methods().iter().map(|method| {
            let class = profile.names().text(method.class);
            let full = format!("{class}.{}", profile.names().text(method.name));
            patterns.iter().any(|pattern| is_like(pattern, &full))
        });
        let has: Vec<bool> = methods.collect();
        Set {
            // Asked for every stack, so it is not searched for each time.
            is_empty: !has.contains(&true),
            has,
        }
    }

    pub(crate) fn has(&self, method: MethodId) -> bool {
        self.has.get(method as usize) == Some(&true)
    }

    /// Whether no method of the profile is named.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        assert!(is_like(
            "java.lang.String.format",
            "java.lang.String.format"
        ));
        assert!(!is_like(
            "java.lang.String.format",
            "java.lang.String.formatted"
        ));
        assert!(is_like("java.util.regex.*", "java.util.regex.Matcher.find"));
        assert!(is_like(
            "libjvm.so.*fill_in*",
            "libjvm.so.Throwable::fill_in_stack"
        ));
        assert!(!is_like("libjvm.so.*fill_in*", "libc.so.fill_in_stack"));
    }
}
