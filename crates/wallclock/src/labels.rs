//! The fingerprints of one thread, and what samples have shown of each.
//!
//! The reads of one fingerprint count for its last sample. Samples of a known fingerprint are drawn
//! with a chance that does not depend on what the sample will show, so the sum of each place is
//! right also where one fingerprint has several places (two-phase sampling: Cochran, "Sampling
//! Techniques", chapter 12). The chance is high where samples have disagreed, and falls where they
//! agree (Neyman allocation). It changes only after a batch of samples.

use crate::ended_run::Run;
use crate::fingerprint::Fingerprint;

/// Fingerprints of one thread, at most. The one that was read the longest ago makes room.
pub const CLASSES_MAX: usize = 48;
/// The class of time that was never sampled.
pub const UNSAMPLED: u8 = u8::MAX;
/// Debts of one class that are kept apart. Later ones keep their weight, not their time.
const DEBTS_MAX: usize = 32;
/// Samples between two changes of a class's chance.
const BATCH: u8 = 3;
/// So many batches without a disagreement make a class certain again.
const CERTAIN: u8 = 4;
/// The chance of a sample of a class that has been sampled once, if the purse allows it, ...
const LEVEL_FIRST: f32 = 1.0;
/// ... and the least one.
const LEVEL_LEAST: f32 = 1.0 / 512.0;
/// A fingerprint of a wait that was never sampled, with which so many samples in a row have found
/// the thread running, is that of a thread that is ready to run.
const RAN_MAX: u8 = 3;
/// A batch changes the chance by this factor.
const LEVEL_STEP: f32 = 8.0;

/// What a sample has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The thread waits.
    Wait,
    /// It ran or was ready to: how long is known from samples of CPU time and from the kernel.
    Run,
}

/// The result of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Whether the thread waits.
    pub shown: Shown,
    /// A number of the place: equal for two samples that are reported alike.
    pub place: u64,
    /// Whether it waits for something that may pass from one thread to another while it waits.
    pub has_claim: bool,
}

/// What is known of one fingerprint.
#[derive(Clone, Debug)]
struct Class<W> {
    /// When it was read last, in ticks.
    read: u32,
    label: Option<Label>,
    /// Runs that wait for the first sample.
    debts: Vec<Run<W>>,
    /// The chance of a sample of a read, before what the purse allows.
    level: f32,
    /// Samples of this batch, and how many of them disagreed with the one before.
    samples: u8,
    disagreed: u8,
    /// Batches until it is certain again; 0: it is.
    uncertain: u8,
    /// Samples that have found the thread running, before one has shown a wait.
    ran: u8,
    /// Weight since the last sample, and its mean over the samples, in ns.
    since_ns: u64,
    heft_ns: u64,
}

impl<W> Default for Class<W> {
    fn default() -> Class<W> {
        Class {
            read: 0,
            label: None,
            debts: Vec::new(),
            level: LEVEL_FIRST,
            samples: 0,
            disagreed: 0,
            uncertain: 0,
            ran: 0,
            since_ns: 0,
            heft_ns: 0,
        }
    }
}

impl<W> Class<W> {
    fn is_uncertain(&self) -> bool {
        self.uncertain > 0 || self.disagreed > 0
    }
}

/// What a sample has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labelled {
    /// The class.
    pub class: u8,
    /// Whether the place is another one than before: it has to be reported.
    pub is_new: bool,
}

/// The fingerprints of one thread. `W`: what the thread works for.
#[derive(Clone, Debug)]
pub struct Places<W> {
    words: Vec<u64>,
    classes: Vec<Class<W>>,
    /// Debts of classes that have made room: no sample can name their places any more.
    rest: Vec<Run<W>>,
}

impl<W> Default for Places<W> {
    fn default() -> Places<W> {
        Places {
            words: Vec::new(),
            classes: Vec::new(),
            rest: Vec::new(),
        }
    }
}

impl<W> Places<W> {
    /// The class of a fingerprint that was read in tick `now`, made if it is new.
    pub fn enter(&mut self, fingerprint: Fingerprint, now: u32) -> u8 {
        let words = fingerprint.word();
        let class = match self.words.iter().position(|it| *it == words) {
            Some(class) => class,
            None => self.make(words),
        };
        if let Some(found) = self.classes.get_mut(class) {
            found.read = now;
        }
        class as u8
    }

    fn make(&mut self, words: u64) -> usize {
        if self.classes.len() < CLASSES_MAX {
            self.words.push(words);
            self.classes.push(Class::default());
            return self.classes.len() - 1;
        }
        let all = self.classes.iter().enumerate();
        let oldest = all.min_by_key(|(_, class)| class.read);
        let place = oldest.map_or(0, |(place, _)| place);
        if let (Some(class), Some(key)) = (self.classes.get_mut(place), self.words.get_mut(place)) {
            *key = words;
            let old = std::mem::take(class);
            old.debts
                .into_iter()
                .for_each(|debt| owe(&mut self.rest, debt));
        }
        place
    }

    fn get(&self, class: u8) -> Option<&Class<W>> {
        self.classes.get(usize::from(class))
    }

    fn get_mut(&mut self, class: u8) -> Option<&mut Class<W>> {
        self.classes.get_mut(usize::from(class))
    }

    /// What the last sample of a class has shown; `None` if there was none.
    #[must_use]
    pub fn label(&self, class: u8) -> Option<Label> {
        self.get(class)?.label
    }

    /// What the last sample has shown holds no more.
    pub fn forget(&mut self, class: u8) {
        if let Some(class) = self.get_mut(class) {
            class.label = None;
        }
    }

    /// The chance of a sample of a read of this class, before what the purse allows.
    #[must_use]
    pub fn level(&self, class: u8) -> f64 {
        self.get(class).map_or(1.0, |class| f64::from(class.level))
    }

    /// Whether samples of this class have disagreed lately.
    #[must_use]
    pub fn is_uncertain(&self, class: u8) -> bool {
        self.get(class).is_some_and(Class::is_uncertain)
    }

    /// A run of a class has ended. Returns it if it can be reported: a sample has shown a wait.
    pub fn end_run(&mut self, class: u8, mut run: Run<W>) -> Option<Run<W>> {
        let class = self.get_mut(class)?;
        class.since_ns = class.since_ns.saturating_add(run.weight_ns);
        match class.label {
            None => {
                owe(&mut class.debts, run);
                None
            }
            Some(label) if label.shown == Shown::Run => None,
            Some(_) => {
                if class.is_uncertain() {
                    // The reads between two samples are one choice.
                    let heft_ns = class.heft_ns.max(class.since_ns);
                    run.square = run.square.max(run.weight_ns as f64 * heft_ns as f64);
                }
                Some(run)
            }
        }
    }

    /// A sample of a thread with this fingerprint.
    pub fn sampled(&mut self, fingerprint: Fingerprint, label: Label, now: u32) -> Labelled {
        let number = self.enter(fingerprint, now);
        let Some(class) = self.get_mut(number) else {
            return Labelled {
                class: number,
                is_new: true,
            };
        };
        let before = class.label.replace(label);
        let is_new = before.is_none_or(|it| (it.shown, it.place) != (label.shown, label.place));
        class.heft_ns = match class.heft_ns {
            0 => class.since_ns,
            heft_ns => heft_ns / 2 + class.since_ns / 2,
        };
        class.since_ns = 0;
        if before.is_some() {
            class.samples += 1;
            class.disagreed += u8::from(is_new);
        }
        if class.samples >= BATCH {
            class.uncertain = match class.disagreed {
                0 => class.uncertain.saturating_sub(1),
                _ => CERTAIN,
            };
            class.level = match (class.disagreed, class.uncertain) {
                (0, 0) => (class.level / LEVEL_STEP).max(LEVEL_LEAST),
                (0, _) => class.level,
                _ => (class.level * LEVEL_STEP).min(1.0),
            };
            (class.samples, class.disagreed) = (0, 0);
        }
        Labelled {
            class: number,
            is_new,
        }
    }

    /// A sample has found a thread running whose fingerprint is that of a wait: the wait has just
    /// ended, or the thread is ready to run. Whether it is the latter.
    pub fn found_running(&mut self, fingerprint: Fingerprint, now: u32) -> bool {
        let number = self.enter(fingerprint, now);
        let Some(class) = self.get_mut(number).filter(|class| class.label.is_none()) else {
            return false;
        };
        class.ran = class.ran.saturating_add(1);
        class.ran >= RAN_MAX
    }

    /// The debts that the last sample of a class pays.
    pub fn take_debts(&mut self, class: u8) -> Vec<Run<W>> {
        let Some(class) = self.get_mut(class) else {
            return Vec::new();
        };
        let debts = std::mem::take(&mut class.debts);
        match class.label {
            Some(label) if label.shown == Shown::Wait => debts,
            _ => Vec::new(),
        }
    }

    /// The debts of classes that have made room.
    pub fn take_rest(&mut self) -> Vec<Run<W>> {
        std::mem::take(&mut self.rest)
    }

    /// All debts: the thread or the recording ends.
    pub fn take_all_debts(&mut self) -> Vec<Run<W>> {
        let mut debts = std::mem::take(&mut self.rest);
        for class in &mut self.classes {
            debts.append(&mut class.debts);
        }
        debts
    }
}

fn owe<W>(debts: &mut Vec<Run<W>>, debt: Run<W>) {
    let is_full = debts.len() >= DEBTS_MAX;
    match debts.last_mut().filter(|_| is_full) {
        Some(last) => last.absorb(&debt),
        None => debts.push(debt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(word: u64) -> Fingerprint {
        Fingerprint::of([word], false)
    }

    fn wait(place: u64) -> Label {
        Label {
            shown: Shown::Wait,
            place,
            has_claim: false,
        }
    }

    fn run(weight_ns: u64) -> Run<()> {
        Run {
            work: (),
            since_ns: 0,
            until_ns: weight_ns,
            count: 1,
            weight_ns,
            square: (weight_ns * weight_ns) as f64,
        }
    }

    #[test]
    fn unsampled_time_is_paid_by_the_first_sample() {
        let mut places = Places::default();
        let class = places.enter(of(1), 1);
        assert_eq!(places.end_run(class, run(20)), None);
        assert_eq!(places.end_run(class, run(30)), None);
        let labelled = places.sampled(of(1), wait(7), 2);
        assert_eq!((labelled.class, labelled.is_new), (class, true));
        let debts = places.take_debts(class);
        assert_eq!(debts.iter().map(|debt| debt.weight_ns).sum::<u64>(), 50);
        assert_eq!(places.end_run(class, run(40)), Some(run(40)));
        assert!(places.take_all_debts().is_empty());
    }

    #[test]
    fn time_of_a_running_thread_is_no_wait() {
        let mut places = Places::default();
        let class = places.enter(of(1), 1);
        assert_eq!(places.end_run(class, run(20)), None);
        let label = Label {
            shown: Shown::Run,
            ..wait(0)
        };
        let _ = places.sampled(of(1), label, 1);
        assert!(places.take_debts(class).is_empty());
        assert_eq!(places.end_run(class, run(20)), None);
    }

    #[test]
    fn debt_of_a_class_that_makes_room_stays_a_debt() {
        let mut places = Places::default();
        let first = places.enter(of(1), 0);
        assert_eq!(places.end_run(first, run(20)), None);
        for word in 2..=CLASSES_MAX as u64 + 1 {
            let _ = places.enter(of(word), word as u32);
        }
        let labelled = places.sampled(of(9), wait(7), 100);
        assert!(places.take_debts(labelled.class).is_empty());
        assert_eq!(places.take_rest(), [run(20)]);
        // Whoever comes back is new.
        let again = places.enter(of(1), 101);
        assert_eq!(places.label(again), None);
    }

    #[test]
    fn many_debts_keep_their_weight() {
        let mut places = Places::default();
        let class = places.enter(of(1), 0);
        for _ in 0..3 * DEBTS_MAX {
            assert_eq!(places.end_run(class, run(10)), None);
        }
        let debts = places.take_all_debts();
        assert_eq!(debts.len(), DEBTS_MAX);
        let sum: u64 = debts.iter().map(|debt| debt.weight_ns).sum();
        assert_eq!(sum, 30 * DEBTS_MAX as u64);
        assert!(places.take_all_debts().is_empty());
    }

    #[test]
    fn chance_falls_where_samples_agree_and_rises_where_not() {
        let mut places: Places<()> = Places::default();
        let class = places.enter(of(1), 0);
        assert_eq!(places.level(class), f64::from(LEVEL_FIRST));
        for _ in 0..100 {
            let _ = places.sampled(of(1), wait(1), 1);
        }
        assert_eq!(places.level(class), f64::from(LEVEL_LEAST));
        assert!(!places.is_uncertain(class));
        for number in 0..100 {
            let _ = places.sampled(of(1), wait(number % 2), 1);
        }
        assert_eq!(places.level(class), 1.0);
        assert!(places.is_uncertain(class));
    }

    /// Reads between two samples that disagree are one choice.
    #[test]
    fn uncertain_class_counts_choices_by_samples() {
        let mut places = Places::default();
        let class = places.enter(of(1), 0);
        for number in 0..20 {
            let _ = places.sampled(of(1), wait(number % 2), 1);
            let ended = (0..10).filter_map(|_| places.end_run(class, run(10)));
            assert_eq!(ended.count(), 10);
        }
        let ended = places.end_run(class, run(10)).map(|run| run.square);
        assert!(ended >= Some(10.0 * 90.0), "{ended:?}");
    }
}
