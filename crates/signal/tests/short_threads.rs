//! Threads far shorter than the interval are seen as often as their CPU time deserves.

mod common;

use common::{Account, Drainer, burn, points_of, run_threads};
use dwell_signal::{Cause, Config};

#[test]
fn their_expected_weight_is_their_cpu_time() {
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
        account.assert_points(points_of(&samples, account), INTERVAL_NS);
    }
    let in_intervals = |ns: u64| ns as f64 / INTERVAL_NS as f64;
    let points: u64 = samples.iter().map(|sample| sample.points).sum();
    let least: f64 = accounts
        .iter()
        .map(|account| in_intervals(account.before_ns))
        .sum();
    let most: f64 = accounts
        .iter()
        .map(|account| in_intervals(account.after_ns))
        .sum();
    // A thread has the whole part of c/T points, and one more with the fraction p as probability:
    // variance p (1 - p), which is at most 1/4. Five standard deviations.
    let bound = 5.0 * (accounts.len() as f64 / 4.0).sqrt();
    assert!(
        points as f64 >= least - bound,
        "{points} points for {least}..{most}"
    );
    assert!(
        points as f64 <= most + bound,
        "{points} points for {least}..{most}"
    );
    assert_eq!(engine.counters().get(Cause::PointsLost), 0);
}
