//! A permanent value for handlers: they read a pointer, and never initialise it.

use std::sync::atomic::{AtomicPtr, Ordering};

/// See above.
pub struct Shown<T: 'static>(AtomicPtr<T>);

impl<T: Sync> Default for Shown<T> {
    fn default() -> Shown<T> {
        Shown::new()
    }
}

impl<T: Sync> Shown<T> {
    /// Without a value.
    #[must_use]
    pub const fn new() -> Shown<T> {
        Shown(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Shows `value` from now on.
    pub fn show(&self, value: &'static T) {
        self.0
            .store(std::ptr::from_ref(value).cast_mut(), Ordering::Release);
    }

    /// The value. Safe in a handler.
    #[inline]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: null or from a reference for ever, which is only ever shared.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_is_shown() {
        static SHOWN: Shown<u32> = Shown::new();
        assert_eq!(SHOWN.get(), None);
        SHOWN.show(&7);
        SHOWN.show(&8);
        assert_eq!(SHOWN.get(), Some(&8));
    }
}
