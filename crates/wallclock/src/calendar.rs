//! The threads to read in each of the next ticks.

/// Maximum ticks ahead: twice the longest block.
pub const SLOTS: usize = 128;

/// A ring of ticks.
#[derive(Clone, Debug)]
pub struct Calendar {
    slots: Vec<Vec<u32>>,
    /// The last tick that was taken.
    taken: u32,
}

impl Default for Calendar {
    fn default() -> Calendar {
        Calendar {
            slots: vec![Vec::new(); SLOTS],
            taken: 0,
        }
    }
}

impl Calendar {
    /// Schedules the read of thread `id` for tick `number`, or for the next one if that has passed.
    /// Returns the tick.
    pub fn put(&mut self, number: u32, id: u32) -> u32 {
        let last = self.taken.saturating_add(SLOTS as u32);
        let number = number.clamp(self.taken.saturating_add(1), last);
        if let Some(slot) = self.slots.get_mut(number as usize % SLOTS) {
            slot.push(id);
        }
        number
    }

    /// Moves the threads of all ticks up to `number` to `ids`, each with its tick.
    pub fn take(&mut self, number: u32, ids: &mut Vec<(u32, u32)>) {
        let from = self.taken.saturating_add(1);
        // All entries lie within one round. After a longer pause each slot is due exactly once.
        let until = number.min(self.taken.saturating_add(SLOTS as u32));
        for tick in from..=until {
            if let Some(slot) = self.slots.get_mut(tick as usize % SLOTS) {
                ids.extend(slot.drain(..).map(|id| (id, tick)));
            }
        }
        self.taken = self.taken.max(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_returned_in_their_ticks() {
        let (mut calendar, mut ids) = (Calendar::default(), Vec::new());
        assert_eq!(calendar.put(2, 7), 2);
        assert_eq!(calendar.put(0, 8), 1);
        assert_eq!(calendar.put(1000, 9), SLOTS as u32);
        calendar.take(1, &mut ids);
        assert_eq!(ids, [(8, 1)]);
        calendar.take(3, &mut ids);
        assert_eq!(ids, [(8, 1), (7, 2)]);
        ids.clear();
        calendar.take(500, &mut ids);
        // After a long pause each thread is returned with the tick it was scheduled for.
        assert_eq!(ids, [(9, SLOTS as u32)]);
        assert_eq!(calendar.put(0, 1), 501);
    }
}
