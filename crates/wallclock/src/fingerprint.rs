//! The fingerprint of a thread's place: a few words that can be read in about 100 ns.

/// Hash of words that differ between places of one thread. Two equal fingerprints are mostly the
/// same place; samples check how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    words: u64,
    /// Whether the thread runs code of its own and does not wait.
    runs: bool,
    /// Whether only the kernel knows whether it waits.
    may_run: bool,
}

impl Fingerprint {
    /// The fingerprint with these words. `runs`: the thread runs code of its own and does not wait.
    #[must_use]
    pub fn of(words: impl IntoIterator<Item = u64>, runs: bool) -> Fingerprint {
        Fingerprint {
            words: words.into_iter().fold(0, mix),
            runs,
            may_run: false,
        }
    }

    /// The fingerprint of a thread that runs or is ready to run.
    #[must_use]
    pub fn running() -> Fingerprint {
        Fingerprint::of([u64::MAX], true)
    }

    /// The fingerprint of a thread that is ready to run after a wait.
    #[must_use]
    pub fn woken() -> Fingerprint {
        Fingerprint::of([u64::MAX - 1], true)
    }

    /// The fingerprint of a thread that was woken from this wait and has no processor yet. Its
    /// samples have a place of their own, as they lack the frames of the system call.
    #[must_use]
    pub fn after_wake_up(self) -> Fingerprint {
        self.with(u64::MAX)
    }

    /// The same for a thread of which only the kernel knows whether it waits. The caller adds the
    /// words of its system call.
    #[must_use]
    pub fn that_may_run(self, may_run: bool) -> Fingerprint {
        Fingerprint { may_run, ..self }
    }

    /// Whether only the kernel knows whether the thread waits.
    #[must_use]
    pub fn may_run(&self) -> bool {
        self.may_run
    }

    /// The fingerprint with another word added.
    #[must_use]
    pub fn with(self, word: u64) -> Fingerprint {
        Fingerprint {
            words: mix(self.words, word),
            ..self
        }
    }

    /// Whether the thread runs code of its own.
    #[must_use]
    pub fn runs(&self) -> bool {
        self.runs
    }

    pub(crate) fn word(&self) -> u64 {
        self.words
    }
}

/// Multiplication by the golden ratio (Knuth, volume 3, 6.4), folded after each word.
pub(crate) fn mix(mixed: u64, word: u64) -> u64 {
    let mixed = (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprint_depends_on_order_of_words() {
        let of = |words: [u64; 2]| Fingerprint::of(words, false);
        assert_eq!(of([1, 2]), of([1, 2]));
        assert_ne!(of([1, 2]), of([2, 1]));
        assert_eq!(of([1, 2]).with(3), Fingerprint::of([1, 2, 3], false));
    }
}
