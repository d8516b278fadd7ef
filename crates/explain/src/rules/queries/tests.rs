//! Tests of the rule about many queries.

use super::*;
use crate::art::Art;

const ASK: &str = "org.h2.Engine.run;org.h2.jdbc.JdbcPreparedStatement.executeQuery;\
                   app.Orders.line:42;app.Orders.list";
const OWN: &str = "app.Orders.add;app.Orders.list";

/// Requests of 100 ms with a sample each 10 ms: inside of the call wherever there is an `x`.
fn service(requests: u64, pattern: &str) -> Art {
    let mut art = Art::default();
    for request in 0..requests {
        for (step, mark) in pattern.chars().enumerate() {
            let stack = if mark == 'x' { ASK } else { OWN };
            let at_ms = request * 100 + step as u64 * 10;
            art.request_sample("w-1", "GET /orders", request + 1, stack, (at_ms, 10));
        }
    }
    art
}

#[test]
fn call_that_is_entered_again_in_a_request_is_a_loop() {
    let mut art = service(20, "x-xx-x--x-");
    let found = art.found(check);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        found[0].what,
        "the program calls a database repeatedly in app.Orders.line (line 42): at least 4 \
         calls in one request, 50 % of the CPU time"
    );
    assert!(found[0].remedy.contains("use one query in Orders.line"));
}

#[test]
fn results_that_are_allocated_count_calls() {
    for (bytes, expected) in [(512_000, 1), (2_000, 0)] {
        let mut art = Art::default();
        art.cpu("w-1", "GET /orders", ASK, 50, 10);
        art.look("w-1", "GET /orders", "runnable", OWN, 20, 20);
        art.requests("GET /orders", 1000, 10);
        // Objects of 64 bytes: 8000 each, 80 for a request.
        let class = "org.h2.jdbc.JdbcResultSet";
        art.allocated_for("w-1", "GET /orders", ASK, class, (bytes, 10));
        let found = art.found(check);
        assert_eq!(found.len(), expected, "{found:?}");
        let tells = |it: &Finding| it.what.contains("about 80 calls a request");
        assert!(found.iter().all(tells), "{found:?}");
    }
}

#[test]
fn one_long_query_is_no_loop() {
    for pattern in ["--xxxxxx--", "xx------xx", "----------"] {
        assert_eq!(service(20, pattern).found(check), [], "{pattern}");
    }
    // A single request may be special.
    assert_eq!(service(2, "x-xx-x--x-").found(check), []);
}

#[test]
fn batches_and_other_statements_are_no_queries() {
    for (class, method, expected) in [
        (
            "org.postgresql.jdbc.PgPreparedStatement",
            "executeQuery",
            true,
        ),
        ("com.zaxxer.hikari.pool.ProxyStatement", "execute", true),
        ("org.h2.jdbc.JdbcStatement", "executeBatch", false),
        ("org.h2.jdbc.JdbcStatement", "close", false),
        ("app.Executor", "execute", false),
    ] {
        assert_eq!(executes(class, method), expected, "{class}.{method}");
    }
}

#[test]
fn waits_between_turns_are_reported_for_one_endpoint() {
    let stack = "sun.nio.ch.Net.poll;org.postgresql.jdbc.PgStatement.executeQuery;\
                 app.Orders.line:42;app.Orders.list";
    for (turns, expected) in [(2000, 1), (300, 0)] {
        let mut art = Art::default();
        art.look("w-1", "GET /orders", "socket", stack, 300, 20);
        art.cpu("w-1", "GET /orders", OWN, 100, 10);
        art.requests("GET /orders", 100, 70);
        art.turns("w-1", turns, 10);
        let found = art.found(check);
        assert_eq!(found.len(), expected, "{found:?}");
        let tells = |it: &Finding| it.what.contains("about 20 waits a request, 86 % of its");
        assert!(found.iter().all(tells), "{found:?}");
    }
}

#[test]
fn parts_that_are_loaded_one_by_one_need_no_other_sign() {
    let stack = "org.h2.jdbc.JdbcPreparedStatement.executeQuery;\
                 org.hibernate.loader.Loader.load;\
                 org.hibernate.collection.spi.AbstractPersistentCollection.initialize;\
                 app.Orders.list";
    let mut art = Art::default();
    art.cpu("w-1", "GET /orders", stack, 50, 10);
    art.cpu("w-1", "GET /orders", OWN, 50, 10);
    let found = art.found(check);
    assert!(
        found[0].what.contains("one call for each loaded object"),
        "{found:?}"
    );
}

#[test]
fn stale_stack_of_a_past_request_is_no_call() {
    // One call in each request; time without a CPU has the stack of the last one seen.
    let mut art = Art::default();
    for request in 1..=20 {
        for (at_ms, stack) in [(0, ASK), (10, OWN), (20, OWN)] {
            let at_ms = request * 100 + at_ms;
            art.request_sample("w-1", "GET /orders", request, stack, (at_ms, 10));
        }
        for past in 1..request.min(5) {
            let at_ms = request * 100 + 50 + past * 10;
            art.request_sample("w-1", "GET /orders", request - past, ASK, (at_ms, 1));
        }
    }
    assert_eq!(art.found(check), []);
}

#[test]
fn time_without_a_cpu_is_no_new_call() {
    let mut art = Art::default();
    for request in 1..=20 {
        for step in 0..4 {
            let at_ms = request * 100 + step * 20;
            art.request_sample("w-1", "GET /orders", request, OWN, (at_ms, 10));
            art.request_look(
                "w-1",
                "GET /orders",
                request,
                "runnable",
                ASK,
                (at_ms + 10, 10),
            );
        }
    }
    assert_eq!(art.found(check), []);
}

#[test]
fn calls_that_cannot_be_counted_lack_allocations() {
    let mut art = Art::default();
    art.cpu("w-1", "GET /orders", ASK, 50, 10);
    art.look("w-1", "GET /orders", "running", ASK, 50, 20);
    art.look("w-1", "GET /orders", "running", OWN, 50, 20);
    art.requests("GET /orders", 1000, 1);
    assert_eq!(
        art.lacks(check),
        "GET /orders spends 60 % of its time in calls of a database, and their number is not \
         known; record with -e cpu,wall,alloc"
    );
}

#[test]
fn waits_for_a_cpu_leave_waits_for_the_database_countable() {
    let wait = "sun.nio.ch.Net.poll;org.h2.jdbc.JdbcPreparedStatement.executeQuery;\
                app.Orders.line:42;app.Orders.list";
    let prepare = "sun.nio.ch.Net.poll;org.h2.jdbc.JdbcConnection.prepareStatement;\
                   app.Orders.line:41;app.Orders.list";
    let lock = "java.lang.Object.wait;app.Orders.lock";
    for (lock_looks, expected) in [(0, 1), (500, 0)] {
        let mut art = Art::default();
        art.look("w-1", "GET /orders", "socket", wait, 150, 20);
        art.look("w-1", "GET /orders", "socket", prepare, 150, 20);
        art.look("w-1", "GET /orders", "runnable", OWN, 400, 20);
        art.look("w-1", "GET /orders", "lock", lock, lock_looks, 20);
        art.requests("GET /orders", 100, 70);
        art.turns("w-1", 2000, 10);
        let found = match art.verdict(check) {
            Verdict::Found(found) => found.len(),
            Verdict::Lacks(_) => 0,
        };
        assert_eq!(found, expected, "{lock_looks}");
    }
}

#[test]
fn one_long_call_with_many_waits_is_no_loop() {
    let mut art = Art::default();
    for request in 1..=20 {
        for step in 0..6 {
            let at_ms = request * 100 + step * 10;
            let stack = if step < 5 { ASK } else { OWN };
            art.request_look("w-1", "GET /orders", request, "socket", stack, (at_ms, 10));
        }
    }
    art.requests("GET /orders", 20, 60);
    art.turns("w-1", 4000, 10);
    assert_eq!(art.found(check), []);
}

#[test]
fn one_lazy_load_for_each_request_is_no_loop() {
    let stack = "org.h2.jdbc.JdbcPreparedStatement.executeQuery;\
                 org.hibernate.collection.spi.AbstractPersistentCollection.initialize;\
                 app.Orders.list";
    for (bytes, expected) in [(512_000, 1), (6_400, 0)] {
        let mut art = Art::default();
        art.look("w-1", "GET /orders", "running", stack, 50, 20);
        art.requests("GET /orders", 1000, 10);
        let class = "org.h2.jdbc.JdbcResultSet";
        art.allocated_for("w-1", "GET /orders", stack, class, (bytes, 10));
        assert_eq!(art.found(check).len(), expected, "{bytes}");
    }
}

#[test]
fn results_of_drivers_are_recognised() {
    for (class, expected) in [
        ("org.h2.jdbc.JdbcResultSet", true),
        ("com.mysql.cj.jdbc.result.ResultSetImpl", true),
        ("org.apache.derby.impl.jdbc.EmbedResultSet42", true),
        ("org.mariadb.jdbc.client.result.CompleteResult", true),
        ("org.postgresql.jdbc.PgResultSetMetaData", false),
        ("app.SearchResult", false),
    ] {
        assert_eq!(is_result(class), expected, "{class}");
    }
}

#[test]
fn connections_of_other_kinds_are_not_jdbc() {
    for (class, method, expected) in [
        ("org.h2.jdbc.JdbcConnection", "prepareStatement", true),
        (
            "com.zaxxer.hikari.pool.HikariProxyConnection",
            "prepareStatement",
            true,
        ),
        ("org.postgresql.core.v3.PgResultSet", "next", true),
        (
            "sun.net.www.protocol.http.HttpURLConnection",
            "getInputStream",
            false,
        ),
    ] {
        assert_eq!(is_jdbc(class, method), expected, "{class}.{method}");
    }
}

#[test]
fn loop_has_one_finding() {
    let prepare = "org.h2.Engine.parse;org.h2.jdbc.JdbcConnection.prepareStatement;\
                   app.Orders.line:41;app.Orders.list";
    let mut art = service(20, "x-xx-x--x-");
    art.cpu("w-1", "", prepare, 100, 10);
    let explained = crate::explain(&art.profile(), &crate::Options::default());
    let rules: Vec<&str> = explained.findings.iter().map(|it| it.rule).collect();
    assert!(rules.contains(&"many-queries"), "{rules:?}");
    assert!(!rules.contains(&"costly-calls"), "{rules:?}");
}
