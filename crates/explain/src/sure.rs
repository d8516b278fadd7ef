//! The confidence in a finding.

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sure {
    /// A hint: worth a look.
    Low,
    /// The data fit, but another reading is possible.
    Medium,
    /// The recording shows it.
    High,
}

impl Sure {
    /// A word for people.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Sure::Low => "low",
            Sure::Medium => "medium",
            Sure::High => "high",
        }
    }
}
