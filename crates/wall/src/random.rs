//! Random numbers: one word of state, good enough to choose threads by, not for other uses.

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// splitmix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Numbers that depend on the seed only.
    #[must_use]
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Any word.
    pub const fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        let value = self.0;
        let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A part of one: at least 0, and less than 1.
    pub fn part(&mut self) -> f64 {
        const BITS: u32 = f64::MANTISSA_DIGITS;
        (self.word() >> (64 - BITS)) as f64 / (1u64 << BITS) as f64
    }

    /// A number below `end`, each as likely as the others; 0 if `end` is 0.
    ///
    /// The upper half of a product. Values that would make some numbers likelier are thrown away
    /// (D. Lemire, "Fast Random Integer Generation in an Interval", 2019).
    pub const fn below(&mut self, end: u64) -> u64 {
        if end == 0 {
            return 0;
        }
        let unfair = end.wrapping_neg() % end;
        loop {
            let product = self.word() as u128 * end as u128;
            if product as u64 >= unfair {
                return (product >> 64) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_below_the_end() {
        let mut random = Random::new(1);
        assert_eq!(random.below(0), 0);
        for end in [1, 2, 3, 7, 1000, u64::MAX] {
            for _ in 0..1000 {
                assert!(random.below(end) < end);
            }
        }
    }

    #[test]
    fn every_number_is_as_likely() {
        const ENDS: u64 = 6;
        const DRAWS: u64 = 600_000;
        let mut random = Random::new(7);
        let mut counts = [0u64; ENDS as usize];
        for _ in 0..DRAWS {
            counts[random.below(ENDS) as usize] += 1;
        }
        // Chi-square with 5 degrees of freedom: mean 5, and 35.9 is exceeded once in a million.
        let expected = (DRAWS / ENDS) as f64;
        let chi: f64 = counts
            .iter()
            .map(|n| (*n as f64 - expected).powi(2) / expected)
            .sum();
        assert!(chi < 35.9, "{chi} {counts:?}");
    }
}
