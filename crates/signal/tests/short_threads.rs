//! Threads far shorter than the interval are seen as often as their CPU time deserves.

mod common;

use common::{Account, Drainer, burn, longest_window_ns, run_threads, weight_of};
use dwell_signal::{Cause, Config};

/// Detects 43 points of 240 that are missing. False alarm: 6e-7, five deviations of the largest
/// variance there can be.
#[test]
fn measured_their_expected_weight_is_their_cpu_time() {
    const INTERVAL_NS: u64 = 2_000_000;
    const BATCHES: u64 = 30;
    let engine = dwell_signal::init(&Config::default()).unwrap();
    assert_eq!(engine.start(INTERVAL_NS), 0);
    let drainer = Drainer::begin(engine);
    let mut accounts: Vec<Account> = Vec::new();
    for batch in 0..BATCHES {
        let numbers = batch * 10..batch * 10 + 10;
        accounts.extend(run_threads(engine, numbers, |number| {
            burn(100_000 + number * 9_000)
        }));
    }
    let samples = drainer.finish();
    assert!(engine.stop());
    for account in &accounts {
        account.assert_weight(weight_of(&samples, account), INTERVAL_NS);
    }
    let in_intervals = |ns: u64| ns as f64 / INTERVAL_NS as f64;
    let weight_ns: u64 = samples.iter().map(|sample| sample.weight_ns).sum();
    let points = in_intervals(weight_ns);
    let least: f64 = accounts
        .iter()
        .map(|account| in_intervals(account.before_ns))
        .sum();
    let most: f64 = accounts
        .iter()
        .map(|account| in_intervals(account.after_ns))
        .sum();
    // A thread has the weight of all windows that are over. The window in progress, of which the
    // part p is over, counts with probability p. Its variance p (1 - p) is at most 1/4 of the
    // window's square. The first window is an interval long. Five standard deviations.
    let longest = in_intervals(longest_window_ns(INTERVAL_NS));
    let square = |account: &Account| {
        let in_first = account.after_ns <= INTERVAL_NS;
        if in_first { 1.0 } else { longest * longest }
    };
    let bound = 5.0 * (accounts.iter().map(square).sum::<f64>() / 4.0).sqrt();
    assert!(
        points >= least - bound,
        "{points} points for {least}..{most}"
    );
    assert!(
        points <= most + bound,
        "{points} points for {least}..{most}"
    );
    assert_eq!(engine.counters().get(Cause::PointsLost), 0);
}
