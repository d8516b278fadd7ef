//! The samples of a thread of the file, in the order of time.
//!
//! A wait that lasts is several samples, each at the beginning of its part of the wait: viewers
//! draw a sample at one time only.

use dwell_profile::{Extent, Measured, NodeId, Profile, Unit, Window};

use super::categories::{Categories, ON_CPU, StateId};
use super::tracks::Tracks;

/// The shortest part of a wait.
const PART_MIN_NS: u128 = 1_000_000;
/// A thread's waits have so many parts, and as many as the thread has samples.
const PARTS: u128 = 1000;

/// A sample in the file.
#[derive(Clone, Copy)]
pub struct Row {
    pub time_ns: u64,
    /// Nanoseconds, or the number of samples.
    pub weight: u64,
    /// CPU time.
    pub cpu_ns: u64,
    pub stack: u32,
}

/// Indexes of items by thread of the file.
pub struct ByTrack {
    starts: Vec<usize>,
    ids: Vec<u32>,
}

impl ByTrack {
    /// Sorts the indexes of these threads of the file.
    pub fn new(tracks: usize, items: impl Iterator<Item = usize> + Clone) -> ByTrack {
        let mut starts = vec![0; tracks + 1];
        for track in items.clone() {
            if let Some(count) = starts.get_mut(track + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut free = starts.clone();
        let mut ids = vec![0; sum];
        for (id, track) in items.enumerate() {
            if let Some(place) = free.get_mut(track) {
                if let Some(slot) = ids.get_mut(*place) {
                    *slot = id as u32;
                }
                *place += 1;
            }
        }
        ByTrack { starts, ids }
    }

    /// The indexes of a thread, in their order.
    pub fn of(&self, track: usize) -> &[u32] {
        let range = self.starts.get(track).zip(self.starts.get(track + 1));
        range.map_or(&[], |(from, to)| self.ids.get(*from..*to).unwrap_or(&[]))
    }
}

/// All samples of a profile by thread of the file.
pub struct SampleRows<'p> {
    profile: &'p Profile,
    categories: &'p Categories,
    /// Nanoseconds of a unit of weight; 0: samples are counted.
    scale: u64,
    samples: ByTrack,
    looks: ByTrack,
}

impl<'p> SampleRows<'p> {
    /// Sorts the samples of a profile.
    pub fn new(profile: &'p Profile, categories: &'p Categories, tracks: &Tracks) -> Self {
        let len = tracks.list.len();
        let samples = profile.samples().iter().map(|it| tracks.of(it.thread));
        let looks = profile.looks().iter().map(|it| tracks.of(it.thread));
        SampleRows {
            profile,
            categories,
            scale: profile.wall_scale(),
            samples: ByTrack::new(len, samples),
            looks: ByTrack::new(len, looks),
        }
    }

    /// Whether weights are times.
    pub fn are_times(&self) -> bool {
        self.scale > 0
    }

    /// Whether the weights of running threads are CPU time.
    pub fn have_cpu_time(&self) -> bool {
        self.profile.unit() == Unit::Nanoseconds
            && self.profile.info().measured == Measured::CpuTime
    }

    /// The samples of a thread of the file. `index` gives the index of a stack in a state.
    pub fn of(&self, track: usize, mut index: impl FnMut(NodeId, StateId) -> u32) -> Vec<Row> {
        let profile = self.profile;
        let mut rows = Vec::new();
        let samples = self.samples.of(track).iter();
        for it in samples.filter_map(|id| profile.samples().get(*id as usize)) {
            rows.push(Row {
                time_ns: it.time_ns,
                weight: match self.scale {
                    0 => u64::from(it.count.max(1)),
                    scale => it.weight.saturating_mul(scale),
                },
                cpu_ns: it.weight,
                stack: index(it.node, ON_CPU),
            });
        }
        let looks = self.looks.of(track).iter();
        let looks = looks.filter_map(|id| profile.looks().get(*id as usize));
        let lasted: u128 = looks.clone().map(|it| u128::from(it.duration_ns)).sum();
        let parts = PARTS + (rows.len() + self.looks.of(track).len()) as u128;
        let part_ns = (lasted / parts).max(PART_MIN_NS);
        for it in looks {
            let stack = index(it.node, self.categories.state(it.cause));
            let weight = match self.scale {
                0 => it.count.max(1),
                _ => it.weight_ns,
            };
            let row = Row {
                time_ns: it.time_ns,
                weight,
                cpu_ns: 0,
                stack,
            };
            add_parts(&mut rows, row, it.extent(), part_ns);
        }
        rows.sort_by_key(|row| row.time_ns);
        rows
    }
}

/// Adds the parts of a wait, whose weights add up to its weight.
fn add_parts(rows: &mut Vec<Row>, row: Row, extent: Extent, part_ns: u128) {
    let part_ns = u64::try_from(part_ns).unwrap_or(u64::MAX);
    let mut from_ns = extent.time_ns;
    loop {
        let to_ns = match from_ns.saturating_add(part_ns) {
            to_ns if to_ns >= extent.end_ns() => u64::MAX,
            to_ns => to_ns,
        };
        let window = Window {
            from_ns: if from_ns == extent.time_ns {
                0
            } else {
                from_ns
            },
            to_ns,
        };
        rows.push(Row {
            time_ns: from_ns,
            weight: window.part(row.weight, extent),
            ..row
        });
        if to_ns == u64::MAX {
            return;
        }
        from_ns = to_ns;
    }
}
