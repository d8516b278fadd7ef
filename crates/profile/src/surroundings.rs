//! The JVM's compilers, the control group and the machine over time.

use crate::names::NameId;

/// A time in which the control group held the process back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttled {
    /// From when, nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// How long that time is.
    pub duration_ns: u64,
    /// Periods of the group in it.
    pub periods: u64,
    /// Periods among them in which the quota was used up.
    pub throttled: u64,
    /// How long threads were held back, all together.
    pub throttled_ns: u64,
}

/// A method that was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compilation {
    /// When that began, nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// The method's name, with its class.
    pub method: NameId,
    /// The compiler's level, from 1 on; 0: not known.
    pub level: u64,
}

/// The JVM's counters of its compilers, over a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compilers {
    /// From when, nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// How long that part is.
    pub duration_ns: u64,
    /// How many methods and loops were compiled.
    pub compilations: u64,
    /// How long that took, of all compilers together.
    pub compiling_ns: u64,
    /// Compilations that were given up, and compiled code that could not be used.
    pub wasted: u64,
}

/// Time that all processes used, in a period, on the processors of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// From when, nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// How long that part is.
    pub duration_ns: u64,
    /// How many processors these are.
    pub processors: u64,
    /// How long they worked for any process, all together.
    pub busy_ns: u64,
    /// Of that, CPU time of the process that was recorded.
    pub own_ns: u64,
    /// How long they had nothing to do.
    pub idle_ns: u64,
    /// How long the hypervisor had them.
    pub stolen_ns: u64,
}

impl Machine {
    /// All parts together; how many processors, and when, is as in the last one.
    pub(crate) fn sum(parts: &[Machine]) -> Option<Machine> {
        let mut sum = *parts.last()?;
        for part in parts.iter().rev().skip(1) {
            sum.duration_ns = sum.duration_ns.saturating_add(part.duration_ns);
            sum.busy_ns = sum.busy_ns.saturating_add(part.busy_ns);
            sum.own_ns = sum.own_ns.saturating_add(part.own_ns);
            sum.idle_ns = sum.idle_ns.saturating_add(part.idle_ns);
            sum.stolen_ns = sum.stolen_ns.saturating_add(part.stolen_ns);
        }
        Some(sum)
    }

    /// How long they worked for other processes.
    #[must_use]
    pub fn others_ns(&self) -> u64 {
        self.busy_ns.saturating_sub(self.own_ns)
    }

    /// Whether the parts make about the whole: the kernel counts by ticks, and what a container
    /// shows in place of the kernel's file may be about other processors.
    pub(crate) fn is_plausible(&self) -> bool {
        let all = u128::from(self.duration_ns) * u128::from(self.processors);
        let told = u128::from(self.busy_ns) + u128::from(self.idle_ns) + u128::from(self.stolen_ns);
        all > 0 && told * 10 >= all * 8 && told * 10 <= all * 12
    }
}
