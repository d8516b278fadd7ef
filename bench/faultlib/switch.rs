//! Which deliberate fault is on: the crate that `bench/faults` adds to a copy of the tree. It is in
//! no other build.
//!
//! All faults are compiled into that copy, each as a question to [`is`]; the variable `DWELL_FAULT`
//! names the one that is on by its number. It is read once, when the agent starts (`choose`): in a
//! signal handler the question is a load from memory.
#![forbid(unsafe_code)]

use std::sync::{Mutex, OnceLock};

/// The number of the fault that is on; 0: none.
static CHOSEN: OnceLock<u32> = OnceLock::new();

/// Reads the choice.
pub fn choose() {
    let _ = is(0);
}

/// Whether this fault is on.
#[inline]
#[must_use]
pub fn is(number: u32) -> bool {
    *CHOSEN.get_or_init(read) == number
}

#[cold]
fn read() -> u32 {
    let text = std::env::var("DWELL_FAULT").unwrap_or_default();
    text.parse().unwrap_or(0)
}

/// Puts the text that was handed over last in this one's place.
pub fn swap_with_last(text: &mut String) {
    static LAST: Mutex<String> = Mutex::new(String::new());
    if let Ok(mut last) = LAST.lock() {
        let mine = text.clone();
        if !last.is_empty() {
            text.clone_from(&last);
        }
        *last = mine;
    }
}
