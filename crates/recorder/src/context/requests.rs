//! Requests that have ended since the last flush: some of each endpoint, each with the number it
//! stands for. So an endpoint with many requests does not crowd out one with few.

use dwell_wall::random::Random;
use rustc_hash::FxHashMap;

/// Maximum number of requests of one endpoint kept for a flush; if there are more, they are chosen
/// at random.
const KEPT_MAX: usize = 64;
/// Requests kept of all endpoints, unless so many endpoints have requests that each gets
/// [`KEPT_MIN`].
const ALL_MAX: usize = 256;
/// Requests of one endpoint kept in any case.
const KEPT_MIN: usize = 4;
/// Endpoints that are kept separate in one flush; the others share one quota.
const ENDPOINTS_MAX: usize = 64;
/// The number of no text.
const OTHERS: u32 = u32::MAX;

/// A request that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// When it began, on the monotonic clock.
    pub start_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// Its trace.
    pub trace: u128,
    /// Its first span in this process.
    pub local_root: u64,
    /// Number of the endpoint's text; 0: not known when it ended.
    pub endpoint: u32,
    /// How many requests it stands for.
    pub count: u64,
}

/// A uniform reservoir (Vitter, "Random sampling with a reservoir", 1985, algorithm R).
#[derive(Default)]
struct Reservoir {
    kept: Vec<Request>,
    seen: u64,
    /// Requests that those seen stand for.
    requests: u64,
}

impl Reservoir {
    /// Adds a request, in the place of another one if there is no room.
    fn add(&mut self, request: Request, random: &mut Random) {
        self.seen += 1;
        self.requests = self.requests.saturating_add(request.count);
        if self.kept.len() < KEPT_MAX {
            self.kept.push(request);
        } else if let Some(kept) = self.kept.get_mut(random.below(self.seen) as usize) {
            *kept = request;
        }
    }

    /// Moves at most `most` of them, which together stand for all.
    fn take(&mut self, most: usize, random: &mut Random, to: &mut Vec<Request>) {
        let most = most.min(self.kept.len());
        for at in 0..most {
            let other = random.below((self.kept.len() - at) as u64) as usize;
            self.kept.swap(at, at + other);
        }
        let kept = self.kept.get(..most).unwrap_or(&[]);
        let stood_for: u128 = kept.iter().map(|request| u128::from(request.count)).sum();
        // Each stands for its earlier number times the same factor; the sum is right.
        let (mut counted, mut before) = (0u128, 0u128);
        for request in kept {
            counted += u128::from(request.count);
            let until = counted * u128::from(self.requests) / stood_for.max(1);
            let count = u64::try_from(until - before).unwrap_or(u64::MAX);
            before = until;
            to.push(Request { count, ..*request });
        }
    }
}

/// The requests since the last flush.
pub struct Requests {
    by_endpoint: FxHashMap<u32, Reservoir>,
    random: Random,
}

impl Requests {
    /// No requests.
    #[must_use]
    pub fn new(seed: u64) -> Requests {
        Requests {
            by_endpoint: FxHashMap::default(),
            random: Random::new(seed),
        }
    }

    /// Adds one.
    pub fn add(&mut self, request: Request) {
        let known = self.by_endpoint.contains_key(&request.endpoint);
        let key = match known || self.by_endpoint.len() < ENDPOINTS_MAX {
            true => request.endpoint,
            false => OTHERS,
        };
        let reservoir = self.by_endpoint.entry(key).or_default();
        reservoir.add(request, &mut self.random);
    }

    /// Takes those kept; together they stand for all.
    #[must_use]
    pub fn take(&mut self) -> Vec<Request> {
        let mut taken = Vec::new();
        let of_each = (ALL_MAX / self.by_endpoint.len().max(1)).max(KEPT_MIN);
        for (_, mut reservoir) in self.by_endpoint.drain() {
            reservoir.take(of_each, &mut self.random, &mut taken);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: u64, endpoint: u32) -> Request {
        Request {
            local_root: number,
            endpoint,
            count: 1,
            ..Request::default()
        }
    }

    #[test]
    fn few_requests_are_all_kept() {
        let mut requests = Requests::new(1);
        for number in 0..KEPT_MAX as u64 {
            requests.add(request(number, 7));
        }
        let mut kept = requests.take();
        kept.sort_by_key(|request| request.local_root);
        let all: Vec<_> = (0..KEPT_MAX as u64).map(|n| request(n, 7)).collect();
        assert_eq!(kept, all);
        assert_eq!(requests.take(), []);
    }

    #[test]
    fn many_requests_have_equal_chances_and_are_counted() {
        const MANY: u64 = 1000;
        const ROUNDS: u64 = 2000;
        let mut requests = Requests::new(7);
        let mut times = vec![0u64; MANY as usize];
        for _ in 0..ROUNDS {
            for number in 0..MANY {
                requests.add(request(number, 7));
            }
            let kept = requests.take();
            assert_eq!(kept.iter().map(|request| request.count).sum::<u64>(), MANY);
            for request in kept {
                times[request.local_root as usize] += 1;
            }
        }
        // Binomial with n = 2000, p = 0.064: 128 with a deviation of 11; 5 of them, for a thousand
        // numbers, happen by chance once in 1700 seeds.
        let expected = ROUNDS * KEPT_MAX as u64 / MANY;
        for (number, times) in times.iter().enumerate() {
            assert!(times.abs_diff(expected) < 55, "{number}: {times}");
        }
    }

    #[test]
    fn kept_requests_are_bounded_for_many_endpoints() {
        let mut requests = Requests::new(3);
        for endpoint in 0..1000u32 {
            for number in 0..20 {
                requests.add(request(number, endpoint));
            }
        }
        let kept = requests.take();
        assert_eq!(kept.len(), (ENDPOINTS_MAX + 1) * KEPT_MIN);
        let of = |endpoint| kept.iter().filter(move |r| r.endpoint == endpoint);
        assert_eq!(of(5).map(|request| request.count).sum::<u64>(), 20);
        assert_eq!(kept.iter().map(|r| r.count).sum::<u64>(), 20_000);
        for endpoint in 0..3 {
            for number in 0..100 {
                requests.add(request(number, endpoint));
            }
        }
        assert_eq!(requests.take().len(), 3 * KEPT_MAX);
    }
}
