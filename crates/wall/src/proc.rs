//! Parsers of `/proc/self/task/TID/syscall` and `schedstat` (proc(5), fs/proc/base.c): bytes in,
//! facts out.

/// State of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    /// On a processor, or ready for one.
    Ready,
    /// Off the processor.
    Off {
        /// The system call; none if the thread is in the kernel for other reasons, such as a page
        /// fault.
        call: Option<Target>,
        /// The stack pointer in user code.
        sp: u64,
        /// The instruction pointer in user code.
        pc: u64,
    },
}

/// The object of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A word of memory.
    Futex,
    /// The clock.
    Clock,
    /// A descriptor.
    Descriptor(i32),
    /// Descriptors in an array of `struct pollfd`.
    Poll {
        /// Address of the array.
        fds: u64,
        /// Its length.
        count: u64,
    },
    /// Any of many descriptors.
    Many,
    /// Another process.
    Child,
    /// A name in a file system, a mapped file, or several files.
    Path,
    /// Something else.
    Other,
}

/// Numbers of system calls by the object of the call, sorted.
struct Calls {
    on_descriptor: &'static [u64],
    /// sendfile writes to its first argument, splice and copy_file_range read from theirs.
    between: &'static [u64],
    poll: &'static [u64],
    many: &'static [u64],
    futex: &'static [u64],
    clock: &'static [u64],
    child: &'static [u64],
    path: &'static [u64],
}

/// arch/x86/entry/syscalls/syscall_64.tbl.
const X86_64: Calls = Calls {
    on_descriptor: &[
        0, 1, 5, 16, 17, 18, 19, 20, 42, 43, 44, 45, 46, 47, 72, 73, 74, 75, 77, 138, 187, 217,
        277, 285, 288, 295, 296, 299, 306, 307, 327, 328,
    ],
    between: &[40, 275, 326],
    poll: &[7, 271],
    many: &[23, 232, 270, 281, 426, 441],
    futex: &[202, 449, 455],
    clock: &[35, 230],
    child: &[61, 247],
    path: &[
        2, 4, 6, 21, 26, 76, 80, 82, 83, 84, 85, 86, 87, 88, 89, 90, 137, 162, 208, 257, 258, 262,
        263, 264, 265, 266, 267, 268, 269, 316, 332, 333, 437, 439,
    ],
};

/// include/uapi/asm-generic/unistd.h.
const AARCH64: Calls = Calls {
    on_descriptor: &[
        25, 29, 32, 44, 46, 47, 61, 63, 64, 65, 66, 67, 68, 69, 70, 80, 82, 83, 84, 202, 203, 206,
        207, 211, 212, 213, 242, 243, 267, 269, 286, 287,
    ],
    between: &[71, 76, 285],
    poll: &[73],
    many: &[22, 72, 426, 441],
    futex: &[98, 449, 455],
    clock: &[101, 115],
    child: &[95, 260],
    path: &[
        4, 34, 35, 36, 37, 38, 43, 45, 48, 49, 53, 56, 78, 79, 81, 227, 276, 291, 292, 437, 439,
    ],
};

/// Those of this machine.
const OWN: &Calls = if cfg!(target_arch = "aarch64") {
    &AARCH64
} else {
    &X86_64
};

fn target(calls: &Calls, call: u64, arguments: [u64; 2]) -> Target {
    let is_one = |numbers: &[u64]| numbers.binary_search(&call).is_ok();
    if is_one(calls.futex) {
        Target::Futex
    } else if is_one(calls.on_descriptor) || is_one(calls.between) {
        Target::Descriptor(arguments[0] as i32)
    } else if is_one(calls.poll) {
        let [fds, count] = arguments;
        if count == 0 {
            return Target::Clock;
        }
        Target::Poll { fds, count }
    } else if is_one(calls.many) {
        Target::Many
    } else if is_one(calls.clock) {
        Target::Clock
    } else if is_one(calls.child) {
        Target::Child
    } else if is_one(calls.path) {
        Target::Path
    } else {
        Target::Other
    }
}

/// Parses `syscall`; `None` if it does not have the kernel's format.
#[must_use]
pub fn whereabouts(text: &[u8]) -> Option<Whereabouts> {
    whereabouts_on(OWN, text)
}

fn whereabouts_on(calls: &Calls, text: &[u8]) -> Option<Whereabouts> {
    let text = text.trim_ascii_end();
    if text == b"running" {
        return Some(Whereabouts::Ready);
    }
    let mut words = text.split(|byte| *byte == b' ');
    let call = words.next()?;
    let (mut values, mut len) = ([0; 8], 0);
    for word in words {
        *values.get_mut(len)? = hex(word)?;
        len += 1;
    }
    match (call, values.get(..len)?) {
        (b"-1", &[sp, pc]) => Some(Whereabouts::Off { call: None, sp, pc }),
        (call, &[a, b, _, _, _, _, sp, pc]) => {
            let call = std::str::from_utf8(call).ok()?.parse().ok()?;
            Some(Whereabouts::Off {
                call: Some(target(calls, call, [a, b])),
                sp,
                pc,
            })
        }
        _ => None,
    }
}

/// The state in `stat`: `R` runs or is ready, `D` waits for a disk or a page, `S` waits. It is the
/// word after the name. The name may hold any characters, but ends with the last parenthesis
/// (proc(5)).
#[must_use]
pub fn state(text: &[u8]) -> Option<u8> {
    let end = text.iter().rposition(|byte| *byte == b')')?;
    match text.get(end..)? {
        [b')', b' ', state, ..] if state.is_ascii_alphabetic() => Some(*state),
        _ => None,
    }
}

/// Whether a thread runs or is ready to, by its `stat`, and on which processor it is or last was:
/// the 39th word of the file (proc(5)).
#[must_use]
pub fn last_on(text: &[u8]) -> Option<(bool, i32)> {
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let mut words = text.get(end + 1..)?.split(|byte| *byte == b' ').skip(1);
    let is_ready = words.next()? == b"R";
    let processor = std::str::from_utf8(words.nth(35)?).ok()?;
    Some((is_ready, processor.trim_end().parse().ok()?))
}

/// When a thread last ran, by its `sched`, in ns on the clock of its processor: `se.exec_start`, in
/// ms with six digits behind the point (`proc_sched_show_task` of kernel/sched/debug.c).
#[must_use]
pub fn last_ran(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("se.exec_start"))?;
    let (ms, part) = line.rsplit(' ').next()?.split_once('.')?;
    let (ms, ns): (u64, u64) = (ms.parse().ok()?, part.parse().ok()?);
    (part.len() == 6).then(|| ms.checked_mul(1_000_000)?.checked_add(ns))?
}

/// `0x` and up to 16 digits. Samples of wall time parse several of these in each tick, so this
/// takes no detour by text.
fn hex(word: &[u8]) -> Option<u64> {
    let digits = word.strip_prefix(b"0x")?;
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(u64::from);
    match digits.len() {
        1..=16 => (digits.iter()).try_fold(0, |value, byte| Some(value << 4 | digit(byte)?)),
        _ => None,
    }
}

/// The scheduler's counters of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Time on a processor.
    pub on_cpu_ns: u64,
    /// Time that it was ready and waited for a processor.
    pub waited_ns: u64,
    /// How often it got a processor.
    pub turns: u64,
}

impl Schedule {
    /// How long the thread waited for a processor since `before`.
    #[must_use]
    pub fn waited_since(&self, before: &Schedule) -> u64 {
        self.waited_ns.saturating_sub(before.waited_ns)
    }

    /// The part of the time when the thread could run that it waited for a processor.
    #[must_use]
    pub fn ready_part(&self) -> f32 {
        self.waited_ns as f32 / (self.waited_ns + self.on_cpu_ns).max(1) as f32
    }

    /// How long the thread was on a processor since `before`.
    #[must_use]
    pub fn ran_since(&self, before: &Schedule) -> u64 {
        self.on_cpu_ns.saturating_sub(before.on_cpu_ns)
    }

    /// How long the thread was neither on a processor nor ready for one since `before`, `passed_ns`
    /// ago.
    #[must_use]
    pub fn off_since(&self, before: &Schedule, passed_ns: u64) -> u64 {
        passed_ns
            .saturating_sub(self.ran_since(before))
            .saturating_sub(self.waited_since(before))
    }
}

/// Parses `schedstat`; `None` if it does not have the kernel's format.
#[must_use]
pub fn schedule(text: &[u8]) -> Option<Schedule> {
    let text = std::str::from_utf8(text).ok()?;
    let mut words = text.split_ascii_whitespace().map(|word| word.parse().ok());
    Some(Schedule {
        on_cpu_ns: words.next()??,
        waited_ns: words.next()??,
        turns: words.next()??,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn off_time_is_the_remainder_of_the_time() {
        let before = Schedule {
            on_cpu_ns: 10,
            waited_ns: 20,
            turns: 1,
        };
        let now = Schedule {
            on_cpu_ns: 40,
            waited_ns: 25,
            turns: 2,
        };
        assert_eq!(now.off_since(&before, 100), 65);
        assert_eq!(now.off_since(&before, 30), 0);
    }

    #[test]
    fn a_state_follows_the_name() {
        assert_eq!(state(b"123 (pear) R 1 2"), Some(b'R'));
        assert_eq!(state(b"123 (a) S (b)) D 1 2"), Some(b'D'));
        for nonsense in [&b"123 (pear"[..], b"", b"1 (a)", b"1 (a) ", b"1 (a) 7"] {
            assert_eq!(state(nonsense), None);
            assert_eq!(last_on(nonsense), None);
        }
        let numbers = (4..=38).map(|_| " 0").collect::<String>();
        for (state, processor, found) in [
            ("R", "7", Some((true, 7))),
            ("R", "12\n", Some((true, 12))),
            ("R", "-", None),
            ("S", "7", Some((false, 7))),
        ] {
            let text = format!("5 (R ) R) {state}{numbers} {processor} 0 0");
            assert_eq!(last_on(text.as_bytes()), found);
        }
    }

    #[test]
    fn last_run_has_six_digits_behind_its_point() {
        let sched =
            |value| format!("x (7, #threads: 1)\n---\nse.exec_start   :   {value}\nse.v : 2");
        for (value, found) in [
            ("3719053.171915", Some(3_719_053_171_915)),
            ("0.000001", Some(1)),
            ("3719053.17", None),
            ("3719053", None),
            ("-1.000000", None),
            ("99999999999999999999.000000", None),
        ] {
            assert_eq!(last_ran(sched(value).as_bytes()), found, "{value}");
        }
        assert_eq!(last_ran(b"x (7, #threads: 1)\n"), None);
    }

    #[test]
    fn system_calls_are_distinguished() {
        let whereabouts = |text: &[u8]| whereabouts_on(&X86_64, text);
        assert_eq!(whereabouts(b"running\n"), Some(Whereabouts::Ready));
        let off = |call| {
            Some(Whereabouts::Off {
                call,
                sp: 0x007f_fd10,
                pc: 0x007f_0020,
            })
        };
        assert_eq!(whereabouts(b"-1 0x7ffd10 0x7f0020\n"), off(None));
        for (text, expected) in [
            ("202 0x55 0x189", Target::Futex),
            ("0 0x5 0x7f", Target::Descriptor(5)),
            ("45 0x1c 0x7f", Target::Descriptor(28)),
            (
                "7 0x7ffd00 0x1",
                Target::Poll {
                    fds: 0x7f_fd00,
                    count: 1,
                },
            ),
            ("7 0x0 0x0", Target::Clock),
            ("232 0x4 0x7f", Target::Many),
            ("230 0x1 0x1", Target::Clock),
            ("61 0xffffffffffffffff 0x0", Target::Child),
            ("262 0xffffff9c 0x7f", Target::Path),
            ("26 0x7f0000 0x1000", Target::Path),
            ("306 0x5 0x0", Target::Descriptor(5)),
            ("39 0x0 0x0", Target::Other),
        ] {
            let text = format!("{text} 0x0 0x0 0x0 0x0 0x7ffd10 0x7f0020\n");
            assert_eq!(whereabouts(text.as_bytes()), off(Some(expected)), "{text}");
        }
        for wrong in [
            "",
            "0 0x1",
            "-1 0x1",
            "x 0x1 0x2",
            "-1 7ffd10 7f0020",
            "-1 0x 0x",
        ] {
            assert_eq!(whereabouts(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn system_calls_of_arm64_have_their_own_numbers() {
        let of = |text: &str| {
            let text = format!("{text} 0x0 0x0 0x0 0x0 0xfffd10 0xff0020\n");
            match whereabouts_on(&AARCH64, text.as_bytes()) {
                Some(Whereabouts::Off { call, .. }) => call,
                other => panic!("{text}: {other:?}"),
            }
        };
        for (text, expected) in [
            ("98 0x55 0x189", Target::Futex),
            ("63 0x5 0x7f", Target::Descriptor(5)),
            ("207 0x1c 0x7f", Target::Descriptor(28)),
            ("202 0x1c 0x7f", Target::Descriptor(28)),
            ("73 0x0 0x0", Target::Clock),
            ("22 0x4 0x7f", Target::Many),
            ("115 0x1 0x1", Target::Clock),
            ("260 0xffffffffffffffff 0x0", Target::Child),
            ("56 0xffffff9c 0x7f", Target::Path),
            ("227 0x7f0000 0x1000", Target::Path),
            ("267 0x5 0x0", Target::Descriptor(5)),
            ("172 0x0 0x0", Target::Other),
        ] {
            assert_eq!(of(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn numbers_are_sorted() {
        for calls in [&X86_64, &AARCH64] {
            let lists = [calls.on_descriptor, calls.between, calls.poll, calls.many];
            let more = [calls.futex, calls.clock, calls.child, calls.path];
            for list in lists.into_iter().chain(more) {
                assert!(list.is_sorted(), "{list:?}");
            }
        }
    }

    #[test]
    fn schedules() {
        let expected = Schedule {
            on_cpu_ns: 12,
            waited_ns: 34,
            turns: 5,
        };
        assert_eq!(schedule(b"12 34 5\n"), Some(expected));
        assert_eq!(schedule(b"12 34\n"), None);
        let read = |text: &[u8]| schedule(text).unwrap().ready_part();
        assert_eq!((read(b"30 10 5\n"), read(b"0 0 0\n")), (0.25, 0.0));
        assert_eq!(schedule(b"12 -3 5\n"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = (whereabouts(&bytes), schedule(&bytes));
        }
    }
}
