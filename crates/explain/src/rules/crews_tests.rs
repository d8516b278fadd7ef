//! Hand-made pools that are too small, ones that are well, and ones of which nothing can be known.

use super::super::{amid_work, pools};
use super::*;
use crate::art::Art;

const PARK: &str = "jdk.internal.misc.Unsafe.park;";
const LOOP: &str = "app.Pool$Worker.run";

/// So many threads that work `busy` of 100 looks, and wait for work in the others.
fn workers(art: &mut Art, threads: usize, cause: &str, busy: u64) {
    for thread in 0..threads {
        let name = format!("worker-{thread}");
        let work = format!("app.Task.work;{LOOP}");
        if cause == "running" {
            art.cpu(&name, "", &work, busy, 100);
        } else {
            art.cpu(&name, "", &work, 10, 10);
            for _ in 0..busy {
                art.look(&name, "", cause, &work, 1, 100);
            }
        }
        let take = format!("{PARK}java.util.concurrent.ArrayBlockingQueue.take;{LOOP}");
        for _ in busy..100 {
            art.look(&name, "", "park", &take, 1, 100);
        }
    }
}

/// A thread that waits in 50 of 100 looks, of 100 ms each.
fn waiter(art: &mut Art, name: &str, method: &str, caller: &str) {
    for _ in 0..50 {
        let stack = format!("{PARK}{method};{caller};app.Main.serve");
        art.look(name, "", "park", &stack, 1, 100);
    }
    art.cpu(name, "", "app.Main.make;app.Main.serve", 50, 100);
}

const PUT: &str = "java.util.concurrent.ArrayBlockingQueue.put";
const GET: &str = "java.util.concurrent.CountDownLatch.await";

#[test]
fn workers_that_are_never_free_while_their_queue_is_full_are_told() {
    for (cause, remedy) in [
        ("running", "more threads as far as processors are free"),
        ("socket", "until then more threads help"),
        ("monitor", "would only wait as well"),
    ] {
        let mut art = Art::default();
        workers(&mut art, 2, cause, 99);
        waiter(&mut art, "main", PUT, "app.Pool.submit");
        let found = art.found(pools::check);
        assert_eq!(found.len(), 1, "{cause}: {found:?}");
        let what = &found[0].what;
        assert!(
            what.starts_with("the 2 threads of worker-* always have work, and"),
            "{what}"
        );
        assert!(
            what.contains("main waits 50 % of its time in app.Pool.submit for room"),
            "{what}"
        );
        assert_eq!(found[0].sure, Sure::High);
        assert!(found[0].remedy.contains(remedy), "{}", found[0].remedy);
        // The wait for room is theirs, and not told a second time.
        assert_eq!(art.found(amid_work::check), []);
    }
}

#[test]
fn workers_that_were_never_seen_to_take_are_known_by_the_class_they_run_below() {
    let mut art = Art::default();
    workers(&mut art, 2, "running", 100);
    waiter(&mut art, "main", PUT, "app.Pool.submit");
    let found = art.found(pools::check);
    assert_eq!((found.len(), found[0].sure), (1, Sure::Medium), "{found:?}");
    // A second group below it: which of them it is, is not known.
    art.cpu("cleaner", "", "app.Pool.clean", 100, 100);
    assert_eq!(art.found(pools::check), []);
    let full = art.found(amid_work::check);
    assert!(full[0].what.contains("a queue, which is full"), "{full:?}");
}

/// A pool that is well has workers that are free now and then, however long its queue is full.
#[test]
fn workers_that_are_free_at_times_are_fine() {
    for busy in [0, 30, 80, 94] {
        for (method, caller) in [(PUT, "app.Pool.submit"), (GET, "app.Pool.call")] {
            let mut art = Art::default();
            workers(&mut art, 2, "running", busy);
            for client in 0..8 {
                waiter(&mut art, &format!("client-{client}"), method, caller);
            }
            assert_eq!(art.found(pools::check), [], "{busy} {caller}");
        }
    }
}

#[test]
fn more_threads_that_wait_for_results_than_there_are_workers_queue() {
    // Each waits half of its time: of two of them one at a time, of eight four.
    for (clients, expected) in [(2, 0), (4, 0), (8, 1)] {
        let mut art = Art::default();
        workers(&mut art, 2, "running", 99);
        for client in 0..clients {
            waiter(&mut art, &format!("client-{client}"), GET, "app.Pool.call");
        }
        let found = art.found(pools::check);
        assert_eq!(found.len(), expected, "{clients}: {found:?}");
        for found in found {
            assert!(
                found
                    .what
                    .contains("4.0 threads of client-* wait for results"),
                "{found:?}"
            );
            assert_eq!(found.sure, Sure::Low);
        }
    }
    // Whose results they are is a guess where nobody was seen to take work there, and what other
    // code of the JDK waits for is its own.
    let other =
        "java.util.concurrent.CountDownLatch.await;jdk.internal.net.http.HttpClientImpl.send";
    for (busy, method) in [(100, GET), (99, other)] {
        let mut art = Art::default();
        workers(&mut art, 2, "running", busy);
        for client in 0..8 {
            waiter(
                &mut art,
                &format!("client-{client}"),
                method,
                "app.Pool.call",
            );
        }
        assert_eq!(art.found(pools::check), [], "{busy} {method}");
    }
}

/// `main` starts all and then waits for the end, in the class where everything is.
#[test]
fn a_thread_that_waits_for_the_end_is_no_worker() {
    for (waits, ms, expected) in [(1, 9_000, 0), (300, 30, 1)] {
        let mut art = Art::default();
        art.cpu("main", "", "app.Pool.start;app.Pool.main", 20, 50);
        for _ in 0..waits {
            let stack = "java.lang.Thread.sleep;app.Pool.main";
            art.look("main", "", "sleep", stack, ms / 10, 10);
        }
        waiter(&mut art, "client", PUT, "app.Pool.submit");
        assert_eq!(art.found(pools::check).len(), expected, "{waits}");
    }
}

/// Results of somebody else: the class of the workers is not on the waiters' stacks.
#[test]
fn who_waits_elsewhere_is_not_told_of_these_workers() {
    let mut art = Art::default();
    workers(&mut art, 2, "running", 99);
    for client in 0..8 {
        waiter(&mut art, &format!("client-{client}"), GET, "app.Other.call");
    }
    assert_eq!(art.found(pools::check), []);
}

/// Whoever makes a queue of `wait` and `notify` waits for room as others wait for work.
#[test]
fn of_queues_made_of_wait_and_notify_nothing_is_said() {
    let mut art = Art::default();
    workers(&mut art, 2, "running", 100);
    for _ in 0..50 {
        let stack = "java.lang.Object.wait0;java.lang.Object.wait;app.Pool.submit;app.Main.serve";
        art.look("main", "", "object-wait", stack, 1, 100);
    }
    art.cpu("main", "", "app.Main.make;app.Main.serve", 50, 100);
    assert_eq!(art.found(pools::check), []);
}

#[test]
fn a_few_looks_at_workers_say_nothing() {
    let mut art = Art::default();
    art.cpu("worker-1", "", &format!("app.Task.work;{LOOP}"), 30, 100);
    waiter(&mut art, "main", PUT, "app.Pool.submit");
    assert_eq!(art.found(pools::check), []);
}
