//! Waits until no native thread is halfway through attaching to the JVM.
//!
//! The first JVMTI environment of a running JVM makes it read the `Thread` object of every thread,
//! to prepare for virtual ones (src/hotspot/share/prims/jvmtiExport.cpp, `get_jvmti_interface`;
//! jvmtiEnvBase.cpp, `VM_SetNotifyJvmtiEventsMode`). A native thread that is just attaching has no
//! such object yet, and the JVM crashes (seen with 21 and 25 to 28). So the agent checks all
//! threads first, and waits for a moment without such threads. It misses a thread that begins to
//! attach after its check and before the JVM's own; that time is short.

use dwell_inside::jvm::vm::LIBRARY;
use dwell_recorder::native::Modules;
use dwell_recorder::sys::loader::Library;
use dwell_walker::hotspot::layout::{Layout, present};
use dwell_walker::hotspot::{continuation, threads};
use dwell_walker::{Fault, Memory};
use std::ffi::CString;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Longest wait for a good moment.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two checks.
const PAUSE: Duration = Duration::from_micros(200);

/// This process's memory, before the signal handler exists that makes direct reads safe.
struct OwnMemory(File);

impl Memory for OwnMemory {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        let mut bytes = [0; 8];
        self.read(addr, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        self.0.read_exact_at(buf, addr).map_err(|_| Fault { addr })
    }
}

/// Waits for a moment in which no thread is attaching. Does not wait if the JVM's structures cannot
/// be read.
///
/// # Errors
/// A message for the user: there was no such moment.
pub fn wait() -> Result<(), String> {
    let Some((memory, layout)) = look_in() else {
        return Ok(());
    };
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if all_are_whole(&memory, &layout) {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    Err(
        "native threads keep attaching to this JVM, and loading an agent during that may crash it; \
         try again, or start the JVM with -agentpath"
            .into(),
    )
}

fn look_in() -> Option<(OwnMemory, Layout)> {
    let memory = OwnMemory(File::open("/proc/self/mem").ok()?);
    let modules = Modules::only_own(|name| name == LIBRARY);
    let (_, image) = modules.library(LIBRARY)?;
    let library = Library::loaded(&CString::new(image.key.path.clone()).ok()?)?;
    let find = |name: &str| library.symbol(&CString::new(name).ok()?);
    let layout = Layout::load(dwell_walker::Host, &memory, &find).ok()?;
    let has_virtual_threads = present(layout.thread_vthread) && present(layout.thread_obj);
    has_virtual_threads.then_some((memory, layout))
}

/// Whether every thread has its object. A thread that cannot be read is about to exit.
fn all_are_whole<M: Memory>(memory: &M, layout: &Layout) -> bool {
    let mut whole = true;
    let _ = threads::for_each(memory, layout, |thread| {
        let handle = memory.word(thread.wrapping_add(layout.thread_obj));
        let object = match handle {
            Ok(0) => Ok(0),
            Ok(handle) => continuation::handle(memory, layout, handle),
            Err(fault) => Err(fault),
        };
        whole &= object != Ok(0);
    });
    whole
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_read_and_unmapped_memory_is_a_fault() {
        let memory = OwnMemory(File::open("/proc/self/mem").unwrap());
        let value = 0x1234_5678_9abc_def0_u64;
        assert_eq!(memory.word((&raw const value) as u64), Ok(value));
        assert_eq!(memory.word(8), Err(Fault { addr: 8 }));
    }

    #[test]
    fn thread_without_object_counts_as_attaching() {
        // A list of two threads, at addresses of this process.
        let object = 77u64;
        let handle = &raw const object as u64;
        let (whole, attaching) = ([handle, 0], [0u64, 0]);
        let threads = [&raw const whole as u64, &raw const attaching as u64];
        let list = [2u64, &raw const threads as u64];
        let place = &raw const list as u64;
        let layout = Layout {
            threads_list: &raw const place as u64,
            threads_list_length: 0,
            threads_list_threads: 8,
            thread_obj: 0,
            ..Layout::EMPTY
        };
        let memory = OwnMemory(File::open("/proc/self/mem").unwrap());
        assert!(!all_are_whole(&memory, &layout));
        let threads = [&raw const whole as u64; 2];
        let list = [2u64, &raw const threads as u64];
        let place = &raw const list as u64;
        let layout = Layout {
            threads_list: &raw const place as u64,
            ..layout
        };
        assert!(all_are_whole(&memory, &layout));
    }
}
