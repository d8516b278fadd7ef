//! The state machine on a simulated clock: populations whose times are known exactly.

use crate::purse::Purse;
use crate::{Fingerprint, Label, Shown, Tick, WallClock};
use dwell_wall::random::Random;
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;
const INTERVAL_NS: u64 = 20 * MS;
/// What reading and sampling cost in a simulation.
const STAY_NS: u64 = 50;
const READ_NS: u64 = 150;
const SAMPLE_NS: u64 = 30_000;
/// The place of a thread that runs.
const RUNS: u64 = 0;

/// A thread: where it is in each millisecond.
#[derive(Clone)]
struct Script {
    begin: u64,
    /// The place from each millisecond on; it runs for an instant before each.
    places: Vec<(u32, u8)>,
    end: u64,
    /// How many places share one fingerprint.
    shared: u64,
}

impl Script {
    fn at(&self, ms: u64) -> usize {
        let after = self.places.partition_point(|(from, _)| u64::from(*from) <= ms);
        after.saturating_sub(1)
    }

    fn place(&self, ms: u64) -> u64 {
        self.places.get(self.at(ms)).map_or(RUNS, |(_, place)| u64::from(*place))
    }
}

/// What was reported of each thread and place, in ns, with the squares.
#[derive(Default)]
struct Told {
    sums: BTreeMap<(u32, u64), (f64, f64)>,
    unsampled_ns: u64,
    heaviest: f64,
    cpu_ns: u64,
    ticks: u64,
    /// Longest span of an event less its weight, in ns.
    stretched_ns: u64,
}

/// A recording of these threads by a machine with this budget.
fn record(scripts: &[Script], share: f64, seed: u64) -> Told {
    let end_ms = scripts.iter().map(|it| it.end).max();
    let ticks = end_ms.unwrap_or(0) * MS / INTERVAL_NS;
    let mut clock: WallClock<u8> = WallClock::new(Purse::of_share(share), Random::new(seed));
    let mut random = Random::new(seed ^ 99);
    let mut told = Told {
        ticks,
        ..Told::default()
    };
    let mut labels: BTreeMap<(u32, u8), u64> = BTreeMap::new();
    let mut read_ms = vec![0u64; scripts.len()];
    let mut live = vec![false; scripts.len()];
    for number in 1..=ticks as u32 {
        let at_ns = u64::from(number - 1) * INTERVAL_NS + random.below(INTERVAL_NS);
        let now_ms = at_ns / MS;
        let tick = Tick {
            number,
            at_ns,
            interval_ns: INTERVAL_NS,
        };
        clock.begin_tick(tick, INTERVAL_NS);
        for (id, script) in scripts.iter().enumerate() {
            let lives = (script.begin..script.end).contains(&now_ms);
            if lives != std::mem::replace(&mut live[id], lives) {
                match lives {
                    true => clock.begin(id as u32),
                    false => clock.end(id as u32),
                }
                read_ms[id] = now_ms;
            }
        }
        take(&mut clock, &labels, &mut told);
        let place_of = |id: u32| {
            let script = &scripts[id as usize];
            let place = script.place(now_ms);
            let fingerprint = match place {
                RUNS => Fingerprint::of([0], true),
                place => Fingerprint::of([place / script.shared], false),
            };
            (place, fingerprint)
        };
        let sample = |clock: &mut WallClock<u8>, id: u32, labels: &mut BTreeMap<_, _>, told: &mut Told| {
            let (place, fingerprint) = place_of(id);
            let label = Label {
                shown: Shown::Wait,
                place,
                has_claim: false,
            };
            let labelled = clock.label(id, fingerprint, label);
            let is_new = labelled.is_new;
            take(clock, labels, told);
            labels.insert((id, labelled.class), place);
            clock.settle(id, Some(labelled.class));
            clock.purse().sampled(SAMPLE_NS, is_new);
            clock.purse().spend(SAMPLE_NS);
            told.cpu_ns += SAMPLE_NS;
        };
        let due = clock.due();
        let mut cost_ns = 0;
        for id in &due {
            let script = &scripts[*id as usize];
            let since = std::mem::replace(&mut read_ms[*id as usize], now_ms);
            let has_run = script.at(since) != script.at(now_ms) || script.place(now_ms) == RUNS;
            if !has_run && clock.can_stay(*id, |_| true) {
                clock.stays(*id);
                cost_ns += STAY_NS;
                continue;
            }
            cost_ns += READ_NS;
            let (_, fingerprint) = place_of(*id);
            if clock.read(*id, fingerprint, (7, || 7), has_run) {
                sample(&mut clock, *id, &mut labels, &mut told);
            }
            take(&mut clock, &labels, &mut told);
        }
        clock.purse().spend(cost_ns);
        told.cpu_ns += cost_ns;
        clock.census_done(due.len(), cost_ns, share);
        let mut is_first = true;
        while let Some(id) = clock.next_of_backlog(is_first) {
            is_first = false;
            sample(&mut clock, id, &mut labels, &mut told);
            take(&mut clock, &labels, &mut told);
        }
    }
    clock.finish(0);
    take(&mut clock, &labels, &mut told);
    told
}

fn take(clock: &mut WallClock<u8>, labels: &BTreeMap<(u32, u8), u64>, told: &mut Told) {
    for ended in clock.take_ended() {
        let run = ended.run;
        told.stretched_ns = told
            .stretched_ns
            .max((run.until_ns - run.since_ns).saturating_sub(run.weight_ns));
        let Some(place) = labels.get(&(ended.id, ended.class)) else {
            told.unsampled_ns += run.weight_ns;
            continue;
        };
        let weight = run.weight_ns as f64;
        let choice = weight / run.choices() as f64;
        told.heaviest = told.heaviest.max(choice);
        let sum = told.sums.entry((ended.id, *place)).or_default();
        sum.0 += weight;
        sum.1 += weight * choice;
    }
}

/// The time of each thread in each place, in ns.
fn truth(scripts: &[Script]) -> BTreeMap<(u32, u64), f64> {
    let mut truth = BTreeMap::new();
    for (id, script) in scripts.iter().enumerate() {
        let ends = script.places.iter().skip(1).map(|(from, _)| u64::from(*from));
        for ((from, place), until) in script.places.iter().zip(ends.chain([script.end])) {
            if u64::from(*place) != RUNS {
                let sum: &mut f64 = truth.entry((id as u32, u64::from(*place))).or_default();
                *sum += ((until - u64::from(*from)) * MS) as f64;
            }
        }
    }
    truth
}

const END_MS: u64 = 10_000;

/// Five workers that go through four places and running, for 3 to 28 ms each; 10 s.
fn workers(seed: u64) -> Vec<Script> {
    let mut random = Random::new(seed);
    let mut one = || {
        let (mut places, mut at) = (Vec::new(), 0);
        while at < END_MS {
            places.push((at as u32, random.below(5) as u8));
            at += 3 + random.below(26);
        }
        places
    };
    let scripts = (0..5).map(|_| Script {
        begin: 0,
        places: one(),
        end: END_MS,
        shared: 1,
    });
    scripts.collect()
}

/// Threads that wait in one place, and wake for an instant every `wakes_ms` milliseconds; 0: never.
fn others(count: usize, wakes_ms: u64, seed: u64) -> Vec<Script> {
    let mut random = Random::new(seed);
    let mut one = || {
        let (mut places, mut at) = (vec![(0, 1)], random.below(wakes_ms.max(1)) + 1);
        while wakes_ms > 0 && at < END_MS {
            places.push((at as u32, 1));
            at += wakes_ms + random.below(wakes_ms);
        }
        places
    };
    let scripts = (0..count).map(|_| Script {
        begin: 0,
        places: one(),
        end: END_MS,
        shared: 1,
    });
    scripts.collect()
}

/// Half the sum of absolute differences of the shares of places of the first `count` threads
/// together, in points; waits only.
fn distance(scripts: &[Script], told: &Told, ids: std::ops::Range<u32>) -> f64 {
    let shares = |of: &dyn Fn(u64) -> f64| {
        let sums: Vec<f64> = (1..5).map(of).collect();
        let all: f64 = sums.iter().sum();
        sums.into_iter().map(|sum| sum / all).collect::<Vec<_>>()
    };
    let truth = truth(scripts);
    let of_truth = |place: u64| ids.clone().filter_map(|id| truth.get(&(id, place))).sum();
    let of_told = |place: u64| {
        let sums = ids.clone().filter_map(|id| told.sums.get(&(id, place)));
        sums.map(|(sum, _)| sum).sum()
    };
    let (truth, told) = (shares(&of_truth), shares(&of_told));
    100.0 * truth.iter().zip(&told).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0
}

fn check(others: &[Script], share: f64, name: &str) {
    for seed in 0..2 {
        let mut scripts = workers(seed);
        let workers = scripts.len() as u32;
        scripts.extend(others.iter().cloned());
        let waits = truth(&scripts);
        let told = record(&scripts, share, seed);
        let part = |id: u32| {
            let of = |it: &BTreeMap<(u32, u64), f64>| -> f64 {
                it.range((id, 0)..(id + 1, 0)).map(|(_, sum)| sum).sum()
            };
            let told = told.sums.range((id, 0)..(id + 1, 0));
            told.map(|(_, (sum, _))| sum).sum::<f64>() / of(&waits)
        };
        let parts: Vec<f64> = (0..workers).map(part).collect();
        let rests: Vec<f64> = (workers..scripts.len() as u32).map(part).collect();
        let unseen = rests.iter().filter(|it| **it == 0.0).count();
        let (low, high) = rests
            .iter()
            .fold((f64::MAX, 0f64), |(a, b), it| (a.min(*it), b.max(*it)));
        eprintln!(
            "{name}: distance {:.2} workers {parts:.2?} others {low:.3} to {high:.3} unseen \
             {unseen} unsampled {} ms cost {:.2} % stretched {}",
            distance(&scripts, &told, 0..workers),
            told.unsampled_ns / MS,
            100.0 * told.cpu_ns as f64 / (told.ticks * INTERVAL_NS) as f64,
            told.stretched_ns,
        );
    }
}

#[test]
fn simulated_populations_are_right() {
    check(&others(50, 0, 1), 0.02, "a 50");
    check(&others(2000, 0, 1), 0.02, "a 2000");
    check(&others(500, 100, 1), 0.02, "b 500");
    check(&others(2000, 100, 1), 0.02, "b 2000");
    check(&others(500, 10, 1), 0.02, "c 500");
    check(&others(10_000, 100, 1), 0.02, "b 10000");
    check(&others(10_000, 0, 1), 0.02, "a 10000");
}
