//! Samples of CPU time: a perf event for each thread on each processor, which threads started later
//! inherit, and one ring for each processor.

use crate::running::{self, Copied};
use crate::sys::perf::{self, Event, Wish};
use std::io;
use std::time::Duration;

/// Bytes of stack in a sample. Deeper frames are read later, because old frames rarely change.
const STACK_BYTES: u32 = 48 << 10;
/// Bytes of a ring, largest first: the permitted amount of locked memory differs between machines
/// and users.
const RING_BYTES: [usize; 5] = [4 << 20, 1 << 20, 512 << 10, 256 << 10, 128 << 10];
/// Number of descriptors left for other uses.
const DESCRIPTORS_SPARED: usize = 64;
/// Maximum time between two reads of the rings.
pub const DRAIN: Duration = Duration::from_millis(10);

/// The reason why sampling is not possible.
#[derive(Debug)]
pub enum Refused {
    /// The kernel's answer.
    Kernel(io::Error),
    /// More descriptors than are allowed.
    TooMany {
        /// Processors.
        processors: usize,
        /// Number of descriptors needed.
        needed: usize,
        /// The limit.
        limit: usize,
    },
}

/// Opens an event without samples, so that later ones open at once. For the first event of the
/// machine the kernel waits for all processors (`account_event` of kernel/events/core.c). On a busy
/// machine that takes seconds, in which no thread would be read.
pub fn first_event() -> Option<Event> {
    let wish = Wish {
        period_ns: 1 << 60,
        stack_bytes: 0,
        ring_bytes: 0,
        inherit: false,
    };
    // Refused: the events of the recording have the same answer.
    Event::open(0, -1, &wish).ok()
}

/// The perf events of a recording.
pub struct Cpu {
    rings: Vec<Event>,
    _others: Vec<Event>,
}

impl Cpu {
    /// Opens events on these threads.
    ///
    /// # Errors
    /// [`Refused`]. Threads that have exited are left out.
    pub fn open(tids: &[i32], interval: Duration) -> Result<Cpu, Refused> {
        let processors = processors();
        let limit = descriptors();
        let needed = tids.len() * processors.len() + DESCRIPTORS_SPARED;
        if needed > limit {
            return Err(Refused::TooMany {
                processors: processors.len(),
                needed,
                limit,
            });
        }
        let mut wish = Wish {
            period_ns: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX),
            stack_bytes: STACK_BYTES,
            ring_bytes: 0,
            inherit: true,
        };
        let (mut rings, mut others) = (Vec::new(), Vec::new());
        let mut refusal = None;
        for processor in processors {
            let mut ring: Option<Event> = None;
            for tid in tids {
                let event = match Event::open(*tid, processor, &wish) {
                    Ok(event) => event,
                    Err(error) => {
                        refusal = Some(error);
                        continue;
                    }
                };
                match &ring {
                    Some(ring) => {
                        event.write_to(ring).map_err(Refused::Kernel)?;
                        others.push(event);
                    }
                    None => ring = Some(mapped(event, &mut wish).map_err(Refused::Kernel)?),
                }
            }
            rings.extend(ring);
        }
        match (rings.is_empty(), refusal) {
            (true, Some(error)) => Err(Refused::Kernel(error)),
            _ => Ok(Cpu {
                rings,
                _others: others,
            }),
        }
    }

    /// Waits for samples; with `at_once` it returns at the first one.
    pub fn wait(&self, time: Duration, at_once: bool) {
        let all: Vec<&Event> = self.rings.iter().collect();
        // Reading several samples together costs less.
        if !at_once && time > Duration::from_millis(2) {
            std::thread::sleep(time);
        } else {
            perf::wait(&all, time);
        }
    }

    /// Visits the new samples; returns the number that the kernel had no room for.
    pub fn drain(&self, mut visit: impl FnMut(Copied)) -> u64 {
        let mut lost = 0;
        for ring in &self.rings {
            ring.drain(|record| match running::parse(record) {
                Some(copied) => visit(copied),
                None => lost += lost_in(record),
            });
        }
        lost
    }
}

fn mapped(mut event: Event, wish: &mut Wish) -> io::Result<Event> {
    let mut refusal = io::Error::from(io::ErrorKind::OutOfMemory);
    let tried = RING_BYTES
        .iter()
        .filter(|bytes| wish.ring_bytes == 0 || wish.ring_bytes == **bytes);
    for ring_bytes in tried.copied().collect::<Vec<_>>() {
        let smaller = Wish {
            ring_bytes,
            ..*wish
        };
        match event.map(&smaller) {
            Ok(()) => return Ok(event),
            Err(error) => refusal = error,
        }
    }
    Err(refusal)
}

/// Number of lost samples in a record (`PERF_RECORD_LOST`: id, number).
fn lost_in(record: &[u8]) -> u64 {
    const LOST: u32 = 2;
    let kind = record
        .first_chunk::<4>()
        .map(|bytes| u32::from_ne_bytes(*bytes));
    let number = record.get(16..24).and_then(|bytes| bytes.try_into().ok());
    match (kind, number) {
        (Some(LOST), Some(number)) => u64::from_ne_bytes(number),
        _ => 0,
    }
}

/// Online processors.
fn processors() -> Vec<i32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let found = list(text.trim());
    if found.is_empty() { vec![0] } else { found }
}

/// Parses `0-3,8` in the kernel's format.
fn list(text: &str) -> Vec<i32> {
    /// More than any machine has.
    const MAX: i32 = 1 << 16;
    let ranges = text.split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (i32, i32) = (first.parse().ok()?, last.parse().ok()?);
        (first >= 0 && last < MAX).then_some(first..=last)
    });
    ranges.flatten().collect()
}

/// Maximum number of open files, after raising the limit as far as permitted.
pub(super) fn descriptors() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let allowed = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    allowed.map_or(usize::MAX, |allowed| {
        usize::try_from(allowed).unwrap_or(usize::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(list("0"), [0]);
        assert_eq!(list("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(list(""), [0; 0]);
        assert_eq!(list("x,1-999999999,7"), [7]);
    }

    #[test]
    fn records_of_lost_samples_are_counted() {
        let words = [2u64 | 24 << 48, 99, 7];
        let record: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(lost_in(&record), 7);
        assert_eq!(lost_in(&record[..20]), 0);
        assert_eq!(lost_in(&[9; 24]), 0);
    }

    #[test]
    fn threads_that_are_started_later_are_sampled_too() {
        let own = std::fs::read_link("/proc/thread-self").unwrap();
        let tid = own.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let cpu = match Cpu::open(&[tid], Duration::from_millis(1)) {
            Ok(cpu) => cpu,
            Err(Refused::Kernel(error)) => {
                assert!(matches!(
                    error.raw_os_error(),
                    Some(libc::EACCES | libc::EPERM)
                ));
                return;
            }
            Err(refused) => panic!("{refused:?}"),
        };
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..500 {
            std::thread::spawn(|| {
                let began = std::time::Instant::now();
                while began.elapsed() < Duration::from_millis(5) {
                    std::hint::spin_loop();
                }
            })
            .join()
            .unwrap();
            cpu.drain(|copied| *seen.entry(copied.tid == tid).or_insert(0) += 1);
            if seen.get(&false).is_some_and(|samples| *samples >= 5) {
                return;
            }
        }
        panic!("no sample of a new thread: {seen:?}");
    }
}
