//! The three kinds of tests, and how a test says which one it is. Pure.

use std::fmt;

/// How a test is run, and the meaning of its failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Deterministic by construction: the same result in each run.
    Exact,
    /// Something that must never happen in a real run: a crash, a hang, a wrong stack or context,
    /// a damaged file. Never repeated.
    Never,
    /// A statistical statement about a real run, with a chance of a false alarm that is derived
    /// where the test stands.
    Measured,
}

impl Kind {
    /// The kind of a Rust test, from its path such as `tests::measured_sums_are_right`: by the
    /// beginning of the last name, `never_` or `measured_`; all others are exact.
    #[must_use]
    pub fn of(path: &str) -> Kind {
        let name = path.rsplit("::").next().unwrap_or(path);
        if name.starts_with("measured_") {
            Kind::Measured
        } else if name.starts_with("never_") {
            Kind::Never
        } else {
            Kind::Exact
        }
    }

    /// Whether it is run alone on the machine, and repeated once if it fails.
    #[must_use]
    pub fn is_measured(self) -> bool {
        self == Kind::Measured
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Exact => "exact",
            Kind::Never => "never",
            Kind::Measured => "measured",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_name_says_the_kind() {
        assert_eq!(Kind::of("measured_sums"), Kind::Measured);
        assert_eq!(Kind::of("a::b::never_a_wrong_stack"), Kind::Never);
        assert_eq!(Kind::of("measured_module::plain"), Kind::Exact);
        assert_eq!(Kind::of("is_measured_here"), Kind::Exact);
        assert_eq!(Kind::of("nevertheless"), Kind::Exact);
    }
}
