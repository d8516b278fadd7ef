//! Quantiles of the handler's power-of-two histogram. Pure.

use dwell_signal::HISTOGRAM_BUCKETS;

type Histogram = [u64; HISTOGRAM_BUCKETS];

/// What was counted between two snapshots.
#[must_use]
pub fn since(now: &Histogram, before: &Histogram) -> Histogram {
    let mut out = *now;
    for (count, old) in out.iter_mut().zip(before) {
        *count = count.saturating_sub(*old);
    }
    out
}

/// Handlers that took longer than this were most likely descheduled meanwhile.
const LONG_BUCKET: usize = 16;

/// An estimate of the CPU time all handlers took. The histogram holds elapsed time, so those far
/// longer than a handler can work (64 us) are counted as the median one.
#[must_use]
pub fn cpu_ns(histogram: &Histogram) -> u64 {
    let typical = quantile(histogram, 0.5) * 3 / 4;
    let of = |(bucket, count): (usize, &u64)| {
        let each = if bucket <= LONG_BUCKET {
            (3u64 << bucket) / 4
        } else {
            typical
        };
        count.saturating_mul(each)
    };
    histogram.iter().enumerate().map(of).sum()
}

/// The upper bound, in ns, of the bucket that holds the quantile; 0 if nothing was counted.
#[must_use]
pub fn quantile(histogram: &Histogram, share: f64) -> u64 {
    let total: u64 = histogram.iter().sum();
    let rank = ((total as f64 * share).ceil() as u64).clamp(1, total.max(1));
    let mut seen = 0;
    for (bucket, count) in histogram.iter().enumerate() {
        seen += count;
        if seen >= rank {
            return 1u64 << bucket.min(63);
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
        histogram[10] = 99;
        histogram[20] = 1;
        assert_eq!(quantile(&histogram, 0.5), 1 << 10);
        assert_eq!(quantile(&histogram, 0.99), 1 << 10);
        assert_eq!(quantile(&histogram, 1.0), 1 << 20);
        assert_eq!(since(&histogram, &histogram), [0; HISTOGRAM_BUCKETS]);
    }
}
