//! Signs: what can be read of a thread in some tens of nanoseconds, and hangs together with where
//! it is: whether it runs code of its own or waits, and how deep its stack was when it left that.
//! A look costs a thousand times as much, so where not all looks that are wanted can be paid the
//! signs of all are read in each tick, and looks are made for some: sampling in two phases, with
//! strata known from the first (Cochran, "Sampling Techniques", chapter 12; Neyman, 1938).
//!
//! Each sign of a thread is a class of its ticks; very many signs share some. A look shows what its
//! class stands for until the next look at one of that class: ticks in between count for what it
//! showed. Who is looked at is drawn with one chance for all, whatever their signs, so within a
//! class looks are a random part of its ticks, and the sum of each class is exact. Only what one
//! class has of several places is left to chance. A class that nobody has looked at is looked at
//! the first time.
//!
//! How certain such sums are hangs on what signs tell. Ticks carried by a look are as good as looks
//! of their own if that saw the same place as the look before it at the class, and else they are
//! one choice with it: for a place that has the part r of its class, looked at with the chance p,
//! that adds up to the variance of (1 - r)/p choices a tick, which it has, and of those that agree.

use crate::runs::{Part, Pending, Run};

/// Classes of one thread, at most: ones whose signs are rarer share them then.
const CLASSES_MAX: usize = 32;
/// A class with none of whose signs a thread was met for so long makes room for another one.
const FORGOTTEN_NS: u64 = 10_000_000_000;

/// Ticks up to so long after a look are told with it.
const LOOK_HOLDS_NS: u64 = 1_000_000_000;

/// What was read of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    words: u64,
    /// Whether it is in code of its own, and waits there for pages at most.
    in_own_code: bool,
}

impl Sign {
    /// By what was read, and whether the thread is in code of its own, where it hardly waits.
    /// Different words are hardly ever the same sign.
    #[must_use]
    pub fn of(words: impl IntoIterator<Item = u64>, in_own_code: bool) -> Sign {
        // Multiplication by the golden ratio (Knuth, volume 3, 6.4), folded after each word.
        let mixed = words.into_iter().fold(0u64, |mixed, word| {
            let mixed = (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^ (mixed >> 29)
        });
        Sign {
            words: mixed,
            in_own_code,
        }
    }

    /// Whether the thread is in code of its own.
    #[must_use]
    pub fn is_in_own_code(&self) -> bool {
        self.in_own_code
    }
}

/// What a look at a thread has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// It waits, and where was told.
    Wait,
    /// It ran or was ready to: how long, samples of CPU time and the kernel tell.
    Run,
}

/// When what is told was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// At the look that showed where, or from then on, or soon after.
    AtLook,
    /// Later: the thread is where that look saw it as far as its sign tells, and what it works for
    /// is another matter.
    Later,
}

/// One class.
#[derive(Clone, Debug, Default)]
struct Class {
    /// Its sign, but for those that it has to share; and that of the last look.
    own: Option<Sign>,
    last: Option<Sign>,
    /// What that look has shown; `None`: that has to be seen first.
    shown: Option<Shown>,
    /// At which place that was, and whether the look before it saw the same one.
    place: Option<u64>,
    agrees: bool,
    looked_ns: u64,
    /// When the thread was met with such a sign last.
    met_ns: u64,
    /// Ticks that are not settled yet, and what they stand for.
    owed: (u32, u64),
    pending: Pending<Told>,
    /// What is not pending any more, and not told yet.
    ended: Vec<Run<Told>>,
}

impl Class {
    /// Whether ticks of it are as good as looks of their own.
    fn is_sure(&self) -> bool {
        self.own.is_some() && self.agrees
    }

    fn carry(&mut self, now_ns: u64, is_alike: bool, count: u32, part: Part) {
        let (told, at_ns) = match now_ns.saturating_sub(self.looked_ns) > LOOK_HOLDS_NS {
            true => (Told::Later, now_ns),
            false => (Told::AtLook, self.looked_ns),
        };
        let ended = self.pending.carry(told, at_ns, is_alike, count, part);
        self.ended.extend(ended);
    }

    /// All that is not told yet, the oldest first.
    fn rest(&mut self) -> impl Iterator<Item = Run<Told>> + use<> {
        let ended = std::mem::take(&mut self.ended);
        ended.into_iter().chain(self.pending.rest())
    }
}

/// The classes of one thread, and what is not told yet of each. Threads without signs have one.
#[derive(Clone, Debug, Default)]
pub struct Classes {
    /// That of the last look.
    current: u8,
    first: Class,
    others: Vec<Class>,
}

impl Classes {
    fn get(&mut self, number: u8) -> Option<&mut Class> {
        match number {
            0 => Some(&mut self.first),
            number => self.others.get_mut(usize::from(number) - 1),
        }
    }

    fn all(&mut self) -> impl Iterator<Item = (u8, &mut Class)> {
        let all = std::iter::once(&mut self.first).chain(&mut self.others);
        (0u8..).zip(all)
    }

    /// The class of such a sign alone.
    fn own(&mut self, sign: Sign) -> Option<u8> {
        let own = self.all().find(|(_, class)| class.own == Some(sign));
        own.map(|(number, _)| number)
    }

    /// The class of such a sign; `None`: it is to have one of its own.
    fn find(&mut self, sign: Sign) -> Option<u8> {
        let is_full = self.others.len() + 1 >= CLASSES_MAX;
        let shared = is_full.then_some((sign.words % CLASSES_MAX as u64) as u8);
        self.own(sign).or(shared)
    }

    /// What the last look at a thread with such a sign has shown; `None` if there was none.
    pub fn shown(&mut self, sign: Sign, now_ns: u64) -> Option<Shown> {
        let number = self.find(sign)?;
        let class = self.get(number)?;
        class.met_ns = now_ns;
        class.shown
    }

    /// The number of the class of the last look.
    #[must_use]
    pub fn current(&self) -> u8 {
        self.current
    }

    /// A look at a thread that has this sign, and what it showed at which place, as a number; what
    /// is not told of the last look at this class is told before.
    pub fn look(
        &mut self,
        sign: Option<Sign>,
        now_ns: u64,
        (shown, place): (Shown, u64),
        mut tell: impl FnMut(u8, Run<Told>),
    ) {
        let number = sign.map_or(0, |sign| self.enter(sign, now_ns));
        if number != self.current {
            // It has left that place: what it is owed there is told soon, but for what the next
            // look there may be one choice with.
            if self.get(self.current).is_some_and(|class| class.is_sure()) {
                self.pending().hasten();
            }
        }
        self.current = number;
        let Some(class) = self.get(number) else {
            return;
        };
        class.rest().for_each(|run| tell(number, run));
        class.last = sign;
        class.agrees = class.place.replace(place) == Some(place);
        class.shown = sign.map(|_| shown);
        (class.looked_ns, class.met_ns) = (now_ns, now_ns);
    }

    /// The class of such a sign, made for it if there is room, or one that is not met any more.
    fn enter(&mut self, sign: Sign, now_ns: u64) -> u8 {
        if let Some(number) = self.own(sign) {
            return number;
        }
        let is_free = |class: &Class| match class.own {
            Some(_) => now_ns.saturating_sub(class.met_ns) > FORGOTTEN_NS,
            None => true,
        };
        if self.others.len() + 1 < CLASSES_MAX && self.first.own.is_some() {
            self.others.push(Class::default());
        }
        let free = self.all().find(|(_, class)| is_free(class));
        match free {
            Some((number, class)) => {
                (class.own, class.place) = (Some(sign), None);
                number
            }
            None => self.find(sign).unwrap_or(0),
        }
    }

    /// What was seen last could not be told: it has to be seen again.
    pub fn forget(&mut self) {
        if let Some(class) = self.get(self.current) {
            class.shown = None;
        }
    }

    /// What is not told of the class of the last look.
    pub fn pending(&mut self) -> &mut Pending<Told> {
        match usize::from(self.current).checked_sub(1) {
            Some(at) if at < self.others.len() => &mut self.others[at].pending,
            _ => &mut self.first.pending,
        }
    }

    /// A tick without a look, of a thread with such a sign: counts for what the last look at its
    /// class has shown.
    pub fn carry(&mut self, sign: Sign, now_ns: u64, part: Part) {
        let number = self.find(sign);
        let class = number.and_then(|number| self.get(number));
        if let Some(class) = class.filter(|class| class.shown == Some(Shown::Wait)) {
            class.carry(now_ns, class.last == Some(sign) && class.agrees, 1, part);
        }
    }

    /// The same for a thread whose waits an account tells the time of: what the tick counts is
    /// settled with the next look. That the thread waited where it mostly runs is no reason to give
    /// such a class all of its ticks.
    pub fn owe(&mut self, sign: Sign, part: Part) {
        let number = self.find(sign).filter(|_| !sign.in_own_code);
        let class = number.and_then(|number| self.get(number));
        if let Some(class) = class.filter(|class| class.shown == Some(Shown::Wait)) {
            class.owed = (
                class.owed.0 + 1,
                class.owed.1.saturating_add(part.weight_ns),
            );
        }
    }

    /// An account says that the thread waited for `waited_ns`, the ticks that are owed included:
    /// what of that is left for the look, which would stand for `look_ns`. Without one the ticks
    /// count what they stand for.
    pub fn settle(&mut self, now_ns: u64, waited_ns: Option<u64>, look_ns: u64) -> u64 {
        let owed = self.all().map(|(_, class)| class.owed.1);
        let all_ns = owed.fold(look_ns, u64::saturating_add).max(1);
        let of_all = |waited_ns: u64, part_ns: u64| {
            let share = u128::from(waited_ns) * u128::from(part_ns) / u128::from(all_ns);
            u64::try_from(share).unwrap_or(waited_ns)
        };
        let mut left_ns = waited_ns.unwrap_or(0);
        for (_, class) in self.all() {
            let (count, own_ns) = std::mem::take(&mut class.owed);
            if count == 0 {
                continue;
            }
            let weight_ns = waited_ns.map_or(own_ns, |ns| of_all(ns, own_ns));
            left_ns = left_ns.saturating_sub(weight_ns);
            let part = Part {
                weight_ns,
                span_ns: weight_ns,
                is_known: false,
            };
            class.carry(now_ns, class.agrees, count, part);
        }
        left_ns
    }

    /// Tells what has been held back for long enough, with the numbers of the classes.
    pub fn due(&mut self, now_ns: u64, mut tell: impl FnMut(u8, Run<Told>)) {
        for (number, class) in self.all() {
            let due = class.pending.due(now_ns);
            class
                .ended
                .drain(..)
                .chain(due)
                .for_each(|run| tell(number, run));
        }
    }

    /// Tells all: the thread or the recording ends.
    pub fn rest(&mut self, mut tell: impl FnMut(u8, Run<Told>)) {
        // Without an account: these count what they stand for, when they were is not kept.
        let _ = self.settle(0, None, 0);
        for (number, class) in self.all() {
            class.rest().for_each(|run| tell(number, run));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::sums::{choices, standard_error};
    use proptest::prelude::*;

    const TICK_NS: u64 = 20_000_000;
    const PART: Part = Part {
        weight_ns: TICK_NS,
        span_ns: TICK_NS,
        is_known: false,
    };

    /// What is told of each of four places, and the squares of that.
    #[derive(Default)]
    struct Sums {
        sums: [u64; 4],
        squares: [f64; 4],
        /// The heaviest choice of them.
        heaviest: f64,
    }

    impl Sums {
        fn add(&mut self, place: u64, run: &Run<Told>) {
            // As it is told: a number of choices, one at least.
            let choice = run.weight_ns as f64 / run.choices() as f64;
            self.sums[place as usize] += run.weight_ns;
            self.squares[place as usize] += run.weight_ns as f64 * choice;
            self.heaviest = self.heaviest.max(choice);
        }
    }

    /// A thread that is at one of four places in each tick, and has a sign; looked at with this
    /// chance. Place 0 is where it runs.
    fn followed(
        (ticks, tick_ns): (u64, u64),
        chance: f64,
        seed: u64,
        mut at: impl FnMut(u64, &mut Random) -> (u64, Sign),
    ) -> (Sums, [u64; 4], u64) {
        let (mut program, mut random) = (Random::new(!seed), Random::new(seed));
        let (mut classes, mut told, mut truth) = (Classes::default(), Sums::default(), [0; 4]);
        let mut seen = [0; CLASSES_MAX];
        let mut looks = 0;
        let part = Part {
            weight_ns: tick_ns,
            span_ns: tick_ns,
            is_known: false,
        };
        for tick in 0..ticks {
            let now_ns = tick * tick_ns;
            let (place, sign) = at(tick, &mut program);
            truth[place as usize] += tick_ns;
            if classes.shown(sign, now_ns).is_none() || random.part() < chance {
                let shown = if place == 0 { Shown::Run } else { Shown::Wait };
                classes.look(Some(sign), now_ns, (shown, place), |number, run| {
                    told.add(seen[number as usize], &run);
                });
                seen[usize::from(classes.current())] = place;
                looks += 1;
                if place != 0 {
                    let ended = classes.pending().add(Told::AtLook, now_ns, part);
                    assert_eq!(ended, None);
                }
            } else {
                classes.carry(sign, now_ns, part);
            }
            classes.due(now_ns, |number, run| told.add(seen[number as usize], &run));
        }
        classes.rest(|number, run| told.add(seen[number as usize], &run));
        (told, truth, looks)
    }

    fn nothing(number: u8, run: Run<Told>) {
        panic!("{number}: {run:?}");
    }

    fn sign(number: u64) -> Sign {
        Sign::of([number, 0x7fff_1234_5678, number << 20], false)
    }

    #[test]
    fn there_are_so_many_classes_and_those_not_met_any_more_make_room() {
        let mut classes = Classes::default();
        let mut look = |number, now_ns| {
            classes.look(Some(sign(number)), now_ns, (Shown::Run, 0), nothing);
            classes.current()
        };
        let most = CLASSES_MAX as u64;
        let numbers: Vec<u8> = (0..most).map(|number| look(number, number)).collect();
        assert_eq!(numbers, (0..most as u8).collect::<Vec<_>>());
        assert_eq!(look(7, most), 7);
        let shared = look(most, most + 1);
        assert!(u64::from(shared) < most);
        assert_eq!(look(most, most + 2), shared, "the same each time");
        // All but the one that was met last but one.
        let later = FORGOTTEN_NS + most;
        assert_eq!(look(most + 1, later), 0);
        assert_eq!(look(most + 1, later + 1), 0);
        assert_eq!(look(7, later + 2), 7);
    }

    /// Where the sign tells the place, nothing is left to chance, however few looks there are.
    #[test]
    fn places_that_signs_tell_are_exact() {
        for seed in 0..20 {
            let (told, truth, looks) = followed((3000, TICK_NS), 0.05, seed, |_, program| {
                let place = program.below(4);
                (place, sign(place))
            });
            assert_eq!(told.sums[1..], truth[1..], "{seed}");
            assert_eq!(told.sums[0], 0, "running is told by others");
            assert!((80..250).contains(&looks), "{looks}");
        }
    }

    /// A sign that tells nothing, and one that tells one of two places from the others: the sums
    /// are right in the mean, for places that come by chance and for those in turn.
    #[test]
    fn sums_are_right_whatever_signs_tell() {
        const TICKS: u64 = 2000;
        const RUNS: u64 = 400;
        let kinds: [fn(u64) -> Sign; 3] = [|_| sign(9), |place| sign(place / 2), sign];
        for (kind, sign_of) in kinds.into_iter().enumerate() {
            for chance in [0.04, 0.3] {
                for in_turn in [false, true] {
                    let (mut sums, mut truths) = ([0.0; 4], [0.0; 4]);
                    for seed in 0..RUNS {
                        let (told, truth, _) =
                            followed((TICKS, TICK_NS), chance, seed, |tick, program| {
                                let place = match in_turn {
                                    true => tick / 3 % 4,
                                    false => [0, 1, 1, 2, 2, 2, 3, 3][program.below(8) as usize],
                                };
                                (place, sign_of(place))
                            });
                        for place in 0..4 {
                            sums[place] += told.sums[place] as f64;
                            truths[place] += truth[place] as f64;
                        }
                    }
                    // A place has a quarter of the ticks, seen at 80 of them where the chance is
                    // least: 13 % in one run, 0.7 in the mean of 400; and the first look at a class
                    // stands for 1/chance of 2000 ticks more, if it is there by chance.
                    for place in 1..4 {
                        let ratio = sums[place] / truths[place];
                        let most = if in_turn { 0.045 } else { 0.035 };
                        assert!(
                            (ratio - 1.0).abs() < most,
                            "{kind} {chance} {in_turn} {place} {ratio}"
                        );
                    }
                }
            }
        }
    }

    /// Of a thread that is at places for parts of each tick the intervals of sums contain the
    /// truth, whatever signs tell. Places that signs tell have ones that are a little wide: a place
    /// of a part r of the time scatters less than that by the root of 1 - r.
    #[test]
    fn intervals_contain_the_truth() {
        const TICKS: u64 = 1500;
        const RUNS: u64 = 600;
        // In twentieths: place 0, where it runs, and three others.
        const PARTS: [u64; 4] = [4, 9, 6, 1];
        let kinds: [fn(u64) -> Sign; 3] = [|_| sign(9), |place| sign(place / 2), sign];
        for (kind, sign_of) in kinds.into_iter().enumerate() {
            // The last: as seldom as can be, ticks far apart, so that a look stands for seconds.
            for (chance, tick_ns) in [(0.06, TICK_NS), (0.3, TICK_NS), (1.0 / 64.0, 3 * TICK_NS)] {
                let mut contained = [0u64; 4];
                for seed in 0..RUNS {
                    let ticks = (TICKS, tick_ns);
                    let (told, _, _) = followed(ticks, chance, seed, |_, program| {
                        let mut at = program.below(20);
                        let place = PARTS.iter().position(|part| match at.checked_sub(*part) {
                            Some(left) => {
                                at = left;
                                false
                            }
                            None => true,
                        });
                        let place = place.unwrap_or(0) as u64;
                        (place, sign_of(place))
                    });
                    for place in 1..4 {
                        let truth = (TICKS * tick_ns * PARTS[place] / 20) as f64;
                        let error = standard_error(told.squares[place], told.heaviest);
                        let off = (told.sums[place] as f64 - truth).abs();
                        contained[place] += u64::from(off <= 1.96 * error);
                    }
                }
                // Of 600 intervals that contain the truth 95 times in a hundred 570 do, with a
                // deviation of 5.3: fewer than 545 once in 400,000 times.
                for (place, count) in contained.iter().enumerate().skip(1) {
                    assert!(*count >= 545, "{kind} {chance} {place} {count}");
                }
            }
        }
    }

    /// A part of the ticks has a class of its own that is seldom seen.
    #[test]
    fn seldom_signs_are_seen_at_once() {
        let (told, truth, _) = followed((1000, TICK_NS), 0.02, 7, |tick, _| match tick {
            700..703 => (2, sign(2)),
            _ => (1, sign(1)),
        });
        assert_eq!((told.sums[1], told.sums[2]), (truth[1], 3 * TICK_NS));
    }

    /// Ticks count as choices of their own where the sign is that of the look, and else with it.
    #[test]
    fn what_is_carried_is_as_certain_as_its_sign() {
        let mut classes = Classes::default();
        for number in 1..=CLASSES_MAX as u64 {
            classes.look(Some(sign(number)), 5, (Shown::Wait, 7), nothing);
        }
        let like = sign(1);
        let other = (100..)
            .map(sign)
            .find(|it| classes.find(*it) == classes.find(like))
            .expect("there are more signs than classes");
        classes.look(Some(like), 5, (Shown::Wait, 7), nothing);
        assert_eq!(classes.pending().add(Told::AtLook, 5, PART), None);
        for _ in 0..3 {
            classes.carry(like, 6, PART);
        }
        let first = classes.pending().rest().unwrap();
        assert_eq!((first.count, first.weight_ns), (4, 4 * TICK_NS));
        assert_eq!(first.choices(), 4);
        assert_eq!((first.since_ns, first.until_ns), (5, 5));
        // What comes after that was told is of the same look.
        classes.carry(other, 6, PART);
        classes.carry(other, 6, PART);
        let rest = classes.pending().rest().unwrap();
        assert_eq!(
            (rest.count, rest.weight_ns, rest.since_ns),
            (2, 2 * TICK_NS, 5)
        );
        assert_eq!(choices(rest.weight_ns, rest.square), 1);
    }

    /// What an account tells is for all ticks since it was asked last.
    #[test]
    fn an_account_is_settled_among_looks_and_ticks() {
        let mut classes = Classes::default();
        for number in [1, 2, 3, 1, 2] {
            let shown = if number == 3 { Shown::Run } else { Shown::Wait };
            classes.look(Some(sign(number)), number, (shown, 7), nothing);
        }
        for number in [1, 2, 1, 3, 1] {
            classes.owe(sign(number), PART);
        }
        classes.look(Some(sign(2)), 9, (Shown::Wait, 7), nothing);
        // Four ticks in waits, and the look; the fifth is not of a wait.
        assert_eq!(classes.settle(12, Some(501), TICK_NS), 101);
        let mut told = Vec::new();
        classes.rest(|number, run| told.push((number, run.weight_ns, run.choices())));
        assert_eq!(told, [(0, 300, 3), (1, 100, 1)]);
        // Without an account; where it runs nothing is owed.
        let running = Sign::of([4], true);
        classes.look(Some(running), 12, (Shown::Wait, 7), nothing);
        classes.owe(running, PART);
        classes.owe(sign(1), PART);
        assert_eq!(classes.settle(12, None, TICK_NS), 0);
        classes.owe(sign(1), PART);
        let mut told = Vec::new();
        classes.rest(|number, run| told.push((number, run.weight_ns, run.choices())));
        assert_eq!(told, [(0, 2 * TICK_NS, 2)]);
    }

    /// Ticks soon after a look are told with it, and later ones when they were.
    #[test]
    fn ticks_long_after_a_look_have_a_time_of_their_own() {
        const SECOND: u64 = 1_000_000_000;
        let mut classes = Classes::default();
        classes.look(Some(sign(1)), 0, (Shown::Wait, 7), nothing);
        classes.look(Some(sign(1)), SECOND, (Shown::Wait, 7), nothing);
        assert_eq!(classes.pending().add(Told::AtLook, SECOND, PART), None);
        for tenths in [15, 20, 21, 35, 40, 42, 90] {
            classes.carry(sign(1), tenths * SECOND / 10, PART);
        }
        let mut told = Vec::new();
        let mut tell = |_, run: Run<Told>| told.push((run.seen, run.since_ns, run.count));
        classes.due(9 * SECOND, &mut tell);
        classes.carry(sign(1), 10 * SECOND, PART);
        classes.due(11 * SECOND, &mut tell);
        classes.look(Some(sign(1)), 11 * SECOND, (Shown::Wait, 7), &mut tell);
        let later = |tenths, count| (Told::Later, tenths * SECOND / 10, count);
        let at_look = (Told::AtLook, SECOND, 3);
        assert_eq!(told, [at_look, later(21, 5), later(100, 1)]);
    }

    /// Where looks do not agree, ticks are one choice with their look, and told as one.
    #[test]
    fn one_choice_is_told_whole() {
        const SECOND: u64 = 1_000_000_000;
        let mut classes = Classes::default();
        let mut told = Vec::new();
        let mut tell = |_, run: Run<Told>| told.push((run.seen, run.count, run.choices()));
        for (place, at) in [(7, 1), (8, 2), (7, 20)] {
            classes.look(Some(sign(1)), at * SECOND, (Shown::Wait, place), &mut tell);
            assert_eq!(classes.pending().add(Told::AtLook, at * SECOND, PART), None);
            // Elsewhere in between.
            classes.look(Some(sign(2)), at * SECOND, (Shown::Run, 0), &mut tell);
            let after = if place == 8 { 10 } else { 0 };
            for tenths in 1..=8 + 10 * after {
                let now_ns = at * SECOND + tenths * SECOND / 10;
                classes.carry(sign(1), now_ns, PART);
                classes.due(now_ns, &mut tell);
            }
        }
        // Nobody is at that place any more.
        classes.due(35 * SECOND, &mut tell);
        classes.due(36 * SECOND, &mut tell);
        assert_eq!(
            told,
            [
                (Told::AtLook, 9, 1),
                (Told::Later, 109, 1),
                (Told::AtLook, 9, 1)
            ]
        );
    }

    #[test]
    fn nothing_is_carried_to_what_could_not_be_told() {
        let mut classes = Classes::default();
        assert_eq!(classes.shown(sign(1), 9), None);
        classes.look(Some(sign(1)), 5, (Shown::Wait, 7), nothing);
        assert_eq!(classes.shown(sign(1), 9), Some(Shown::Wait));
        classes.forget();
        assert_eq!(classes.shown(sign(1), 9), None);
        classes.carry(sign(1), 6, PART);
        assert_eq!(classes.pending().rest(), None);
        // Without a sign nothing is known of the next tick.
        classes.look(None, 6, (Shown::Wait, 7), nothing);
        assert_eq!(classes.shown(sign(1), 9), None);
    }

    proptest! {
        /// What is told is what was added, whatever the order of looks and ticks.
        #[test]
        fn no_time_gets_lost(
            steps in proptest::collection::vec((0u64..80, 0u8..4, 1u64..100), 0..300)
        ) {
            let mut classes = Classes::default();
            let (mut added, mut told, mut now_ns) = (0, 0, 0);
            for (number, what, weight_ns) in steps {
                now_ns += TICK_NS;
                let part = Part { weight_ns, span_ns: weight_ns, is_known: what == 3 };
                let sign = sign(number);
                if what == 0 || classes.shown(sign, now_ns).is_none() {
                    let tell = |_, run: Run<Told>| told += run.weight_ns;
                    classes.look(Some(sign), now_ns, (Shown::Wait, 7), tell);
                    let ended = classes.pending().add(Told::AtLook, now_ns, part);
                    told += ended.map_or(0, |run| run.weight_ns);
                } else if what == 1 {
                    classes.owe(sign, part);
                } else {
                    classes.carry(sign, now_ns, part);
                }
                added += weight_ns;
                classes.due(now_ns, |_, run| told += run.weight_ns);
            }
            classes.rest(|_, run| told += run.weight_ns);
            prop_assert_eq!(told, added);
        }
    }
}
