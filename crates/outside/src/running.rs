//! Stacks of running threads, by one perf sample each: the kernel copies registers and stack when
//! the thread has used a little more CPU time. No thread is stopped.

use crate::arch;
use crate::sys::perf::{self, Event, RING_BYTES_MIN, Wish};
use dwell_walker::Regs;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Maximum number of threads sampled at a time; each takes some locked memory.
const AT_ONCE: usize = 32;
/// CPU time after which a thread is sampled.
const PERIOD_NS: u64 = 500_000;
/// Bytes of stack in a sample: a record's size has 16 bits.
pub const STACK_BYTES: u32 = 60 << 10;
/// Bytes of a ring: room for one sample.
const RING_BYTES: usize = RING_BYTES_MIN;

/// The kernel's copy of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// Its kernel id.
    pub tid: i32,
    /// Its process.
    pub pid: u32,
    /// Time of the sample, on the monotonic clock.
    pub time_ns: u64,
    /// CPU time that the sample represents.
    pub period_ns: u64,
    /// The kernel's frames, innermost first: the interrupted address, then return addresses.
    pub kernel: Vec<u64>,
    /// Its registers.
    pub regs: Regs,
    /// Its stack from [`Copied::low`] on.
    pub stack: Vec<u8>,
}

impl Copied {
    /// Address of the copied stack: one word below the stack pointer. The kernel does not copy that
    /// word. But after `leave` or `pop rbp`, unwind rules still read the caller's rbp there, which
    /// is then in the register: so the register's value is used for the word.
    #[must_use]
    pub fn low(&self) -> u64 {
        self.regs.sp.wrapping_sub(WORD as u64)
    }
}

/// Bytes of a word.
const WORD: usize = 8;

/// Threads that are being sampled.
pub struct Sampling {
    events: Vec<(i32, Event)>,
    /// Start of the sampling.
    began: Instant,
    /// The error of the last refused thread.
    refusal: Option<std::io::Error>,
}

/// The samples by thread, and the error of the last refused thread. A thread without a sample did
/// not run, or may not be sampled.
pub type Sampled = (HashMap<i32, Copied>, Option<std::io::Error>);

impl Sampling {
    /// Begins with the first [`AT_ONCE`] of these threads.
    #[must_use]
    pub fn begin(tids: &[i32]) -> Sampling {
        let wish = Wish {
            period_ns: PERIOD_NS,
            stack_bytes: STACK_BYTES,
            ring_bytes: RING_BYTES,
            inherit: false,
        };
        let mut all = Sampling {
            events: Vec::new(),
            began: Instant::now(),
            refusal: None,
        };
        for tid in tids.iter().take(AT_ONCE) {
            let opened = Event::open(*tid, -1, &wish);
            match opened.and_then(|mut event| event.map(&wish).map(|()| event)) {
                Ok(event) => all.events.push((*tid, event)),
                Err(error) => all.refusal = Some(error),
            }
        }
        all
    }

    /// Waits until each thread has a sample, or `time` has passed since the start.
    #[must_use]
    pub fn end(mut self, time: Duration) -> Sampled {
        let mut found = HashMap::new();
        let until = self.began + time;
        loop {
            self.events.retain(|(tid, event)| {
                event.drain(|record| {
                    if let Some(copied) = parse(record) {
                        found.entry(*tid).or_insert(copied);
                    }
                });
                !found.contains_key(tid)
            });
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.events.is_empty() {
                return (found, self.refusal);
            }
            let all: Vec<&Event> = self.events.iter().map(|(_, event)| event).collect();
            perf::wait(&all, left.min(Duration::from_millis(10)));
        }
    }
}

/// Samples threads until each has a sample or the time is over; none if the time is zero.
#[must_use]
pub fn sample(tids: &[i32], time: Duration) -> Sampled {
    let (mut found, mut refusal) = (HashMap::new(), None);
    if time.is_zero() {
        return (found, refusal);
    }
    for group in tids.chunks(AT_ONCE) {
        let (some, why) = Sampling::begin(group).end(time);
        found.extend(some);
        refusal = why.or(refusal);
    }
    (found, refusal)
}

/// Parses a sample in the kernel's format; `None` if it is another record, or has no registers (a
/// kernel thread).
#[must_use]
pub fn parse(record: &[u8]) -> Option<Copied> {
    const SAMPLE: u32 = 9;
    const ABI_64: u64 = 2;
    let kind = u32::from_ne_bytes(record.get(..4)?.try_into().ok()?);
    if kind != SAMPLE {
        return None;
    }
    let mut rest = record.get(perf::HEADER..)?;
    let mut word = || -> Option<u64> {
        let (first, tail) = rest.split_first_chunk::<8>()?;
        rest = tail;
        Some(u64::from_ne_bytes(*first))
    };
    let ids = word()?;
    let (pid, tid) = (ids as u32, (ids >> 32) as i32);
    let (time_ns, period_ns) = (word()?, word()?);
    let kernel = kernel_frames(&mut word)?;
    if word()? != ABI_64 {
        return None;
    }
    let mut registers = [0; arch::PERF_REGISTERS.len()];
    for register in &mut registers {
        *register = word()?;
    }
    let regs = arch::of_sample(registers);
    let size = usize::try_from(word()?).ok()?;
    let copy = match size {
        0 => &[],
        _ => {
            let (stack, tail) = rest.split_at_checked(size)?;
            let filled = u64::from_ne_bytes(*tail.first_chunk::<8>()?);
            stack.get(..usize::try_from(filled).ok()?)?
        }
    };
    let mut stack = Vec::with_capacity(WORD + copy.len());
    stack.extend(regs.fp.to_ne_bytes());
    stack.extend(copy);
    Some(Copied {
        tid,
        pid,
        time_ns,
        period_ns,
        kernel,
        regs,
        stack,
    })
}

/// Parses the call chain: a number, and that many addresses, with marks of their kind in between.
fn kernel_frames(word: &mut impl FnMut() -> Option<u64>) -> Option<Vec<u64>> {
    /// `PERF_CONTEXT_MAX`: marks are larger than any address.
    const MARKS: u64 = (-4095i64) as u64;
    const LEN_MAX: u64 = 4096;
    let len = word()?;
    let mut kernel = Vec::new();
    if len > LEN_MAX {
        return None;
    }
    for _ in 0..len {
        kernel.extend(Some(word()?).filter(|address| *address < MARKS));
    }
    Some(kernel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(abi: u64, stack: &[u8], filled: u64) -> Vec<u8> {
        let mut words = vec![9u64, 77 << 32 | 5, 1000, 500];
        words.extend([
            3,
            -128i64 as u64,
            0xffff_ffff_8100_0000,
            0xffff_ffff_8100_0040,
        ]);
        words.push(abi);
        words.extend(arch::PERF_REGISTERS.map(u64::from));
        words.push(stack.len() as u64);
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        if !stack.is_empty() {
            bytes.extend(stack);
            bytes.extend(filled.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn samples_are_read() {
        let copied = parse(&record(2, &[1, 2, 3, 4, 5, 6, 7, 8], 5)).unwrap();
        assert_eq!((copied.pid, copied.tid), (5, 77));
        assert_eq!((copied.time_ns, copied.period_ns), (1000, 500));
        let kernel = [0xffff_ffff_8100_0000, 0xffff_ffff_8100_0040];
        assert_eq!(copied.kernel, kernel);
        let regs = arch::of_sample(arch::PERF_REGISTERS.map(u64::from));
        assert_eq!(copied.regs, regs);
        assert_eq!(copied.low(), regs.sp.wrapping_sub(8));
        let below = regs.fp.to_ne_bytes();
        assert_eq!(copied.stack, [&below[..], &[1, 2, 3, 4, 5]].concat());
        assert_eq!(parse(&record(2, &[], 0)).unwrap().stack.len(), 8);
        assert_eq!(parse(&record(0, &[], 0)), None, "no registers");
        assert_eq!(parse(&record(2, &[1; 8], 9)), None, "more than there is");
        assert_eq!(parse(&[1; 8]), None, "another record");
    }

    #[test]
    fn a_thread_that_runs_is_sampled_and_one_that_waits_is_not() {
        use std::sync::atomic::{AtomicBool, Ordering};
        use std::sync::{Arc, mpsc};
        let (tell, told) = mpsc::channel();
        let end = Arc::new(AtomicBool::new(false));
        let (ended, id) = (Arc::clone(&end), tell.clone());
        let busy = std::thread::spawn(move || {
            let _ = id.send(std::fs::read_link("/proc/thread-self"));
            while !ended.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let (wake, woken) = mpsc::channel::<()>();
        let tid = || {
            let path = told.recv().unwrap().unwrap();
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .parse::<i32>()
                .unwrap()
        };
        let runs = tid();
        let idle = std::thread::spawn(move || {
            let _ = tell.send(std::fs::read_link("/proc/thread-self"));
            let _ = woken.recv();
        });
        let waits = tid();
        // The busy thread gets a sample, and the wait for the other one ends without one.
        let (mut found, refusal) = sample(&[runs], Duration::from_secs(60));
        found.extend(sample(&[waits], Duration::from_millis(300)).0);
        end.store(true, Ordering::Relaxed);
        drop(wake);
        busy.join().unwrap();
        idle.join().unwrap();
        if let Some(error) = refusal {
            // Some machines do not permit perf events at all.
            assert!(matches!(
                error.raw_os_error(),
                Some(libc::EACCES | libc::EPERM)
            ));
            return;
        }
        let copied = &found[&runs];
        assert_eq!(copied.tid, runs);
        assert!(copied.regs.sp != 0 && copied.stack.len() > WORD);
        assert!(!found.contains_key(&waits));
    }

    proptest! {
        #[test]
        fn any_record_causes_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut record = 9u32.to_ne_bytes().to_vec();
            record.extend(&bytes);
            let _ = parse(&record);
            let _ = parse(&bytes);
        }
    }
}
