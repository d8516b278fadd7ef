//! Stretches of time with single events, such as pauses: time, duration and fields. It knows no
//! kind of them. [`StretchKind::words`] has the words of reports.

use crate::names::NameId;
use crate::sample::ThreadId;
use dwell_jfr::kinds::{KINDS, StretchKind};
use dwell_jfr::reader::Told;
use std::collections::BTreeMap;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// When it began, nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// How long it lasted.
    pub duration_ns: u64,
    /// Other fields, in the order of [`StretchKind::labels`].
    pub facts: Vec<Fact>,
}

impl Stretch {
    /// One of which nothing more is known.
    #[must_use]
    pub fn new(time_ns: u64, duration_ns: u64) -> Stretch {
        Stretch {
            time_ns,
            duration_ns,
            facts: Vec::new(),
        }
    }

    /// When it was over.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.time_ns.saturating_add(self.duration_ns)
    }
}

/// A field of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A text.
    Text(NameId),
    /// A number.
    Number(u64),
    /// A thread; none where it is not known.
    Thread(Option<ThreadId>),
    /// Nothing that could be shown.
    Nothing,
}

/// All stretches, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stretches {
    by_place: BTreeMap<usize, Vec<Stretch>>,
}

impl Stretches {
    /// Adds one of the kind at this place of [`KINDS`].
    pub(crate) fn add_at(&mut self, place: usize, stretch: Stretch) {
        self.by_place.entry(place).or_default().push(stretch);
    }

    /// Adds one of a kind.
    pub fn add<T: Told>(&mut self, stretch: Stretch) {
        if let Some(place) = StretchKind::place_of::<T>() {
            self.add_at(place, stretch);
        }
    }

    /// Those of a kind, in the order of the recording.
    #[must_use]
    pub fn of<T: Told>(&self) -> &[Stretch] {
        let all = StretchKind::place_of::<T>().and_then(|place| self.by_place.get(&place));
        all.map_or(&[], |all| all)
    }

    /// All kinds that there is something of.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static StretchKind, &[Stretch])> {
        let all = self.by_place.iter();
        all.filter_map(|(place, all)| Some((KINDS.get(*place)?, &all[..])))
    }

    /// Those of all kinds in which all threads stand still.
    pub fn standing(&self) -> impl Iterator<Item = &Stretch> {
        let kinds = self.kinds().filter(|(kind, _)| kind.words.all_stand);
        kinds.flat_map(|(_, all)| all)
    }
}

/// Reports' summary of all stretches of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StretchSum {
    /// How many.
    pub count: u64,
    /// How long all of them lasted.
    pub sum_ns: u64,
    /// How long one of them lasted that is longer than half of them.
    pub median_ns: u64,
    /// How long the longest lasted.
    pub longest_ns: u64,
}

impl StretchSum {
    /// The sum of some; `None` without any.
    #[must_use]
    pub fn of(stretches: &[Stretch]) -> Option<StretchSum> {
        let mut lengths: Vec<u64> = stretches.iter().map(|it| it.duration_ns).collect();
        lengths.sort_unstable();
        Some(StretchSum {
            count: lengths.len() as u64,
            sum_ns: lengths.iter().copied().fold(0, u64::saturating_add),
            median_ns: *lengths.get(lengths.len() / 2)?,
            longest_ns: *lengths.last()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_have_the_median_and_the_longest() {
        let all = [7, 1, 3, 5].map(|ns| Stretch::new(0, ns));
        let sum = StretchSum::of(&all).unwrap();
        assert_eq!((sum.count, sum.sum_ns), (4, 16));
        assert_eq!((sum.median_ns, sum.longest_ns), (5, 7));
        assert_eq!(StretchSum::of(&[]), None);
    }

    #[test]
    fn stretches_of_each_kind_are_found_by_it() {
        let mut stretches = Stretches::default();
        for (place, _) in KINDS.iter().enumerate() {
            stretches.add_at(place, Stretch::new(place as u64, 1));
        }
        assert_eq!(stretches.kinds().count(), KINDS.len());
        let stand = KINDS.iter().filter(|kind| kind.words.all_stand).count();
        assert_eq!(stretches.standing().count(), stand);
        // A kind without words is not a stretch.
        type Request = dwell_jfr::kinds::told::Request;
        stretches.add::<Request>(Stretch::new(1, 1));
        assert_eq!(stretches.of::<Request>(), []);
        assert_eq!(stretches.kinds().count(), KINDS.len());
    }
}
