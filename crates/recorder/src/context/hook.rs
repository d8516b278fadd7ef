//! The handler's hook that adds to a snapshot the thread's context.
//!
//! [`dwell_context_hook`] runs in the signal handler: it reads memory through fault-tolerant loads
//! only (but for the records of contexts, which stay mapped), allocates nothing, locks nothing.

use super::foreign;
use crate::sys::shown::Shown;
use dwell_context::Slab;
use dwell_signal::Capture;

/// Where the program writes its contexts; empty until it does.
static CONTEXTS: Shown<Slab<'static>> = Shown::new();

/// Lets handlers read these contexts.
pub fn show_contexts(slab: &'static Slab<'static>) {
    CONTEXTS.show(slab);
}

/// Notes the thread's context: the logical thread's if one is mounted. Scopes of dwell's API count
/// before contexts that others publish.
#[unsafe(no_mangle)]
pub extern "C" fn dwell_context_hook(capture: &mut Capture<'_>) {
    let mounted = capture.header().logical_id;
    let is_logical = mounted != 0 || capture.header().cont_entry != 0;
    let id = match mounted {
        0 => capture.record().managed_id(),
        mounted => mounted,
    };
    let slab = CONTEXTS.get();
    let mut context = slab.and_then(|slab| slab.context_here(id));
    if context.is_none() && !is_logical {
        context = foreign::here(&capture.live(), capture.thread_pointer());
    }
    if let Some(context) = context {
        capture.set_context(&context);
    }
}
