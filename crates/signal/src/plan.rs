//! The sampling plan of one thread: which points of its CPU time are sampled, and when next.
//!
//! The thread's CPU-time axis is cut into *windows*. Each window holds one point, uniform in it,
//! that stands for the window's CPU time. So the sum of weights follows the CPU time within one
//! window at every moment. A thread shorter than a window is seen with the probability its length
//! deserves. If the next point is nearer than a timer can go, it is taken late, together with all
//! points due by then.
//!
//! If a timer is set for each point, windows are as long as the interval, and each has its own
//! random place for its point. A program that repeats itself every interval cannot keep step.
//!
//! Setting a timer is expensive: where it is the next to go off, some 6 us in a virtual machine. A
//! periodic timer costs a tenth of that, but always fires after the same time. So several windows
//! in a row, a *block*, have the same length and their points at the same place. The length is
//! drawn again for each block, from half an interval to one and a half. So points wander through
//! what a program repeats, and the result scatters as if each point had a place of its own. (With
//! one length for all blocks it would scatter as if there were one point a block.)
//!
//! Why the mean is right: for any lengths drawn, the windows cover the axis without gap. A point
//! that is uniform in its window and weighs as much as the window is long shows each moment with
//! weight 1. So the place has to be uniform; nothing more is required. The correlation between the
//! places of two blocks does not matter. So the next block's place is, where possible, the one
//! that the periodic timer reaches ([`following`]).
//!
//! Pure arithmetic: it reads no clock, and no memory except its own.

/// The shortest time between two wake-ups. The kernel's shortest perf period is 10 us, but an
/// interrupt may take longer than that, as on a busy host of virtual machines. Then the next one
/// is due before the thread has done anything, and so on for ever.
pub const GAP_MIN_NS: u64 = 50_000;

/// The length of a block, except for blocks that the next one limits.
pub const BLOCK_NS: u64 = 64_000_000;

/// The most windows of a block. By chance a block's length can keep step with the program: then
/// all its points see the same.
const BLOCK_WINDOWS_MAX: u64 = 64;

/// With fewer windows to a block, setting a timer for each point costs little more.
const BLOCK_WINDOWS_MIN: u64 = 4;

/// The shortest window of a block: events that leave out the kernel cannot overflow more often.
const WIDTH_MIN_NS: u64 = 100_000;

/// How much earlier than its point a sample may be taken in blocks, as a part of the window. The
/// timer and the thread's CPU clock may differ by a little.
pub const EARLY_PART: u64 = 16;

/// Blocks that one wake-up can pass one by one.
const BLOCKS_PASSED_MAX: u32 = 64;

/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Which points have been taken, and where the next one lies.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    seed: u64,
    interval_ns: u64,
    /// Windows in a block after the first; 1: each point has a place of its own.
    per_block: u64,
    /// The number of the block, and where it begins.
    block: u64,
    start_ns: u64,
    /// How long its windows are, and how many there are.
    width_ns: u64,
    windows: u64,
    /// The first of them whose point has not been taken.
    window: u64,
    point_ns: u64,
    /// The last wake-up.
    woken_ns: u64,
}

/// A plan's decision at a wake-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Points that are due now.
    pub points: u32,
    /// The CPU time they stand for.
    pub weight_ns: u64,
    /// The CPU time of the next wake-up.
    pub wake_up_ns: u64,
    /// Whether the next point is in the same block as the one before.
    pub steady: bool,
    /// Whether a timer that is in step fired on time.
    pub on_time: bool,
}

/// One well-mixed word per input (the finaliser of splitmix64).
#[inline]
const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A random word as a number below `end`.
#[inline]
const fn below(random: u64, end: u64) -> u64 {
    ((random as u128).wrapping_mul(end as u128) >> 64) as u64
}

/// The shortest and the longest window that a block may have. Their mean is the interval.
#[inline]
const fn widths_ns(interval_ns: u64) -> (u64, u64) {
    let half_ns = interval_ns / 2;
    let least_ns = if half_ns >= WIDTH_MIN_NS {
        half_ns
    } else if interval_ns <= WIDTH_MIN_NS {
        interval_ns
    } else {
        WIDTH_MIN_NS
    };
    let more_ns = interval_ns.wrapping_sub(least_ns);
    (least_ns, interval_ns.saturating_add(more_ns))
}

/// The longest that the CPU time of a point can be.
#[must_use]
pub const fn longest_ns(interval_ns: u64) -> u64 {
    widths_ns(interval_ns).1
}

/// The place in windows of `width_ns` for a block that begins `left_ns` after the last point. That
/// point is uniform in the `old_ns` of the window before. (The time of its sample is not: samples
/// are late.) If possible it is the place that makes the first point come `width_ns` after the last
/// one, as the timer's period will be.
///
/// It is uniform. `width_ns - left_ns` is uniform on the part of the new window that it can reach:
/// the last `old_ns`. If the new window is longer, the part in front of them is taken as often as
/// it deserves. If it is shorter, places in front of it are drawn again.
#[inline]
const fn following(left_ns: u64, old_ns: u64, width_ns: u64, random: u64) -> u64 {
    let drawn_ns = below(random, width_ns);
    let out_of_reach = drawn_ns < width_ns.saturating_sub(old_ns);
    match width_ns.checked_sub(left_ns) {
        Some(place_ns) if !out_of_reach && left_ns > 0 => place_ns,
        _ => drawn_ns,
    }
}

impl Plan {
    /// A plan whose axis begins where the thread has used `now_cpu_ns_floor` of CPU time. Each
    /// point has a place of its own.
    #[must_use]
    pub const fn new(seed: u64, interval_ns: u64, now_cpu_ns_floor: u64) -> Self {
        Self::with_block(seed, interval_ns, now_cpu_ns_floor, 1)
    }

    /// Like [`Plan::new`], for a periodic timer: points are set in blocks.
    #[must_use]
    pub const fn in_blocks(seed: u64, interval_ns: u64, now_cpu_ns_floor: u64) -> Self {
        let windows = match BLOCK_NS.checked_div(interval_ns) {
            Some(windows) if windows < BLOCK_WINDOWS_MIN => 1,
            Some(windows) if windows < BLOCK_WINDOWS_MAX => windows,
            _ => BLOCK_WINDOWS_MAX,
        };
        Self::with_block(seed, interval_ns, now_cpu_ns_floor, windows)
    }

    const fn with_block(seed: u64, interval_ns: u64, start_ns: u64, per_block: u64) -> Self {
        let interval_ns = if interval_ns == 0 { 1 } else { interval_ns };
        // Seeds of threads are consecutive numbers. Multiples of the golden ratio spread their
        // first points evenly over the first window, which is an interval. So nearly the exact
        // share of many short threads is seen, instead of a share that scatters like the square
        // root of their number.
        let place_ns = below(seed.wrapping_mul(GOLDEN), interval_ns);
        Self {
            seed,
            interval_ns,
            per_block,
            block: 0,
            start_ns,
            width_ns: interval_ns,
            windows: if per_block > 1 { 1 } else { u64::MAX },
            window: 0,
            point_ns: start_ns.wrapping_add(place_ns),
            woken_ns: start_ns,
        }
    }

    /// Moves the axis, before the first point is taken: the next `ns` of CPU time, or the last, are
    /// in no window.
    pub const fn leave_out(&mut self, ns: u64) {
        self.start_ns = self.start_ns.saturating_add(ns);
        self.point_ns = self.point_ns.saturating_add(ns);
        self.woken_ns = self.woken_ns.saturating_add(ns);
    }

    /// The present length of the windows: the period, in CPU time, of a timer that is in step.
    #[inline]
    #[must_use]
    pub const fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// The CPU time each point stands for, in the mean.
    #[inline]
    #[must_use]
    pub const fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// Whether points are set in blocks, so that a periodic timer can be used.
    #[inline]
    #[must_use]
    pub const fn has_blocks(&self) -> bool {
        self.per_block > 1
    }

    /// How many points of this block are to come.
    #[inline]
    #[must_use]
    pub const fn left_in_block(&self) -> u64 {
        self.windows.wrapping_sub(self.window)
    }

    #[inline]
    const fn random(&self, number: u64) -> u64 {
        mix(self
            .seed
            .wrapping_add(number.wrapping_add(1).wrapping_mul(GOLDEN)))
    }

    /// Where a window of this block begins.
    #[inline]
    const fn window_start_ns(&self, window: u64) -> u64 {
        self.start_ns
            .saturating_add(window.saturating_mul(self.width_ns))
    }

    /// Continues with a later window of the block.
    #[inline]
    const fn go_to(&mut self, window: u64) {
        let passed = window.wrapping_sub(self.window);
        self.window = window;
        self.point_ns = if self.has_blocks() {
            self.point_ns
                .saturating_add(passed.saturating_mul(self.width_ns))
        } else {
            self.start_ns
                .wrapping_add(window.wrapping_mul(self.width_ns))
                .wrapping_add(self.own_place_ns(window))
        };
    }

    /// The place of a window's point, if each has a place of its own: a function of seed and
    /// window, so windows can be skipped at no cost.
    #[inline]
    const fn own_place_ns(&self, window: u64) -> u64 {
        below(self.random(window), self.interval_ns)
    }

    /// Begins the next block at `start_ns`, after one whose last point is at `last_ns`.
    // Seldom called, and long.
    #[inline(never)]
    const fn begin_block(&mut self, start_ns: u64, last_ns: u64) {
        let old_ns = self.width_ns;
        let (least_ns, most_ns) = widths_ns(self.interval_ns);
        let range_ns = most_ns.wrapping_sub(least_ns);
        self.block = self.block.wrapping_add(1);
        self.start_ns = start_ns;
        self.windows = self.per_block;
        self.window = 0;
        let random = self.random(self.block);
        self.width_ns = least_ns.saturating_add(below(mix(!random), range_ns.saturating_add(1)));
        // If all windows are nearly of one length, only another place breaks the step.
        let place_ns = if range_ns >= self.interval_ns / 4 {
            let left_ns = start_ns.saturating_sub(last_ns);
            following(left_ns, old_ns, self.width_ns, random)
        } else {
            below(random, self.width_ns)
        };
        self.point_ns = start_ns.saturating_add(place_ns);
    }

    /// Takes the points that are due when the thread has used `now_cpu_ns`. `in_step`: it was
    /// woken by a timer that fires periodically every [`Plan::width_ns`]. It decides how the timer
    /// continues, and not which points are due.
    #[inline]
    pub fn due(&mut self, now_cpu_ns: u64, in_step: bool) -> Due {
        self.take(now_cpu_ns, in_step, true)
    }

    /// The CPU time that passed points stand for at the end, where no signal shows that a point is
    /// near. The tolerance for a signal that comes too early does not apply. Otherwise every
    /// thread that has hardly run would be given a point with a chance that its CPU time does not
    /// deserve.
    pub fn owed_ns(&mut self, now_cpu_ns: u64) -> u64 {
        self.take(now_cpu_ns, false, false).weight_ns
    }

    #[inline]
    fn take(&mut self, now_cpu_ns: u64, in_step: bool, signalled: bool) -> Due {
        let block = self.block;
        let since_ns = now_cpu_ns.saturating_sub(self.woken_ns);
        // Signals that had to wait for each other carry no information.
        let in_step = in_step && self.has_blocks() && since_ns >= self.width_ns / 2;
        let mut due = Due::default();
        // Blocks and windows that have passed entirely hold exactly one point each.
        self.pass_blocks(now_cpu_ns, &mut due);
        let begun = now_cpu_ns.checked_sub(self.start_ns);
        if let Some(used_ns) = begun {
            let passed = used_ns.checked_div(self.width_ns).unwrap_or(0);
            if passed > self.window {
                self.add(&mut due, passed.wrapping_sub(self.window));
                self.go_to(passed);
            }
            // The current window's point may be past as well; the next window's cannot be. A timer
            // that has strayed from its point signals before the point or after it. Then each
            // signal takes the point of the window before. If it took its own window's point
            // early, a thread that ends would have passed whichever of the two comes first.
            let early_ns = if signalled && due.points == 0 && self.has_blocks() {
                self.width_ns / EARLY_PART
            } else {
                0
            };
            let is_past = self.point_ns <= now_cpu_ns.saturating_add(early_ns);
            if self.window <= passed && is_past {
                self.add(&mut due, 1);
                let next = self.window.wrapping_add(1);
                if next < self.windows {
                    self.go_to(next);
                } else {
                    self.begin_block(self.window_start_ns(next), self.point_ns);
                }
            }
        }
        self.woken_ns = now_cpu_ns;
        due.wake_up_ns = self.wake_up_ns(now_cpu_ns);
        due.steady = self.has_blocks() && self.block == block;
        due.on_time = in_step && due.points <= 1;
        due
    }

    #[inline]
    fn add(&self, due: &mut Due, windows: u64) {
        let windows32 = u32::try_from(windows).unwrap_or(u32::MAX);
        due.points = due.points.saturating_add(windows32);
        due.weight_ns = due
            .weight_ns
            .saturating_add(windows.saturating_mul(self.width_ns));
    }

    /// Takes the remaining points of the blocks that are over.
    #[inline]
    fn pass_blocks(&mut self, now_cpu_ns: u64, due: &mut Due) {
        for _ in 0..BLOCKS_PASSED_MAX {
            let end_ns = self.window_start_ns(self.windows);
            if now_cpu_ns < end_ns || !self.has_blocks() {
                return;
            }
            self.add(due, self.left_in_block());
            let later = self.left_in_block().saturating_sub(1);
            let last_ns = later.saturating_mul(self.width_ns);
            self.begin_block(end_ns, self.point_ns.saturating_add(last_ns));
        }
        // After so long a time the axis begins again: no points lie between.
        let passed_ns = now_cpu_ns.saturating_sub(self.window_start_ns(self.window));
        if now_cpu_ns >= self.window_start_ns(self.windows) {
            let points = passed_ns.checked_div(self.interval_ns).unwrap_or(0);
            let points32 = u32::try_from(points).unwrap_or(u32::MAX);
            due.points = due.points.saturating_add(points32.max(1));
            due.weight_ns = due.weight_ns.saturating_add(passed_ns);
            self.begin_block(now_cpu_ns, now_cpu_ns);
        }
    }

    /// The CPU time that the taken points stand for: windows are taken whole, so it may lie in the
    /// future.
    #[inline]
    #[must_use]
    pub const fn taken_to_ns(&self) -> u64 {
        self.window_start_ns(self.window)
    }

    /// The CPU time of the next point, past or to come.
    #[inline]
    #[must_use]
    pub const fn next_point_ns(&self) -> u64 {
        self.point_ns
    }

    /// When to wake up for the next point, relative to `now_cpu_ns`.
    #[inline]
    #[must_use]
    pub fn wake_up_ns(&self, now_cpu_ns: u64) -> u64 {
        self.point_ns.max(now_cpu_ns.saturating_add(GAP_MIN_NS))
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
