//! The files of `/proc/self/task`: the kernel's data about each thread.

use crate::sys::fds;
use dwell_wall::proc::{self, Whereabouts};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

/// The directory, kept open: finding it by its path costs more than most reads.
pub struct TaskFiles(Option<File>);

impl TaskFiles {
    /// Opens the directory, only for reading files in it.
    #[must_use]
    pub fn open() -> TaskFiles {
        let mut options = std::fs::OpenOptions::new();
        options.read(true).custom_flags(libc::O_PATH);
        let directory = options.open("/proc/self/task").ok();
        TaskFiles(directory.map(|file| fds::move_up(file).unwrap_or_else(|file| file)))
    }

    /// How many threads there are; 0 if unknown. A directory has a link from each folder in it
    /// (stat(2)).
    #[must_use]
    pub fn count(&self) -> u64 {
        let Some(directory) = &self.0 else { return 0 };
        // SAFETY: zeroed is a valid stat, which fstat fills.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is open while self is; stat is a valid place for the result.
        let answer = unsafe { libc::fstat(directory.as_raw_fd(), &raw mut stat) };
        if answer != 0 {
            return 0;
        }
        // Of 32 bits on some processors.
        #[allow(clippy::useless_conversion)]
        u64::from(stat.st_nlink).saturating_sub(2)
    }

    /// Reads a thread's file into `buf`, as much as fits. `None` if there is no such thread, or it
    /// may not be read.
    pub fn read<'b>(&self, tid: i32, name: &str, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        let file = self.open_file(tid, name)?;
        let len = file.read_at(buf, 0).ok()?;
        buf.get(..len)
    }

    /// Whether a thread runs or is ready to, and otherwise where it waits.
    #[must_use]
    pub fn turn(&self, tid: i32) -> Turn {
        let mut buf = [0u8; 256];
        let text = self.read(tid, "syscall", &mut buf);
        match text.and_then(proc::whereabouts) {
            Some(Whereabouts::Ready) => Turn::Ready,
            Some(Whereabouts::Off { sp, pc, .. }) => Turn::Off { sp, pc },
            None => Turn::Unknown,
        }
    }

    fn open_file(&self, tid: i32, name: &str) -> Option<File> {
        let path = CString::new(format!("{tid}/{name}")).ok()?;
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        let directory = self.0.as_ref()?.as_raw_fd();
        // SAFETY: the descriptor is open while self is; path is a C string.
        let fd = unsafe { libc::openat(directory, path.as_ptr(), flags) };
        if fd < 0 {
            return None;
        }
        // SAFETY: just opened, and nobody else's.
        Some(unsafe { File::from_raw_fd(fd) })
    }
}

/// Whether a thread has its turn on a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It runs, or is ready to.
    Ready,
    /// It waits in the kernel: the stack pointer of its user code and the code's address.
    Off {
        /// The stack pointer.
        sp: u64,
        /// The address.
        pc: u64,
    },
    /// The kernel does not report it, or there is no such thread.
    Unknown,
}

/// Number of sets of threads' files that are kept open: 512 files. Each takes 4.4 KB in
/// the kernel (its `Slab` with 4,000 of them open).
const KEPT_SETS: usize = 32;
const KEPT_SET: usize = 16;

/// One kind of file of threads that are read again and again. The files are kept open: opening and
/// closing one costs several times as much as reading it.
pub struct KeptFiles {
    name: &'static str,
    /// Each set has the most recently read files first.
    sets: Vec<Vec<(i32, File)>>,
}

impl KeptFiles {
    /// No file is open yet.
    #[must_use]
    pub fn new(name: &'static str) -> KeptFiles {
        KeptFiles {
            name,
            sets: (0..KEPT_SETS).map(|_| Vec::new()).collect(),
        }
    }

    /// Which file of theirs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Like [`TaskFiles::read`]; the file stays open until other threads need its place.
    pub fn read<'b>(&mut self, files: &TaskFiles, tid: i32, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        let set = self.sets.get_mut(tid as usize % KEPT_SETS)?;
        if let Some(at) = set.iter().position(|(whose, _)| *whose == tid) {
            if let Some((_, file)) = set.get(at)
                && let Ok(len) = file.read_at(buf, 0)
            {
                set.get_mut(..=at)?.rotate_right(1);
                return buf.get(..len);
            }
            // It belongs to an exited thread that had the same number.
            set.remove(at);
        }
        let file = files.open_file(tid, self.name)?;
        let len = file.read_at(buf, 0).ok()?;
        // No file is kept if the program has no numbers to spare.
        if let Ok(file) = fds::move_up(file) {
            set.truncate(KEPT_SET - 1);
            set.insert(0, (tid, file));
        }
        buf.get(..len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::process;

    #[test]
    fn a_thread_has_files() {
        let files = TaskFiles::open();
        let mut buf = [0u8; 128];
        let own = process::own_tid();
        // The kernel updates its account at its tick.
        while process::own_cpu() < std::time::Duration::from_millis(30) {
            std::hint::spin_loop();
        }
        let text = files.read(own, "schedstat", &mut buf).unwrap();
        assert!(dwell_wall::proc::schedule(text).unwrap().on_cpu_ns > 0);
        let text = files.read(own, "syscall", &mut buf).unwrap();
        assert!(dwell_wall::proc::whereabouts(text).is_some());
        assert!(files.read(i32::MAX, "syscall", &mut buf).is_none());
        // For the reading thread the file shows the read itself.
        assert_ne!(files.turn(own), Turn::Unknown);
        assert_eq!(files.turn(i32::MAX), Turn::Unknown);
    }

    #[test]
    fn file_kept_open_has_present_content() {
        let (files, mut kept) = (TaskFiles::open(), KeptFiles::new("schedstat"));
        let mut buf = [0u8; 128];
        let mut asked = |tid| {
            let text = kept.read(&files, tid, &mut buf)?;
            dwell_wall::proc::schedule(text).map(|told| told.on_cpu_ns)
        };
        let own = process::own_tid();
        let before = asked(own).unwrap();
        // The kernel updates its account at its tick.
        while asked(own).unwrap() == before {
            std::hint::spin_loop();
        }
        // Another thread at the same place, and one that has exited.
        let (tell, told) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || tell.send(process::own_tid()));
        let tid = told.recv().unwrap();
        other.join().unwrap().unwrap();
        while asked(tid).is_some() {
            std::thread::yield_now();
        }
        assert!(asked(own + KEPT_SETS as i32 * 1_000_000).is_none());
        assert!(asked(own).is_some());
    }

    #[test]
    fn threads_are_counted_as_they_come_and_go() {
        let threads = TaskFiles::open();
        let before = threads.count();
        assert!(before >= 1);
        // Other tests' threads begin and end at the same time, but not so many.
        let some: Vec<_> = (0..200)
            .map(|_| {
                std::thread::spawn(|| std::thread::park_timeout(std::time::Duration::from_secs(60)))
            })
            .collect();
        let during = threads.count();
        for thread in some {
            thread.thread().unpark();
            thread.join().unwrap();
        }
        assert!(during >= before + 100, "{before} {during}");
        assert!(threads.count() <= during - 100);
    }
}
