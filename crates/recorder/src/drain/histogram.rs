//! Quantiles of the histogram of handler times. Pure.

use dwell_signal::{HISTOGRAM_BUCKETS, bucket_end_ns};

type Histogram = [u64; HISTOGRAM_BUCKETS];

/// The counts between two snapshots.
#[must_use]
pub fn since(now: &Histogram, before: &Histogram) -> Histogram {
    let mut out = *now;
    for (count, old) in out.iter_mut().zip(before) {
        *count = count.saturating_sub(*old);
    }
    out
}

/// An estimate of the CPU time of `handlers` handlers: `worked` of them ran without an
/// interruption and took this long in total. The others are assumed to have taken as long, except
/// for the interruption.
#[must_use]
pub fn cpu_ns(handlers: u64, worked: (u64, u64)) -> u64 {
    let each = worked.1 as f64 / worked.0.max(1) as f64;
    (handlers as f64 * each) as u64
}

/// The upper bound, in ns, of the bucket that holds the quantile; 0 if the histogram is empty.
#[must_use]
pub fn quantile(histogram: &Histogram, share: f64) -> u64 {
    let total: u64 = histogram.iter().sum();
    let rank = ((total as f64 * share).ceil() as u64).clamp(1, total.max(1));
    let mut seen = 0;
    for (bucket, count) in histogram.iter().enumerate() {
        seen += count;
        if seen >= rank {
            return bucket_end_ns(bucket);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_bucket_bounds() {
        let mut histogram = [0; HISTOGRAM_BUCKETS];
        assert_eq!(quantile(&histogram, 0.5), 0);
        histogram[50] = 99;
        histogram[100] = 1;
        assert_eq!(quantile(&histogram, 0.5), bucket_end_ns(50));
        assert_eq!(quantile(&histogram, 0.99), bucket_end_ns(50));
        assert_eq!(quantile(&histogram, 1.0), bucket_end_ns(100));
        assert_eq!(since(&histogram, &histogram), [0; HISTOGRAM_BUCKETS]);
    }

    #[test]
    fn interrupted_handlers_count_as_the_others() {
        assert_eq!(cpu_ns(0, (0, 0)), 0);
        assert_eq!(cpu_ns(10, (8, 8000)), 10_000);
    }
}
