//! The sampling plan of one thread: which points of its CPU time are sampled, and when next.
//!
//! The thread's CPU-time axis is cut into windows of `interval_ns`; each window holds one point,
//! uniform in it. Each point stands for `interval_ns` of CPU time. So the sum of weights follows
//! the CPU time within one interval at every moment, a thread shorter than an interval is seen with
//! the probability its length deserves, and a program that repeats itself every interval cannot
//! hide: the point does not keep step with it. If the next one is nearer than a timer can go it is
//! taken late, together with whatever else is due by then.
//!
//! Setting a timer anew for each point is dear: where it is the next to go off, some 6 us in a
//! virtual machine. So several windows in a row, a *block*, may have their points at the same place
//! ([`BLOCK_NS`]): the timer then goes off by itself. A program can keep in step with a block only;
//! what is told of it scatters as if its samples were a block apart.
//!
//! Pure arithmetic: no clock, no memory but its own.

/// The shortest time between two wake-ups. The kernel's shortest perf period is 10 us, but where an
/// interrupt takes longer than that, as on a busy host of virtual machines, the next one is due
/// before the thread has done anything, and so on for ever.
pub const GAP_MIN_NS: u64 = 50_000;

/// The length of a block of windows whose points have the same place. Intervals longer than half of
/// it have a block each: there the kernel's tick goes off first most of the time, and setting a
/// timer that does not is cheap (1 us).
pub const BLOCK_NS: u64 = 16_000_000;

/// How much earlier than its point a sample of a timer that goes off by itself may be taken, as a
/// part of the interval: the thread's CPU clock leaves out interrupts, the timer does not.
pub const EARLY_PART: u64 = 16;

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Which points have been taken, and where the next one lies.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    seed: u64,
    interval_ns: u64,
    /// Windows in a block.
    block: u64,
    origin_ns: u64,
    window: u64,
    point_ns: u64,
}

/// What a plan says at a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Points that are due now.
    pub points: u32,
    /// The CPU time of the next wake-up.
    pub wake_up_ns: u64,
    /// Whether the next point is an interval after the last one.
    pub steady: bool,
}

/// One well-mixed word per input (the finaliser of splitmix64).
#[inline]
const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Plan {
    /// A plan whose axis begins where the thread has used `now_cpu_ns_floor` of CPU time, with a
    /// place of its own for each point.
    #[must_use]
    pub const fn new(seed: u64, interval_ns: u64, now_cpu_ns_floor: u64) -> Self {
        Self::with_block(seed, interval_ns, now_cpu_ns_floor, 1)
    }

    /// The same for a timer that goes off by itself: points are set in blocks of [`BLOCK_NS`].
    #[must_use]
    pub const fn in_blocks(seed: u64, interval_ns: u64, now_cpu_ns_floor: u64) -> Self {
        let block = match BLOCK_NS.checked_div(interval_ns) {
            Some(block) => block,
            None => BLOCK_NS,
        };
        Self::with_block(seed, interval_ns, now_cpu_ns_floor, block)
    }

    const fn with_block(seed: u64, interval_ns: u64, now_cpu_ns_floor: u64, block: u64) -> Self {
        let interval_ns = if interval_ns == 0 { 1 } else { interval_ns };
        let mut plan = Self {
            seed,
            interval_ns,
            block: if block == 0 { 1 } else { block },
            origin_ns: now_cpu_ns_floor,
            window: 0,
            point_ns: 0,
        };
        plan.point_ns = plan.point_in(0);
        plan
    }

    /// The CPU time each point stands for.
    #[must_use]
    pub const fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// Whether points are set in blocks, so that a timer may go off by itself.
    #[inline]
    #[must_use]
    pub const fn has_blocks(&self) -> bool {
        self.block > 1
    }

    /// The block of a window.
    #[inline]
    const fn block_of(&self, window: u64) -> u64 {
        match window.checked_div(self.block) {
            Some(block) => block,
            None => window,
        }
    }

    /// The point of a window: a function of seed and window, so windows can be skipped at no cost.
    #[inline]
    const fn point_in(&self, window: u64) -> u64 {
        let block = self.block_of(window);
        let random = if block == 0 {
            // Seeds of threads are consecutive numbers: multiples of the golden ratio spread their
            // first points evenly over the window. Of many short threads nearly the exact share is
            // seen then, not one that scatters like the square root of their number.
            self.seed.wrapping_mul(GOLDEN) as u128
        } else {
            let step = block.wrapping_add(1).wrapping_mul(GOLDEN);
            mix(self.seed.wrapping_add(step)) as u128
        };
        let offset = (random.wrapping_mul(self.interval_ns as u128) >> 64) as u64;
        self.origin_ns
            .wrapping_add(window.wrapping_mul(self.interval_ns))
            .wrapping_add(offset)
    }

    /// Takes the points that are due when the thread has used `now_cpu_ns`.
    #[inline]
    pub fn due(&mut self, now_cpu_ns: u64) -> Due {
        let mut points: u64 = 0;
        // All windows that have passed entirely hold exactly one point each.
        let passed = match now_cpu_ns.checked_sub(self.origin_ns) {
            Some(used_ns) => used_ns.checked_div(self.interval_ns).unwrap_or(0),
            None => 0,
        };
        let mut steady = self.has_blocks();
        if passed > self.window {
            steady &= self.block_of(self.window) == self.block_of(passed);
            points = passed.wrapping_sub(self.window);
            self.window = passed;
            self.point_ns = self.point_in(passed);
        }
        let early_ns = if self.has_blocks() {
            self.interval_ns.checked_div(EARLY_PART).unwrap_or(0)
        } else {
            0
        };
        // The current window's point may be past as well; the next window's cannot be.
        if self.window <= passed && self.point_ns <= now_cpu_ns.saturating_add(early_ns) {
            steady &= self.block_of(self.window) == self.block_of(self.window.wrapping_add(1));
            points = points.wrapping_add(1);
            self.window = self.window.wrapping_add(1);
            self.point_ns = self.point_in(self.window);
        }
        Due {
            points: u32::try_from(points).unwrap_or(u32::MAX),
            wake_up_ns: self.wake_up_ns(now_cpu_ns),
            steady,
        }
    }

    /// The CPU time of the next point, past or to come.
    #[inline]
    #[must_use]
    pub const fn next_point_ns(&self) -> u64 {
        self.point_ns
    }

    /// When to wake up for the next point, seen from `now_cpu_ns`.
    #[inline]
    #[must_use]
    pub fn wake_up_ns(&self, now_cpu_ns: u64) -> u64 {
        self.point_ns.max(now_cpu_ns.saturating_add(GAP_MIN_NS))
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
