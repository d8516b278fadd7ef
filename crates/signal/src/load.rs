//! Loads that cannot crash: [`Live`], the process's own memory as a [`Memory`].
//!
//! A load is one instruction whose address the fault handler knows (see [`crate::fault`]). Reads
//! that succeed cost a call and a load. Reads that fail cost a signal (10 to 20 us), so callers
//! should avoid them. While another handler is in front of ours, the kernel copies, because that
//! handler may end the process at a fault.

use crate::sys::{self, Errno};
use crate::{arch, fault};
use dwell_walker::{Fault, Memory};

/// Linux maps nothing below (`vm.mmap_min_addr`). Numbers are taken for addresses most often there.
const LOWEST: u64 = 0x1_0000;
/// Words that are no addresses are most often beyond. A load from there would raise a signal, and a
/// library could have taken that a moment ago.
const END: u64 = arch::ADDRESSES_END;

/// This process's memory. A value of this type proves that the fault handler is installed. Threads
/// that block SIGSEGV or SIGBUS must call [`fault::allow_faults_here`] before they use it.
#[derive(Clone, Copy, Debug)]
pub struct Live(());

impl Live {
    /// The process's memory, once [`fault::install_fault_handler`] has succeeded.
    #[inline]
    #[must_use]
    pub fn get() -> Option<Self> {
        fault::is_installed().then_some(Live(()))
    }

    /// The process's memory; installs the fault handler unless that has been done.
    ///
    /// # Errors
    /// See [`fault::install_fault_handler`].
    pub fn install() -> Result<Self, Errno> {
        fault::install_fault_handler()?;
        Ok(Live(()))
    }

    /// Copies `len` bytes from `src` to `dst`; returns how many were copied before a fault.
    ///
    /// # Safety
    /// `dst` must be valid for writes of `len` bytes that no other code accesses during the call.
    #[inline]
    pub unsafe fn copy(self, dst: *mut u8, src: u64, len: usize) -> usize {
        if fault::is_behind() {
            // SAFETY: the destination is the caller's promise.
            return unsafe { sys::copy_by_kernel(dst, src, len) };
        }
        // SAFETY: the destination is the caller's promise; a source that faults ends the copy,
        // because `self` proves that the handler that recognises the instruction is installed.
        let left = unsafe { arch::dwell_copy(dst, src, len) };
        len.wrapping_sub(left)
    }
}

#[cold]
fn word_by_kernel(addr: u64) -> Result<u64, Fault> {
    let mut word = [0u8; size_of::<u64>()];
    // SAFETY: the destination is a local array of this length.
    let copied = unsafe { sys::copy_by_kernel(word.as_mut_ptr(), addr, word.len()) };
    match copied == word.len() {
        true => Ok(u64::from_le_bytes(word)),
        false => Err(Fault { addr }),
    }
}

impl Memory for Live {
    #[inline]
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        if !(LOWEST..END).contains(&addr) {
            return Err(Fault { addr });
        }
        if fault::is_behind() {
            return word_by_kernel(addr);
        }
        // SAFETY: `self` proves that the fault handler is installed.
        unsafe { arch::load_u64(addr) }.ok_or(Fault { addr })
    }

    #[inline]
    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        if addr >= END {
            return Err(Fault { addr });
        }
        // SAFETY: the slice is a valid exclusive destination of its length.
        let copied = unsafe { self.copy(buf.as_mut_ptr(), addr, buf.len()) };
        if copied == buf.len() {
            return Ok(());
        }
        Err(Fault {
            addr: addr.wrapping_add(copied as u64),
        })
    }
}
