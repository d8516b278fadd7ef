//! Orders to the drainer, and their completion.

use crate::sys::allocator;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// An order to the drainer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Flush now.
    pub flush: bool,
    /// Flush and end.
    pub stop: bool,
    /// Flush, and begin a new chunk.
    pub renew: bool,
    serial: u64,
}

impl Order {
    /// This order, plus to flush and end after it.
    #[must_use]
    pub fn and_stop(self) -> Order {
        Order {
            stop: true,
            flush: true,
            ..self
        }
    }

    const NONE: Order = Order {
        flush: false,
        stop: false,
        renew: false,
        serial: 0,
    };
    /// Flush now.
    pub const FLUSH: Order = Order {
        flush: true,
        ..Order::NONE
    };
    /// Flush and end.
    pub const STOP: Order = Order {
        stop: true,
        ..Order::FLUSH
    };
    /// Flush, and begin a new chunk.
    pub const RENEW: Order = Order {
        renew: true,
        ..Order::NONE
    };
}

#[derive(Default)]
struct OrderState {
    order: Order,
    done: u64,
    /// How often the drainer was asked to hurry ...
    asked: u64,
    /// ... which of these it has begun to handle, ...
    seen: u64,
    /// ... and which it has finished.
    answered: u64,
    /// There is no drainer any more.
    is_over: bool,
}

impl OrderState {
    /// There is neither an order nor a request to hurry.
    fn has_none(&self) -> bool {
        self.order.serial == self.done && self.asked == self.seen
    }
}

/// How often a thread that waits for the drainer checks whether the drainer waits for memory.
const LOOK: Duration = Duration::from_millis(50);

/// Passes orders to the drainer and their completion back.
#[derive(Default)]
pub struct Orders {
    state: Mutex<OrderState>,
    changed: Condvar,
}

impl Orders {
    /// Waits at most `timeout` for an order. Samples drained after this call also answer urgent
    /// requests; see [`Orders::looked`].
    pub fn wait(&self, timeout: Duration) -> Order {
        let Ok(state) = self.state.lock() else {
            return Order {
                stop: true,
                ..Order::default()
            };
        };
        match (self.changed).wait_timeout_while(state, timeout, |it| it.has_none()) {
            Ok((mut state, _)) => {
                state.seen = state.asked;
                if state.order.serial == state.done {
                    Order::default()
                } else {
                    state.order
                }
            }
            Err(_) => Order::default(),
        }
    }

    /// Waits until [`Orders::wait`] would return at once, for at most `timeout`. Returns whether it
    /// would.
    pub fn await_any(&self, timeout: Duration) -> bool {
        let Ok(state) = self.state.lock() else {
            return true;
        };
        match (self.changed).wait_timeout_while(state, timeout, |it| it.has_none()) {
            Ok((state, _)) => !state.has_none(),
            Err(_) => true,
        }
    }

    /// Ends a wait early, and waits at most `patience` until the drainer has drained.
    pub fn hurry(&self, patience: Duration) {
        let Ok(mut state) = self.state.try_lock() else {
            return;
        };
        state.asked += 1;
        let mine = state.asked;
        self.changed.notify_all();
        if !patience.is_zero() {
            let waiting = |s: &mut OrderState| s.answered < mine && !s.is_over;
            let _ = self.changed.wait_timeout_while(state, patience, waiting);
        }
    }

    /// Marks all samples since the last wait as drained.
    pub fn looked(&self) {
        if let Ok(mut state) = self.state.lock()
            && state.answered != state.seen
        {
            state.answered = state.seen;
            self.changed.notify_all();
        }
    }

    /// Marks an order as carried out.
    pub fn done(&self, order: &Order) {
        if order.serial != 0
            && let Ok(mut state) = self.state.lock()
        {
            state.done = order.serial;
            self.changed.notify_all();
        }
    }

    /// The drainer has ended: all its work is done.
    pub fn end(&self) {
        if let Ok(mut state) = self.state.lock() {
            state.is_over = true;
            self.changed.notify_all();
        }
    }

    /// Whether the drainer has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state.lock().is_ok_and(|state| state.is_over)
    }

    /// Gives an order and waits until it is carried out or the drainer has ended. False if that
    /// took too long, or the drainer waits for memory.
    pub fn give(&self, order: Order, timeout: Duration) -> bool {
        let Ok(mut state) = self.state.lock() else {
            return false;
        };
        let serial = state.order.serial + 1;
        state.order = Order { serial, ..order };
        self.changed.notify_all();
        let until = Instant::now() + timeout;
        loop {
            if state.done >= serial || state.is_over {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || allocator::is_waiting() {
                return false;
            }
            match self.changed.wait_timeout(state, left.min(LOOK)) {
                Ok((next, _)) => state = next,
                Err(_) => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn orders_are_carried_out_once() {
        let orders = Arc::new(Orders::default());
        assert_eq!(orders.wait(Duration::ZERO), Order::default());
        let worker = Arc::clone(&orders);
        let thread = std::thread::spawn(move || {
            let mut stops = 0;
            // Until well after the other thread has given up.
            for _ in 0..10_000 {
                let order = worker.wait(Duration::from_millis(10));
                worker.done(&order);
                if order.stop {
                    stops += 1;
                    break;
                }
            }
            stops
        });
        assert!(orders.give(Order::FLUSH, LONG));
        assert!(orders.give(Order::STOP, LONG));
        assert_eq!(thread.join().unwrap(), 1);
        assert!(!orders.give(Order::RENEW, Duration::from_millis(20)));
    }

    #[test]
    fn awaited_order_is_left_for_the_next_wait() {
        let orders = Orders::default();
        assert!(!orders.await_any(Duration::ZERO));
        assert!(!orders.give(Order::FLUSH, Duration::ZERO));
        assert!(orders.await_any(Duration::from_secs(600)));
        assert!(orders.await_any(Duration::from_secs(600)));
        let order = orders.wait(Duration::from_secs(600));
        assert!(order.flush);
        orders.done(&order);
        assert!(!orders.await_any(Duration::ZERO));
        orders.hurry(Duration::ZERO);
        assert!(orders.await_any(Duration::from_secs(600)));
        assert_eq!(orders.wait(Duration::from_secs(600)), Order::default());
        assert!(!orders.await_any(Duration::ZERO));
    }

    #[test]
    fn orders_to_a_drainer_that_ends_are_not_waited_for() {
        let orders = Arc::new(Orders::default());
        let worker = Arc::clone(&orders);
        let thread = std::thread::spawn(move || {
            let order = worker.wait(Duration::from_secs(60));
            assert!(order.flush && !worker.is_over());
            worker.end();
        });
        assert!(orders.give(Order::FLUSH, Duration::from_secs(600)));
        thread.join().unwrap();
        assert!(orders.is_over());
        assert!(orders.give(Order::STOP, Duration::from_secs(600)));
        orders.hurry(Duration::from_secs(600));
    }
}
