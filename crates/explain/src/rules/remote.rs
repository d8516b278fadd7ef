//! Slow downstream calls: requests that wait for an answer of another process.

use super::{no_wall, queries};
use crate::evidence::{Entry, Facts, Kind};
use crate::finding::{Finding, Sure, Verdict};
use crate::names::Set;
use crate::numbers::{duration, short};
use crate::stacks::Nodes;
use crate::waits::{Wait, gather};

/// A share of a request's time that is worth a change, and the least it must surely be.
const SHARE: f64 = 0.25;
const SURELY: f64 = 0.10;
const LOOKS: u64 = 6;
const MOST: usize = 3;

/// Without endpoints, waits for peers are slow if this part of their time is in long waits.
const MOSTLY_LONG: f64 = 0.5;

/// Methods that call other services. Without endpoints, a wait for a peer counts only under these:
/// threads of servers wait for their clients most of the time, which is normal.
const CLIENTS: &[&str] = &[
    "java.net.http.*",
    "jdk.internal.net.http.*",
    "sun.net.www.http.HttpClient.*",
    "sun.net.www.protocol.http*",
    "java.net.Socket.connect",
    "okhttp3.*",
    "org.apache.http.*",
    "org.apache.hc.client5.*",
    "io.grpc.stub.*",
];
/// Clients of databases. A program calls a database as a part of its work, and fewer calls always
/// help. A generator of load, however, always waits for its server: there, only long waits show a
/// slow server.
const DATABASES: &[&str] = &[
    "org.postgresql.*",
    "com.mysql.*",
    "org.mariadb.jdbc.*",
    "oracle.jdbc.*",
    "com.microsoft.sqlserver.jdbc.*",
    "com.mongodb.*",
    "com.datastax.oss.driver.*",
    "redis.clients.jedis.*",
    "io.lettuce.core.*",
];

/// Calls of clients that wait for the answer of another process, while a thread of the client reads
/// the socket: the caller is parked or waits to be notified.
const ANSWERS: &[&str] = &[
    "jdk.internal.net.http.HttpClientImpl.send",
    "io.grpc.stub.ClientCalls.blocking*",
    "io.grpc.stub.ClientCalls$BlockingResponseStream.*",
    "io.grpc.stub.BlockingClientCall.*",
    "okhttp3.internal.http2.Http2Stream.*",
    "com.sun.jndi.ldap.Connection.readReply",
    "io.lettuce.core.LettuceFutures.await*",
    "io.lettuce.core.internal.Futures.await*",
    "org.redisson.command.CommandAsyncService.get*",
    "com.datastax.oss.driver.internal.core.util.concurrent.CompletableFutures.get*",
    "org.apache.zookeeper.ClientCnxn.submitRequest",
    "org.apache.kafka.clients.producer.internals.FutureRecordMetadata.get",
    "org.apache.activemq.artemis.core.protocol.core.impl.ChannelImpl.sendBlocking",
    "com.rabbitmq.client.impl.AMQChannel.*pc",
];

/// Where threads wait so.
pub(super) fn answers(facts: &Facts<'_>) -> Nodes {
    facts.stacks.nodes_with(&Set::new(facts.profile, ANSWERS))
}

/// Where threads ask others.
struct Clients {
    all: Nodes,
    databases: Nodes,
    answers: Nodes,
}

/// Reason why a wait gets a finding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// Requests are marked, and wait.
    Request,
    /// Most waits are long.
    Long,
    /// A database is asked, if only for a moment each time.
    Often,
}

impl Shown {
    fn of(wait: &Wait, clients: &Clients, is_endpoint: bool) -> Option<Shown> {
        if is_endpoint {
            return Some(Shown::Request);
        }
        let is_long = wait.long_ns as f64 >= MOSTLY_LONG * wait.weight.sum as f64;
        let is_database = clients.databases.has(wait.node());
        match (is_long, is_database) {
            (true, _) => Some(Shown::Long),
            (false, true) => Some(Shown::Often),
            (false, false) => None,
        }
    }

    const fn sure(self) -> Sure {
        match self {
            Shown::Request => Sure::High,
            Shown::Long | Shown::Often => Sure::Medium,
        }
    }

    const fn because(self) -> &'static str {
        match self {
            Shown::Request => "samples show its threads waiting for the answer within the request",
            Shown::Long => {
                "most of it is in waits of 50 ms and longer; no requests are marked, so the \
                 effect is unknown: a thread that listens for messages looks the same"
            }
            Shown::Often => "it calls a database; no requests are marked, so the effect is unknown",
        }
    }

    fn remedy(self, peer: &str, place: &str) -> String {
        let place = short(place);
        if peer.is_empty() {
            return format!(
                "find out what {place} calls, and why the answer is slow, or call it less often \
                 (cache, batch), or in parallel"
            );
        }
        match self {
            Shown::Request | Shown::Long => format!(
                "find out why {peer} is slow, or call it less often in {place} (cache, batch), in \
                 parallel, or over keep-alive connections"
            ),
            Shown::Often => format!(
                "answers are fast: call {peer} less often in {place} (cache, batch), or in \
                 parallel"
            ),
        }
    }
}

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    if !facts.profile.has_wall() {
        return no_wall(facts);
    }
    let with = |methods| facts.stacks.nodes_with(&Set::new(facts.profile, methods));
    let clients = Clients {
        all: with(&[CLIENTS, DATABASES].concat()),
        databases: with(DATABASES),
        answers: answers(facts),
    };
    let has_endpoints = facts.has_endpoints();
    let mut found = Vec::new();
    let mut is_unknown = false;
    let told = queries::told(facts);
    // A loop of queries has a finding of its own.
    let is_told = |entry: &Entry<'_>| told.get(entry.node as usize) == Some(&true);
    let call = |entry: &Entry<'_>| call(facts, &clients, entry).filter(|_| !is_told(entry));
    for ((peer, place), wait) in gather(facts, |entry| call(entry)) {
        let Some(whose) = wait.whose(facts) else {
            continue;
        };
        let share = wait.share(facts, &whose);
        let is_asked = has_endpoints == (whose.kind == Kind::Endpoint);
        if !is_asked || !share.is_at_least(SHARE, SURELY, LOOKS) || !whose.matters(facts) {
            continue;
        }
        let Some(shown) = Shown::of(&wait, &clients, has_endpoints) else {
            is_unknown |= facts.profile.bin_ns() > 0;
            continue;
        };
        let each = whose
            .per_request(facts, share.ns)
            .map_or(String::new(), |ns| {
                format!(", {} a request on average", duration(ns))
            });
        let asked = match peer.is_empty() {
            true => "another process",
            false => peer.as_str(),
        };
        found.push(Finding {
            rule: "",
            what: format!(
                "{} for {asked} in {place}{each}",
                whose.spends("wait", share.value)
            ),
            weight: wait.gravity(facts),
            share,
            evidence: vec![wait.evidence(facts, &whose, wait.seen())],
            remedy: shown.remedy(&peer, &place),
            sure: shown.sure(),
            because: shown.because().to_owned(),
        });
        if found.len() == MOST {
            break;
        }
    }
    match found.is_empty() && is_unknown {
        true => Verdict::lacks(
            "there are so many samples that they are merged, so the length of single waits for a \
             peer is unknown; record a shorter time, or mark requests (docs/context.md)",
        ),
        false => Verdict::Found(found),
    }
}

fn call(facts: &Facts<'_>, clients: &Clients, entry: &Entry<'_>) -> Option<(String, String)> {
    let kind = facts.subjects.get(entry.subject)?.kind;
    let asks = match entry.cause {
        "socket" => kind == Kind::Endpoint || clients.all.has(entry.node),
        "park" | "object-wait" => clients.answers.has(entry.node),
        _ => false,
    };
    if !asks {
        return None;
    }
    let detail = entry.detail.map_or("", |id| facts.profile.names().text(id));
    let peer = detail
        .strip_prefix("peer ")
        .unwrap_or("")
        .replace("[::ffff:127.0.0.1]", "127.0.0.1");
    Some((peer, facts.stacks.user_name(entry.node)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    const READ: &str = "java.net.Socket$SocketInputStream.read;app.Quote.ask";

    #[test]
    fn the_peer_and_the_place_are_named() {
        let mut art = Art::default();
        art.look("w-1", "GET /q", "socket", READ, 20, 20)
            .detail("peer 10.0.0.7:5432");
        let found = art.found(check);
        let what = &found[0].what;
        assert!(
            what.contains("for 10.0.0.7:5432 in app.Quote.ask"),
            "{what}"
        );
        assert_eq!(found[0].sure, Sure::High);
    }

    #[test]
    fn unknown_peer_is_not_called_slow() {
        let mut art = Art::default();
        art.look("w-1", "GET /q", "socket", READ, 20, 20);
        let found = art.found(check);
        assert!(found[0].what.contains("for another process in app.Quote"));
        assert!(found[0].remedy.starts_with("find out what Quote.ask calls"));
    }

    /// A client's own thread reads the answer, and the caller is parked.
    #[test]
    fn parked_caller_of_client_waits_for_its_peer() {
        const SEND: &str = "jdk.internal.misc.Unsafe.park;\
            java.util.concurrent.CompletableFuture.get;jdk.internal.net.http.HttpClientImpl.send;\
            app.Quote.ask";
        for endpoint in ["GET /q", ""] {
            let mut art = Art::default();
            art.look("w-1", endpoint, "park", SEND, 60, 20);
            art.cpu("w-1", endpoint, "app.Quote.ask", 10, 1);
            art.cpu("w-1", endpoint, "app.Quote.write", 90, 1);
            let found = art.found(check);
            assert_eq!(found.len(), 1, "{endpoint}");
            assert!(found[0].what.contains("for another process in app.Quote"));
            assert_eq!(art.found(super::super::amid_work::check), []);
            if !endpoint.is_empty() {
                assert_eq!(art.found(super::super::futures::check), []);
            }
        }
    }

    #[test]
    fn method_that_calls_a_library_is_named() {
        let mut art = Art::default();
        let call = "java.util.concurrent.locks.LockSupport.park;\
            io.grpc.stub.ClientCalls$ThreadlessExecutor.waitAndDrain;\
            io.grpc.stub.ClientCalls.blockingUnaryCall;app.Quote.ask;app.Main.run";
        art.look("w-1", "GET /q", "park", call, 60, 20);
        let found = art.found(check);
        assert!(found[0].what.contains("in app.Quote.ask"), "{found:?}");
    }

    #[test]
    fn without_endpoints_only_clients_ask() {
        let mut art = Art::default();
        art.look("http-1", "", "socket", READ, 50, 20);
        assert_eq!(art.found(check), [], "a server waits for its clients");
        let mut art = Art::default();
        art.look(
            "job",
            "",
            "socket",
            "org.postgresql.core.Stream.read;app.Job.run",
            50,
            20,
        );
        let found = art.found(check);
        assert_eq!((found.len(), found[0].sure), (1, Sure::Medium));
    }

    const ASK: &str = "sun.nio.ch.Net.poll;sun.net.www.http.HttpClient.parseHTTP;app.Client.ask";

    /// A client that sends one request after the other waits nearly always, however fast its server
    /// is: only long waits are the server's.
    #[test]
    fn client_without_requests_needs_long_waits() {
        for (looks, each, expected) in [(1, 300, 0), (2, 150, 0), (10, 30, 1)] {
            let mut art = Art::default();
            for _ in 0..each {
                art.look("client", "", "socket", ASK, looks, 20);
            }
            art.cpu("client", "", "app.Client.ask", 100, 10);
            let found = art.found(check);
            assert_eq!(found.len(), expected, "{looks} looks a wait: {found:?}");
            let is_told = |found: &Finding| found.because.contains("50 ms and longer");
            assert!(found.iter().all(is_told), "{found:?}");
            // With requests it is theirs, long or not.
            let mut art = Art::default();
            for _ in 0..each {
                art.look("client", "GET /q", "socket", ASK, looks, 20);
            }
            assert_eq!(art.found(check)[0].sure, Sure::High);
        }
    }

    /// A paced one, which sleeps in between, is no slower.
    #[test]
    fn paced_client_is_not_reported() {
        let mut art = Art::default();
        for _ in 0..100 {
            art.look("client", "", "socket", ASK, 1, 20);
            art.look(
                "client",
                "",
                "sleep",
                "java.lang.Thread.sleep;app.Client.pace",
                2,
                20,
            );
        }
        assert_eq!(art.found(check), []);
    }

    /// A program that uses a database has other work, and can call the database less often.
    #[test]
    fn frequent_database_calls_are_reported() {
        let mut art = Art::default();
        for _ in 0..100 {
            let stack = "sun.nio.ch.Net.poll;org.postgresql.core.Stream.read;app.Job.run";
            art.look("job", "", "socket", stack, 1, 20);
        }
        let found = art.found(check);
        assert_eq!((found.len(), found[0].sure), (1, Sure::Medium));
        assert!(found[0].remedy.contains("less often"), "{found:?}");
    }

    /// If samples are merged, the length of a single wait is unknown.
    #[test]
    fn merged_samples_do_not_show_whether_a_wait_was_long() {
        let mut art = Art::default();
        art.builder.bin_ns = 200_000_000;
        art.look("client", "", "socket", ASK, 100, 20);
        assert!(
            art.lacks(check)
                .contains("the length of single waits for a peer")
        );
        let mut art = Art::default();
        art.builder.bin_ns = 200_000_000;
        art.cpu("main", "", "app.Main.run", 100, 10);
        art.look(
            "main",
            "",
            "sleep",
            "java.lang.Thread.sleep;app.Main.run",
            100,
            20,
        );
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn a_few_looks_are_no_finding() {
        let mut art = Art::default();
        art.look("w-1", "GET /q", "socket", READ, 3, 20);
        assert_eq!(art.found(check), []);
    }
}
