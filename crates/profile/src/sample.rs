//! Samples, the threads they were taken of, and the weight they stand for.

use crate::names::NameId;
use crate::tree::NodeId;

/// Index of a [`Thread`] in a profile.
pub type ThreadId = u32;
/// Index of a failure cause in a profile.
pub type CauseId = NameId;

/// A thread of the profiled program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The Java name, or the operating system's name where there is none.
    pub name: NameId,
    /// The operating system's number of the thread; 0 when unknown.
    pub os_tid: i64,
    /// The Java number of the thread; 0 when it is not a Java thread.
    pub java_tid: i64,
    /// Whether it is a virtual thread.
    pub is_virtual: bool,
}

/// Index of a [`Context`] in a profile.
pub type ContextId = u32;

/// What a thread worked for. Ids are 0 where there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Context {
    /// The trace.
    pub trace_id: u128,
    /// The span.
    pub span_id: u64,
    /// The first span of the trace in this process: the request.
    pub local_root_span_id: u64,
    /// The endpoint, also if it only became known when the request ended.
    pub endpoint: Option<NameId>,
    /// Names and values of labels.
    pub labels: Vec<(NameId, NameId)>,
}

/// One sample: what a thread was doing at a time, and how much of the measured quantity it stands
/// for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// The thread; the virtual one where one was mounted.
    pub thread: ThreadId,
    /// The stack.
    pub node: NodeId,
    /// How much the sample stands for: nanoseconds, or 1 in a profile that counts samples.
    pub weight: u64,
    /// Why the stack is not whole, if it is not.
    pub failure: Option<CauseId>,
    /// What the thread worked for, if it said.
    pub context: Option<ContextId>,
}

/// Looks at a thread that did not run and always saw the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The first look, in nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// From there to the last one.
    pub duration_ns: u64,
    /// The thread; the virtual one where one was mounted.
    pub thread: ThreadId,
    /// The stack.
    pub node: NodeId,
    /// What the thread waited for.
    pub cause: CauseId,
    /// The wall-clock time that the looks stand for.
    pub weight_ns: u64,
    /// How many looks there were.
    pub count: u64,
    /// What the thread worked for, if it said.
    pub context: Option<ContextId>,
    /// On what the thread waited, in words.
    pub detail: Option<NameId>,
    /// Who had what it waited for.
    pub owner: Option<ThreadId>,
    /// Where that one was, if it waited too.
    pub owner_node: Option<NodeId>,
}

/// A sum of samples' weights that remembers how certain it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weight {
    /// Sum of the weights.
    pub sum: u64,
    /// Sum of their squares.
    pub squares: f64,
    /// Number of samples.
    pub samples: u64,
}

impl Weight {
    /// The weight of one sample.
    pub fn of(weight: u64) -> Weight {
        Weight {
            sum: weight,
            squares: (weight as f64).powi(2),
            samples: 1,
        }
    }

    /// The standard error of the sum: `sqrt(sum of w^2)`.
    ///
    /// That is the error of a Poisson process whose events carry the weights w: how many samples
    /// hit this row is chance, each hit is worth its weight. Samples are taken as independent; runs
    /// of one thread that last longer than the sampling interval are not, so this is a first
    /// estimate and a little too small for such rows.
    pub fn standard_error(&self) -> f64 {
        self.squares.sqrt()
    }

    /// This weight as a share of `whole`, 0 when `whole` is nothing.
    pub fn share(&self, whole: &Weight) -> f64 {
        if whole.sum == 0 {
            0.0
        } else {
            self.sum as f64 / whole.sum as f64
        }
    }

    /// The standard error of [`share`](Weight::share), where this weight is part of `whole`.
    ///
    /// With p the share, S the whole's sum, A the squares inside the part and B those outside:
    /// `sqrt((1-p)^2 A + p^2 B) / S`, the ratio estimator's first-order error. For n equal weights
    /// this is the binomial `sqrt(p (1-p) / n)`, and 0 for a part that is the whole.
    pub fn share_error(&self, whole: &Weight) -> f64 {
        if whole.sum == 0 {
            return 0.0;
        }
        let share = self.share(whole);
        let outside = (whole.squares - self.squares).max(0.0);
        let variance = (1.0 - share).powi(2) * self.squares + share.powi(2) * outside;
        variance.sqrt() / whole.sum as f64
    }
}

impl std::ops::AddAssign<&Weight> for Weight {
    fn add_assign(&mut self, other: &Weight) {
        self.sum = self.sum.saturating_add(other.sum);
        self.squares += other.squares;
        self.samples += other.samples;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(weights: &[u64]) -> Weight {
        let mut sum = Weight::default();
        for &weight in weights {
            sum += &Weight::of(weight);
        }
        sum
    }

    #[test]
    fn error_of_a_sum_is_the_root_of_the_squares() {
        assert_eq!(sum(&[3, 4]).standard_error(), 5.0);
        assert_eq!(Weight::default().standard_error(), 0.0);
    }

    #[test]
    fn error_of_a_share_is_binomial_for_equal_weights() {
        let (part, whole) = (sum(&[10; 25]), sum(&[10; 100]));
        assert_eq!(part.share(&whole), 0.25);
        let binomial = (0.25f64 * 0.75 / 100.0).sqrt();
        assert!((part.share_error(&whole) - binomial).abs() < 1e-12);
        assert_eq!(whole.share_error(&whole), 0.0);
        assert_eq!(part.share(&Weight::default()), 0.0);
        assert_eq!(part.share_error(&Weight::default()), 0.0);
    }

    #[test]
    fn sums_do_not_overflow() {
        assert_eq!(sum(&[u64::MAX, 5]).sum, u64::MAX);
    }
}
