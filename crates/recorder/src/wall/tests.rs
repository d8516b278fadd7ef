//! Who is looked at, and what that may cost: the sampler with a runtime that is none.

use super::*;
use crate::testing::{Agent, Alone, Mock, alone, begin_thread};

/// What a sampler works with, of which the test is the thread.
struct Begun {
    agent: &'static Agent,
    setup: Setup<Mock>,
    alone: Alone,
}

fn begun(more: &str) -> Begun {
    let alone = alone();
    let agent = alone.agent();
    let setup = alone.setup(agent, &format!(",wall=20ms{more}"));
    agent.registry.watch();
    Begun {
        agent,
        setup,
        alone,
    }
}

impl Begun {
    fn sampler(&self) -> Sampler<'_, Mock> {
        Sampler::new(&self.setup)
    }

    /// Takes in who has come and lets go who has gone; the threads that are told to be gone.
    fn members_now(&self, sampler: &mut Sampler<'_, Mock>) -> Vec<u64> {
        sampler.members_now(&self.setup.shelf);
        let mut notes = crate::looks::shelf::Notes::default();
        self.setup.shelf.take(&mut notes);
        let gone = notes.notes.iter().filter_map(|note| match note {
            Note::Gone { thread } => Some(*thread),
            _ => None,
        });
        gone.collect()
    }

    /// A sampler that has met this thread, at which nobody has looked; its place.
    fn has_met_one(&self) -> (Sampler<'_, Mock>, u32) {
        let mut sampler = self.sampler();
        begin_thread(self.agent, "own", 9, 1);
        self.members_now(&mut sampler);
        let index = self.own().index();
        assert!(sampler.strata.fresh().contains(index));
        (sampler, index)
    }

    fn own(&self) -> &'static ThreadRecord {
        self.agent.registry.get(process::own_tid()).unwrap()
    }
}

#[test]
fn who_asks_for_the_end_is_heard_at_once_and_from_then_on() {
    let stop = Stop::default();
    assert!(!stop.wait(Duration::ZERO));
    stop.ask();
    assert!(stop.wait(Duration::ZERO));
    assert!(stop.wait(Duration::from_secs(3600)));
}

#[test]
fn nine_tenths_of_the_budget_are_aimed_at() {
    let whole = begun("");
    assert!((aim(&whole.setup) - 0.027).abs() < 1e-9, "3 %");
    drop(whole);
    let more = begun(",wall-budget=10%");
    assert!((aim(&more.setup) - 0.09).abs() < 1e-9);
    // Of 10 s a hundredth of that would have been nine milliseconds.
    let spend = |part, cpu_ns| {
        let mut budget = budget(&more.setup, part);
        let before = budget.count(100);
        budget.spent(before, 10_000_000_000, cpu_ns);
        budget.count(100).cmp(&before)
    };
    assert_eq!(spend(0.01, 10_000_000), std::cmp::Ordering::Less);
    assert_eq!(spend(0.01, 8_000_000), std::cmp::Ordering::Greater);
    assert_eq!(spend(1.0, 800_000_000), std::cmp::Ordering::Greater);
}

#[test]
fn a_number_that_was_asked_for_is_kept_whatever_it_costs() {
    let begun = begun(",wall-threads=40");
    let mut budget = budget(&begun.setup, RESTING_PART);
    budget.spent(40, 10_000_000_000, 10_000_000_000);
    assert_eq!(budget.count(100), 40);
}

#[test]
fn threads_of_the_runtime_are_members_as_long_as_they_are_that() {
    let begun = begun("");
    let mut sampler = begun.sampler();
    assert_eq!(begun.members_now(&mut sampler), []);
    assert!(sampler.strata.is_empty());
    begin_thread(begun.agent, "own", 7, 1);
    let record = begun.own();
    let (index, user, managed) = (record.index(), record.user(), record.managed_thread());
    assert_eq!(begun.members_now(&mut sampler), []);
    assert!(sampler.strata.contains(index) && sampler.strata.len() == 1);
    assert_eq!(sampler.threads.of_managed(managed), Some(index));
    assert_eq!(sampler.threads.of_id(7), Some(index));
    let known = &sampler.known[index as usize];
    assert_eq!((known.thread, known.managed, known.id), (user, managed, 7));
    // Nothing has changed.
    assert_eq!(begun.members_now(&mut sampler), []);
    assert_eq!(sampler.strata.len(), 1);
    begun.agent.own_thread_ends();
    assert_eq!(begun.members_now(&mut sampler), [user]);
    assert!(sampler.strata.is_empty());
    assert_eq!(sampler.threads.of_managed(managed), None);
    assert_eq!(sampler.threads.of_id(7), None);
}

#[test]
fn a_thread_of_no_language_is_none_until_it_becomes_one() {
    let begun = begun("");
    let mut sampler = begun.sampler();
    let seen = |managed, id| crate::recorder::Seen {
        name: crate::threads::ThreadName {
            tid: process::own_tid(),
            id,
            ..Default::default()
        },
        managed,
        ..Default::default()
    };
    begun.agent.saw(&seen(0, 0));
    begun.members_now(&mut sampler);
    assert!(sampler.strata.is_empty());
    // Its id is told later than the thread.
    begun.agent.saw(&seen(0x100, 0));
    begun.members_now(&mut sampler);
    let index = begun.own().index();
    assert!(sampler.strata.contains(index));
    assert_eq!(sampler.threads.of_id(5), None);
    begun.agent.saw(&seen(0x100, 5));
    begun.members_now(&mut sampler);
    assert_eq!(sampler.threads.of_id(5), Some(index));
    assert_eq!(sampler.strata.len(), 1);
}

#[test]
fn a_place_that_another_thread_has_by_now_is_told_as_gone_and_taken_in() {
    let begun = begun("");
    let mut sampler = begun.sampler();
    begin_thread(begun.agent, "one", 1, 1);
    begun.members_now(&mut sampler);
    let (index, first) = (begun.own().index(), begun.own().user());
    begun.agent.own_thread_ends();
    let engine = begun.alone.engine();
    engine.drain(|_| ());
    assert_eq!(engine.reap(|_| ()), 1);
    begin_thread(begun.agent, "other", 2, 1);
    let (again, second) = (begun.own().index(), begun.own().user());
    assert_eq!(again, index, "or there is nothing to be told apart");
    assert_eq!(begun.members_now(&mut sampler), [first]);
    assert!(sampler.strata.contains(index) && sampler.strata.len() == 1);
    assert_eq!(sampler.known[index as usize].thread, second);
    assert_eq!(sampler.threads.of_id(1), None);
}

#[test]
fn looks_are_split_where_their_number_is_given_and_asking_where_it_is_not() {
    let given = begun(",wall-threads=8");
    let mut sampler = given.sampler();
    (0..100).for_each(|id| assert!(sampler.strata.insert(id, true)));
    (0..100).for_each(|id| sampler.strata.note(id, true, 0));
    let looked = |sampler: &mut Sampler<'_, Mock>| {
        let [active, resting] = sampler.choose();
        assert_eq!(active.eligible + resting.eligible, 100);
        (active.ids.len(), resting.ids.len())
    };
    assert_eq!(looked(&mut sampler), (8, 0), "none rests yet");
    drop(sampler);
    drop(given);
    let steered = begun("");
    let mut sampler = steered.sampler();
    (0..100).for_each(|id| assert!(sampler.strata.insert(id, true)));
    (0..100).for_each(|id| sampler.strata.note(id, true, 0));
    assert_eq!(looked(&mut sampler), (100, 0), "all that are active");
}

#[test]
fn who_is_asked_for_logical_threads_stands_for_all() {
    let begun = begun("");
    let mut sampler = begun.sampler();
    assert_eq!(sampler.choose_to_ask(), (vec![], 0.0));
    begin_thread(begun.agent, "own", 3, 1);
    begun.members_now(&mut sampler);
    let managed = begun.own().managed_thread();
    assert_eq!(sampler.choose_to_ask(), (vec![managed], 1.0));
    let first = begun.own().index() + 1;
    (first..first + 39).for_each(|id| assert!(sampler.strata.insert(id, false)));
    let (_, factor) = sampler.choose_to_ask();
    assert!((factor - 40.0 / ASKED_MAX as f64).abs() < 1e-9, "{factor}");
}

#[test]
fn what_others_spend_is_paid_up_to_a_part_of_the_budget() {
    let begun = begun("");
    let mut sampler = begun.sampler();
    let look = grid::Look {
        ticks: 1,
        span_ns: 20_000_000,
    };
    assert_eq!(sampler.debt(&look), 0);
    let after_many = grid::Look { ticks: 64, ..look };
    begun.setup.shelf.add_drain_cpu_ns(1_000_000_000);
    let most = OTHERS_PART * aim(&begun.setup) * 20e6;
    assert_eq!(sampler.debt(&after_many), most as u64);
    // The watch kept beside counts from where it was.
    begun.setup.stops.set_cpu_ns(50_000);
    let mut later = begun.sampler();
    assert_eq!(later.debt(&look), 0);
    begun.setup.stops.set_cpu_ns(56_400);
    let paid = later.debt(&look);
    assert!((90..=110).contains(&paid), "a part of 6400 ns: {paid}");
}

#[test]
fn what_the_active_leave_is_for_those_who_rest() {
    let shares = |more: &str, active_cpu_ns: u64| {
        let begun = begun(&format!(",wall-budget=0.5%{more}"));
        let mut sampler = begun.sampler();
        for _ in 0..2000 {
            sampler.share_out(active_cpu_ns, active_cpu_ns, 20_000_000);
        }
        // How many looks of one cost each can afford.
        [sampler.budget, sampler.resting].map(|mut budget| {
            for _ in 0..400 {
                let count = budget.count(10_000);
                budget.spent(count, 500_000_000, count as u64 * 10_000);
            }
            budget.count(10_000) as f64 * 10_000.0 / 500e6
        })
    };
    let whole = 0.0045;
    let near = |share: f64, wanted: f64| (share - wanted).abs() < 0.05 * whole;
    // They spend nothing: all may be spent on the others.
    let [active, resting] = shares("", 0);
    assert!(
        near(active, 0.8 * whole) && near(resting, whole),
        "{active} {resting}"
    );
    // Half of it: the other half is left.
    let [_, resting] = shares("", (whole / 2.0 * 20e6) as u64);
    assert!(near(resting, whole / 2.0), "{resting}");
    // More than all.
    let [active, resting] = shares("", 20_000_000);
    assert!(
        near(active, 0.8 * whole) && near(resting, 0.2 * whole),
        "{active} {resting}"
    );
    // Nobody rests where only those are looked at who work for a request.
    let [active, _] = shares(",filter=context", 0);
    assert!(near(active, whole), "{active}");
}

#[test]
fn what_is_not_told_yet_is_told_in_the_end() {
    let begun = begun("");
    let mut sampler = begun.sampler();
    begin_thread(begun.agent, "own", 4, 1);
    begun.members_now(&mut sampler);
    let index = begun.own().index() as usize;
    let part = Part {
        weight_ns: 123,
        span_ns: 20_000_000,
        at_ns: 77,
        interval: (0, 77),
        is_known: false,
    };
    let mut unused = begun.setup.shelf.lock();
    sampler.known[index].add(part, &mut unused);
    assert!(unused.notes.is_empty(), "it may go on");
    drop(unused);
    sampler.end(&begun.setup.shelf);
    let notes = begun.setup.shelf.lock();
    let [Note::Run(run)] = &notes.notes[..] else {
        panic!("{:?}", notes.notes);
    };
    assert_eq!((run.thread, run.weight_ns), (begun.own().user(), 123));
}

#[test]
fn those_who_rest_are_asked_in_one_tick_of_several_where_that_is_dear() {
    let begun = begun(",wall-budget=0.5%");
    let mut sampler = begun.sampler();
    (0..100).for_each(|id| assert!(sampler.strata.insert(id, true)));
    (0..100).for_each(|id| sampler.strata.note(id, true, 0));
    (0..100).for_each(|id| sampler.strata.note(id, false, strata::QUIET_NS));
    assert_eq!(sampler.strata.resting(), 100);
    let tick_ns = 20_000_000;
    sampler.rested_ns = tick_ns;
    if sampler.kernel.maps_pages() {
        assert_eq!(sampler.asked_of(100, 0), 64, "until they have their pages");
    }
    sampler.maps_more = false;
    // A seventh of 0.45 % of a tick pays for so many at 200 ns.
    assert_eq!(sampler.asked_of(100, 0), 62);
    assert_eq!(sampler.asked_of(20, 0), 20);
    (0..50).for_each(|_| sampler.asking.spent(10, 50_000));
    assert_eq!(sampler.asked_of(100, 0), 0, "5 us each");
    sampler.rested_ns = 13 * tick_ns;
    assert_eq!(sampler.asked_of(100, 0), 32);
    // Sooner or later, whatever it costs.
    (0..50).for_each(|_| sampler.asking.spent(10, 50_000_000));
    assert_eq!(sampler.asked_of(100, 0), 0);
    sampler.rested_ns = 16 * tick_ns;
    assert_eq!(sampler.asked_of(100, 0), 32);
}

/// Where thousands are asked in one go, the few others are asked with them; all in the end.
#[test]
fn few_who_rest_are_asked_with_the_many() {
    let begun = begun("");
    let mut sampler = begun.sampler();
    sampler.maps_more = false;
    sampler.rested_ns = 60_000_000;
    sampler.begin_pass(20_000_000, false);
    assert!(sampler.is_pass_due, "there is nobody, which costs nothing");
    assert_eq!(sampler.asked_of(30, 1000), 30);
    sampler.is_pass_due = false;
    assert_eq!(sampler.asked_of(30, 1000), 0);
    assert_eq!(sampler.asked_of(30, 30), 30, "as many");
    assert!(sampler.asked_of(900, 1000) > 0, "too many for one pass");
    (0..50).for_each(|_| sampler.asking.spent(10, 50_000_000));
    assert_eq!(sampler.asked_of(30, 0), 0, "too dear");
    sampler.begin_pass(20_000_000, true);
    assert!(sampler.is_pass_due);
    assert_eq!(sampler.asked_of(30, 1000), 30, "for the last time");
}

#[test]
fn who_was_sampled_is_active_before_the_first_look() {
    let begun = begun("");
    let (mut sampler, index) = begun.has_met_one();
    assert_eq!(sampler.strata.active(), 0);
    // A sample of another one says nothing of it.
    begun.setup.shelf.add_sampled(index + 1);
    sampler.find_sampled(1, &begun.setup.shelf);
    assert!(sampler.strata.fresh().contains(index));
    begun.setup.shelf.add_sampled(index);
    sampler.find_sampled(1, &begun.setup.shelf);
    assert!(!sampler.strata.fresh().contains(index) && sampler.strata.active() == 1);
}

#[test]
fn nobody_is_forgotten_before_the_first_look() {
    let begun = begun("");
    let (mut sampler, index) = begun.has_met_one();
    // At first it is only noted what it has used; then it has run since.
    assert!(!sampler.has_run_since_met(index));
    let began = process::own_cpu();
    while process::own_cpu() == began {}
    assert!(sampler.has_run_since_met(index));
    // Nobody chose it, so it stays; who is known to have run is active.
    assert!(sampler.strata.fresh().contains(index));
    sampler.strata.note(index, true, 1);
    assert_eq!(
        (sampler.strata.fresh().len(), sampler.strata.active()),
        (0, 1)
    );
}
