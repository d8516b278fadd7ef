//! Raw JNI and JVMTI: the slots of the function tables that dwell calls.
//!
//! Both interfaces are tables of function pointers with fixed positions (JNI specification chapter
//! 4, "Interface Function Table"; JVMTI specification, where every function carries its position).
//! Only the positions in use are typed; they are the same from JDK 8 to 28. Nothing here may be
//! called from a signal handler.
#![allow(
    clippy::missing_safety_doc,
    reason = "each type documents the one contract"
)]

pub mod jni;
pub mod jvmti;

pub use jni::{Env, JavaVm};
pub use jvmti::Jvmti;

use core::ffi::c_void;

/// A table of functions, as both interfaces define it: a pointer to a pointer to slots.
type Table = *const *const c_void;

/// Reads slot `index` of the table that `handle` points to.
///
/// # Safety
/// `handle` must be a live interface pointer whose table has more than `index` slots, and `F` the
/// slot's function type.
#[inline]
unsafe fn slot<F: Copy>(handle: *mut Table, index: usize) -> F {
    const { assert!(size_of::<F>() == size_of::<*const c_void>()) };
    // SAFETY: the caller guarantees a live interface pointer with that slot, and that F is the
    // function pointer type of the slot; function pointers and data pointers are of one size here.
    unsafe { core::mem::transmute_copy(&*(*handle).add(index)) }
}
