//! The safepoint that is under way, by the JVM's own data. If libjvm has no symbols (8), the
//! polling page shows a safepoint, and its operation is on the stack of the thread that requested
//! it.

use crate::clock::now_ns;
use crate::memory::Pages;
use crate::task::Tasks;
use crate::vm::Vm;
use dwell_native::elf::Segment;
use dwell_native::maps;
use dwell_walker::hotspot::operations::{self, Operation};
use dwell_walker::hotspot::safepoints::{self, NAME_MAX, Safepoints, State};
use dwell_walker::hotspot::threads;
use dwell_walker::native::NativeCode;
use dwell_walker::{Host, Memory};
use dwell_wall::proc::Whereabouts;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum number of threads searched for the one that requested it.
const THREADS_MAX: usize = 1 << 16;
/// The first names of operations, in the order of their numbers.
const FIRST_NAMES: [&str; 3] = ["Dummy", "ThreadStop", "ThreadDump"];
/// Larger segments of libjvm are not searched for them.
const SEGMENT_BYTES_MAX: u64 = 16 << 20;

/// A safepoint with threads by their addresses.
pub(crate) struct Found {
    /// Whether all threads have stopped.
    pub(crate) is_reached: bool,
    /// Its operation; empty if unknown.
    pub(crate) operation: String,
    /// Time since its request.
    pub(crate) since: Option<Duration>,
    /// The thread that requested it.
    pub(crate) asked_by: Option<u64>,
    /// Threads that have not stopped yet.
    pub(crate) late: Vec<u64>,
}

/// The current safepoint.
pub(crate) fn look(vm: &Vm<'_>) -> Option<Found> {
    match (&vm.safepoints, vm.polling_page) {
        (Some(safepoints), _) => noted(vm, safepoints),
        (None, Some(page)) => polled(vm, page),
        (None, None) => None,
    }
}

fn noted(vm: &Vm<'_>, safepoints: &Safepoints) -> Option<Found> {
    let state = safepoints.state(vm.live).ok()?;
    if state == State::Running {
        return None;
    }
    let noted = safepoints.noted(vm.live).ok().flatten();
    let mut buf = [0; NAME_MAX];
    let operation = noted.map(|noted| safepoints.operation(vm.live, noted.operation, &mut buf));
    let now_ns = now_ns();
    let since = noted.map(|noted| now_ns.saturating_sub(noted.began_ns));
    Some(Found {
        is_reached: state == State::Reached,
        operation: operation.unwrap_or("").to_owned(),
        since: since.map(Duration::from_nanos),
        asked_by: safepoints.asked_by(vm.live),
        late: match state {
            State::Reaching => late(vm),
            _ => Vec::new(),
        },
    })
}

/// From the request until the end of a safepoint, the page is not readable.
fn polled(vm: &Vm<'_>, page_at: u64) -> Option<Found> {
    let page = vm.live.word(page_at).ok()?;
    let is_armed = || {
        let path = format!("/proc/{}/maps", vm.target.jvm().pid);
        is_closed(&std::fs::read(path).unwrap_or_default(), page)
    };
    if !is_armed() {
        return None;
    }
    let late = late(vm);
    // The page becomes readable before a thread continues: so the threads seen running before were
    // late.
    is_armed().then(|| Found {
        is_reached: late.is_empty(),
        operation: String::new(),
        since: None,
        asked_by: None,
        late,
    })
}

/// Whether `page` is mapped and not readable.
fn is_closed(maps: &[u8], page: u64) -> bool {
    let mut all = maps::parse(maps).filter_map(Result::ok);
    let mapping = all.find(|mapping| mapping.contains(page));
    mapping.is_some_and(|it| !it.permissions.is_readable)
}

fn late(vm: &Vm<'_>) -> Vec<u64> {
    let (mut late, mut known) = (Vec::new(), HashSet::new());
    let _ = safepoints::for_each_late(vm.live, &vm.layout, |thread, _| {
        if known.insert(thread) {
            late.push(thread);
        }
    });
    late
}

impl Found {
    /// Adds the requesting thread, the operation and the time, if the JVM has no record of them.
    /// `outer` maps the kernel ids of threads that the JVM knows to those that we see.
    pub(crate) fn with_operation(
        self,
        vm: &Vm<'_>,
        tasks: &Tasks,
        outer: &HashMap<i32, i32>,
    ) -> Found {
        if self.since.is_some() {
            return self;
        }
        let is_code = |pc: u64| vm.modules.is_vm(pc);
        let operation = match &vm.safepoints {
            Some(safepoints) => (safepoints.under_way(vm.live))
                .and_then(|at| operations::at(Host, vm.live, at, &is_code)),
            None => waited_for(vm, tasks, outer),
        };
        let Some(operation) = operation else {
            return self;
        };
        let mut buf = [0; NAME_MAX];
        let name = operation.kind.map(|kind| match &vm.safepoints {
            Some(safepoints) => safepoints.operation(vm.live, kind, &mut buf),
            None => match names(vm) {
                Some(names) => safepoints::operation_name(vm.live, names, kind, &mut buf),
                None => "",
            },
        });
        Found {
            operation: name.unwrap_or("").to_owned(),
            since: since(operation.asked_ms),
            asked_by: Some(operation.thread),
            ..self
        }
    }
}

/// The time since then; `None` if it is more than some days.
fn since(asked_ms: u64) -> Option<Duration> {
    const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    let since = now.checked_sub(Duration::from_millis(asked_ms))?;
    (since < LONGEST).then_some(since)
}

/// The operation that is under way, among those that threads wait for: the first one that is no
/// longer in the queue.
fn waited_for(vm: &Vm<'_>, tasks: &Tasks, outer: &HashMap<i32, i32>) -> Option<Operation> {
    let (live, layout) = (vm.live, &vm.layout);
    let mut all = Vec::new();
    let _ = threads::for_each(live, layout, |thread| all.push(thread));
    let is_code = |pc: u64| vm.modules.is_vm(pc);
    let waits = all.into_iter().take(THREADS_MAX).filter_map(|thread| {
        let state = live.u32(thread.wrapping_add(layout.thread_state)).ok()?;
        if u64::from(state) != layout.state_blocked {
            return None;
        }
        let tid = outer.get(&threads::kernel_id(live, layout, thread).ok()?)?;
        let Some(Whereabouts::Off { sp, .. }) = tasks.whereabouts(*tid) else {
            return None;
        };
        let high = match threads::anchor(live, layout, thread).ok()?.sp {
            0 => threads::stack_high(live, layout, thread).ok()?,
            sp => sp,
        };
        operations::on_stack(Host, &Pages::new(live), thread, (sp, high), &is_code)
    });
    waits.min_by_key(|it| (it.is_queued, it.asked_ms))
}

/// Address of the names of operations in libjvm (`VM_Operation::_names`), which has no symbol. It
/// is a table of pointers, identified by its first names.
fn names(vm: &Vm<'_>) -> Option<u64> {
    let (base, image) = vm.modules.libjvm()?;
    let elf = image.elf()?;
    let read = |segment: &Segment| -> Option<(u64, Vec<u8>)> {
        let at = base.wrapping_add(segment.vaddr.wrapping_sub(elf.base_svma()));
        let len = usize::try_from(segment.file_len.min(SEGMENT_BYTES_MAX)).ok()?;
        let mut bytes = vec![0; len];
        vm.live.read(at, &mut bytes).ok()?;
        Some((at, bytes))
    };
    let of = |is_writable: bool| {
        let all = elf.segments().iter();
        let all = all.filter(move |it| !it.is_executable && it.is_writable == is_writable);
        all.filter_map(read)
    };
    let texts: Vec<u64> = of(false)
        .flat_map(|(at, bytes)| places(at, &bytes, FIRST_NAMES[1]))
        .collect();
    let tables: Vec<u64> = of(true)
        .flat_map(|(at, bytes)| tables(at, &bytes, &texts))
        .collect();
    tables.into_iter().find(|table| {
        let mut numbered = (0..).zip(FIRST_NAMES);
        let mut buf = [0; NAME_MAX];
        numbered.all(|(at, name)| safepoints::operation_name(vm.live, *table, at, &mut buf) == name)
    })
}

/// Addresses of `text`, as a whole string, in bytes that start at `start`.
fn places(start: u64, bytes: &[u8], text: &str) -> Vec<u64> {
    let wanted = [b"\0", text.as_bytes(), b"\0"].concat();
    let found = (start.wrapping_add(1)..).zip(bytes.windows(wanted.len()));
    let found = found.filter(|(_, window)| *window == wanted.as_slice());
    found.map(|(at, _)| at).collect()
}

/// Tables among words at `start` whose second entry is one of `texts`.
fn tables(start: u64, bytes: &[u8], texts: &[u64]) -> Vec<u64> {
    // Words are aligned to their size.
    let skipped = (start.wrapping_neg() & 7) as usize;
    let words = bytes.get(skipped..).unwrap_or_default().chunks_exact(8);
    let words = (start.wrapping_add(skipped as u64)..).step_by(8).zip(words);
    let found = words.filter_map(|(at, word)| {
        let word = u64::from_le_bytes(word.try_into().ok()?);
        texts.contains(&word).then(|| at.wrapping_sub(8))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_page_counts_as_armed() {
        let maps = b"7f0000000000-7f0000001000 r--p 00000000 00:00 0\n\
            7f0000001000-7f0000002000 ---p 00000000 00:00 0 \n\
            nonsense\n\
            7f0000002000-7f0000003000 rw-p 00000000 00:00 0 [stack]\n";
        let closed = |page| is_closed(maps, page);
        let pages = [0x7f00_0000_0000, 0x7f00_0000_1000, 0x7f00_0000_2000, 0x1000];
        assert_eq!(pages.map(closed), [false, true, false, false]);
        assert!(!is_closed(b"", 0));
    }

    #[test]
    fn name_tables_are_found_by_their_texts() {
        let text = b"\0ThreadStop\0VM_ThreadStop\0ThreadStopped\0ThreadStop\0";
        let found = places(0x1000, text, "ThreadStop");
        assert_eq!(found, [0x1001, 0x1000 + 40]);
        assert_eq!(places(0, b"", "ThreadStop"), []);
        let words: [u64; 4] = [0x77, 0x1001, 0x1002, 0x1001];
        let bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
        assert_eq!(tables(0x2000, &bytes, &found), [0x2000, 0x2010]);
        let shifted = [&[0; 4][..], &bytes].concat();
        assert_eq!(tables(0x1ffc, &shifted, &found), [0x2000, 0x2010]);
        assert_eq!(tables(0x2001, &[0; 3], &found), []);
    }

    #[test]
    fn impossible_request_times_are_omitted() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now_ms = now.as_millis() as u64;
        let told = since(now_ms - 5000).unwrap();
        assert!((5..60).contains(&told.as_secs()), "{told:?}");
        for asked_ms in [0, now_ms + 1_000_000, u64::MAX] {
            assert_eq!(since(asked_ms), None);
        }
    }
}
