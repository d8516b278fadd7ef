//! The fingerprints of one thread, and the results of samples for each.
//!
//! The reads of one fingerprint count for its last sample. Samples of a known fingerprint are drawn
//! with a chance that does not depend on their result. So the sum of each place is right even if
//! several places share a fingerprint (two-phase sampling: Cochran, "Sampling Techniques", chapter
//! 12). The chance rises if samples disagree and falls if they agree (Neyman allocation). It only
//! changes after a batch of samples. These results decided the new chance, so the last one must not
//! count for the reads that follow: the next read is sampled for sure.

use crate::ended_run::Run;
use crate::fingerprint::Fingerprint;

/// Maximum fingerprints of one thread. A new one replaces the one that was read longest ago.
pub const CLASSES_MAX: usize = 48;
/// The class of time without a sample.
pub const UNSAMPLED: u8 = u8::MAX;
/// Maximum separate debts of one class. Later ones keep their weight, not their begin and end.
const DEBTS_MAX: usize = 32;
/// Samples between two changes of a class's chance.
const BATCH: u8 = 3;
/// Batches without a disagreement after which a class is certain again.
const CERTAIN: u8 = 16;
/// Chance of a sample for a class that was sampled once, if the purse allows it.
const LEVEL_FIRST: f32 = 1.0;
/// Least chance of a sample.
const LEVEL_LEAST: f32 = 1.0 / 512.0;
/// Samples in a row that must find the thread running before a fingerprint without a sampled wait
/// counts as that of a thread that is ready to run.
const RAN_MAX: u8 = 3;
/// Factor by which a batch without a disagreement lowers the chance.
const LEVEL_STEP: f32 = 2.0;

/// State of a thread in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The thread waits.
    Wait,
    /// It ran or was ready to run. Samples of CPU time and the kernel measure that time.
    Run,
}

/// The result of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// Whether the thread waits.
    pub shown: Shown,
    /// A hash of the place, equal for two samples that are reported alike.
    pub place: u64,
    /// Whether it waits for something that may pass from one thread to another while it waits.
    pub has_claim: bool,
}

/// State of one fingerprint.
#[derive(Clone, Debug)]
struct Class<W> {
    /// Tick of its last read.
    read: u32,
    label: Option<Label>,
    /// Runs that wait for the first sample.
    debts: Vec<Run<W>>,
    /// The chance that a read is sampled, before the purse limits it.
    level: f32,
    /// Whether the chance has just changed.
    is_fresh: bool,
    /// Samples of this batch. `disagreed`: those that differed from the sample before.
    samples: u8,
    disagreed: u8,
    /// Batches until it is certain again; 0 if it is certain.
    uncertain: u8,
    /// Samples that found the thread running before one showed a wait.
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
            is_fresh: false,
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

/// Effect of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labelled {
    /// The class.
    pub class: u8,
    /// Whether the place differs from the one before and must be reported.
    pub is_new: bool,
}

/// The fingerprints of one thread. `W`: the context that the thread works for.
#[derive(Clone, Debug)]
pub struct Places<W> {
    words: Vec<u64>,
    classes: Vec<Class<W>>,
    /// Debts of replaced classes: no later sample can name their places.
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
    /// The class of a fingerprint that was read in tick `now`. A new fingerprint gets a class.
    pub fn enter(&mut self, fingerprint: Fingerprint, now: u32) -> u8 {
        let class = match self.find(fingerprint) {
            Some(class) => class,
            None => self.make(fingerprint.word()),
        };
        if let Some(found) = self.classes.get_mut(class) {
            found.read = now;
        }
        class as u8
    }

    #[inline(never)]
    fn find(&self, fingerprint: Fingerprint) -> Option<usize> {
        let words = fingerprint.word();
        self.words.iter().position(|it| *it == words)
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

    /// The addresses of the fingerprints and of this class, for prefetching.
    #[must_use]
    pub fn addresses(&self, class: u8) -> [usize; 2] {
        let class = self.get(class);
        [
            self.words.as_ptr().addr(),
            class.map_or(0, |class| std::ptr::from_ref(class).addr()),
        ]
    }

    fn get(&self, class: u8) -> Option<&Class<W>> {
        self.classes.get(usize::from(class))
    }

    fn get_mut(&mut self, class: u8) -> Option<&mut Class<W>> {
        self.classes.get_mut(usize::from(class))
    }

    /// Result of the last sample of a class; `None` if there was no sample.
    #[must_use]
    pub fn label(&self, class: u8) -> Option<Label> {
        self.get(class)?.label
    }

    /// The class that shows from where a thread was woken.
    #[must_use]
    #[inline(never)]
    pub fn left_wait(&self, wait: Fingerprint) -> Option<u8> {
        let all = [wait.after_wake_up(), wait];
        let mut classes = all.into_iter().filter_map(|wait| self.find(wait));
        let shows_wait = |class: &usize| {
            let label = self.label(*class as u8);
            label.is_some_and(|label| label.shown == Shown::Wait)
        };
        classes.find(shows_wait).map(|class| class as u8)
    }

    /// Drops the result of the last sample, which is no longer valid.
    pub fn forget(&mut self, class: u8) {
        if let Some(class) = self.get_mut(class) {
            class.label = None;
        }
    }

    /// The chance that a read of this class is sampled, before the purse limits it.
    #[must_use]
    pub fn level(&self, class: u8) -> f64 {
        let class = self.get(class).filter(|class| !class.is_fresh);
        class.map_or(1.0, |class| f64::from(class.level))
    }

    /// Whether samples of this class have disagreed recently.
    #[must_use]
    pub fn is_uncertain(&self, class: u8) -> bool {
        self.get(class).is_some_and(Class::is_uncertain)
    }

    /// Ends a run of a class. Returns it if a sample has shown a wait, so that it can be reported.
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
                    // The reads between two samples count as one choice.
                    let heft_ns = class.heft_ns.max(class.since_ns);
                    run.square = run.square.max(run.weight_ns as f64 * heft_ns as f64);
                }
                Some(run)
            }
        }
    }

    /// Records a sample of a thread with this fingerprint.
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
        class.is_fresh = false;
        if before.is_some() {
            class.samples += 1;
            class.disagreed += u8::from(is_new);
        }
        if class.samples >= BATCH {
            class.uncertain = match class.disagreed {
                0 => class.uncertain.saturating_sub(1),
                _ => CERTAIN,
            };
            let level = match (class.disagreed, class.uncertain) {
                (0, 0) => (class.level / LEVEL_STEP).max(LEVEL_LEAST),
                (0, _) => class.level,
                _ => LEVEL_FIRST,
            };
            class.is_fresh = level != class.level;
            class.level = level;
            (class.samples, class.disagreed) = (0, 0);
        }
        Labelled {
            class: number,
            is_new,
        }
    }

    /// Records that a sample found a thread running, although its fingerprint is that of a wait.
    /// Either the wait has just ended, or the thread is ready to run. Returns true for the latter.
    pub fn found_running(&mut self, fingerprint: Fingerprint, now: u32) -> bool {
        let number = self.enter(fingerprint, now);
        let Some(class) = self.get_mut(number).filter(|class| class.label.is_none()) else {
            return false;
        };
        class.ran = class.ran.saturating_add(1);
        class.ran >= RAN_MAX
    }

    /// Takes the debts that the last sample of a class pays, or that were no waits.
    pub fn take_debts(&mut self, class: u8) -> Vec<Run<W>> {
        let class = self.get_mut(class);
        class.map_or(Vec::new(), |class| std::mem::take(&mut class.debts))
    }

    /// Whether the last sample of a class found the thread running.
    #[must_use]
    pub fn shows_run(&self, class: u8) -> bool {
        self.label(class)
            .is_some_and(|label| label.shown == Shown::Run)
    }

    /// Takes the debts of replaced classes.
    pub fn take_rest(&mut self) -> Vec<Run<W>> {
        std::mem::take(&mut self.rest)
    }

    /// Takes all debts when the thread or the recording ends.
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
    use dwell_wall::random::Random;

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
        assert!(places.shows_run(class));
        assert_eq!(places.take_debts(class), [run(20)]);
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
        // A replaced fingerprint that returns is new.
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

    /// Two places share a fingerprint; a seventh of the reads are in the rare one. The shares that
    /// the last samples give must be right on average, and in most of 200 threads.
    #[test]
    fn places_of_one_fingerprint_have_their_shares() {
        const READS: u64 = 3000;
        let shares = (0..200).map(|seed| {
            let mut random = Random::new(seed);
            let mut places: Places<()> = Places::default();
            let (mut rare, mut class) = (0, places.enter(of(1), 0));
            for _ in 0..READS {
                let place = u64::from(random.below(7) == 0);
                let label = places.label(class);
                if label.is_none() || random.part() < places.level(class) {
                    class = places.sampled(of(1), wait(place), 0).class;
                }
                rare += places.label(class).map_or(0, |label| label.place);
            }
            rare as f64 * 7.0 / READS as f64
        });
        let shares: Vec<f64> = shares.collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        // All reads would have a standard error of 0.003; few threads have a tenth of the samples.
        assert!((mean - 1.0).abs() < 0.05, "{mean}");
        let far = shares.iter().filter(|it| (**it - 1.0).abs() > 0.3).count();
        assert!(far <= 10, "{far} of 200");
    }

    /// Reads between two samples that disagree count as one choice.
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
