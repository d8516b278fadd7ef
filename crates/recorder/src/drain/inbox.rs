//! The drainer's next step: an order, or the end of a recording that has reached a limit.

use crate::limits::{Limits, Now};
use crate::orders::{Order, Orders};
use crate::stops::Shelf;
use crate::sys::{allocator, process};
use std::time::Duration;

/// Where the drainer's orders come from.
pub struct Inbox<'a> {
    /// Orders of others.
    pub orders: &'a Orders,
    /// The limits of the recording.
    pub limits: &'a Limits,
    /// Whether the runtime stands still.
    pub stops: &'a Shelf,
    /// Ends the threads that sample for the recording, except the drainer.
    pub end_helpers: &'a dyn Fn(),
}

impl Inbox<'_> {
    /// Waits until an order or a limit is due, for at most `wait`. Leaves it to [`Inbox::next`].
    #[must_use]
    pub fn is_due(&self, wait: Duration) -> bool {
        let within = self.limits.within(wait, process::monotonic_ns());
        within < wait || self.limits.ended().is_some() || self.orders.await_any(within)
    }

    /// Waits for an order for at most `wait`. Once the recording has reached a limit, each order
    /// also flushes and ends it, and comes at once.
    #[must_use]
    pub fn next(&self, wait: Duration) -> Order {
        let wait = match self.limits.ended() {
            Some(_) => Duration::ZERO,
            None => self.limits.within(wait, process::monotonic_ns()),
        };
        let order = self.orders.wait(wait);
        let ended = self.limits.look(Now {
            ns: process::monotonic_ns(),
            is_out: allocator::is_out(),
            is_stopped: self.stops.is_stopped(),
        });
        if ended.is_none() || order.stop {
            return order;
        }
        (self.end_helpers)();
        order.and_stop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::parse;
    use std::cell::Cell;

    fn next(options: &str, orders: &Orders, wait: Duration) -> (Order, u32) {
        let limits = Limits::of(&parse(options).unwrap(), process::monotonic_ns());
        let ends = Cell::new(0);
        let inbox = Inbox {
            orders,
            limits: &limits,
            stops: &Shelf::default(),
            end_helpers: &|| ends.set(ends.get() + 1),
        };
        (inbox.next(wait), ends.get())
    }

    #[test]
    fn inbox_is_empty_while_the_recording_lasts() {
        let orders = Orders::default();
        let found = next("duration=1h,lease=1h", &orders, Duration::ZERO);
        assert_eq!(found, (Order::default(), 0));
    }

    #[test]
    fn end_of_the_duration_is_an_order_and_ends_helpers() {
        let orders = Orders::default();
        let (order, ends) = next("duration=1ms", &orders, Duration::from_secs(600));
        assert!(order.stop && order.flush && !order.renew);
        assert_eq!(ends, 1);
        orders.done(&order);
    }

    #[test]
    fn order_to_stop_leaves_helpers_to_its_sender() {
        let orders = Orders::default();
        assert!(!orders.give(Order::STOP, Duration::ZERO));
        let (order, ends) = next("duration=1ns", &orders, Duration::ZERO);
        assert!(order.stop);
        assert_eq!(ends, 0);
    }
}
