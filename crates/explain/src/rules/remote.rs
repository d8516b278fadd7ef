//! Slow downstream calls: requests that wait for what another process answers.

use super::NO_WALL;
use crate::facts::{Entry, Facts, Kind};
use crate::finding::{Finding, Sure, Verdict};
use crate::names::Set;
use crate::stacks::Nodes;
use crate::text::{duration, percent, short};
use crate::waits::gather;

/// A share of a request's time that is worth a change, and the least it must surely be.
const SHARE: f64 = 0.25;
const SURELY: f64 = 0.10;
const LOOKS: u64 = 6;
const MOST: usize = 3;

/// Where threads ask others. Without endpoints a wait for a peer is told for these alone: threads
/// of servers wait for their clients most of their time, and that is as it should be.
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

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    if !facts.profile.has_wall() {
        return Verdict::lacks(NO_WALL);
    }
    let clients = facts.stacks.nodes_with(&Set::new(facts.profile, CLIENTS));
    let has_endpoints = facts.has_endpoints();
    let mut found = Vec::new();
    for ((peer, place), wait) in gather(facts, |entry| call(facts, &clients, entry)) {
        let Some(whose) = wait.whose(facts) else {
            continue;
        };
        let share = wait.share(facts, &whose);
        let is_asked = has_endpoints == (whose.kind == Kind::Endpoint);
        if !is_asked || !share.is_at_least(SHARE, SURELY, LOOKS) || !whose.matters(facts) {
            continue;
        }
        let each = whose
            .per_request(facts, share.ns)
            .map_or(String::new(), |ns| {
                format!(", {} a request on average", duration(ns))
            });
        let whom = match peer.is_empty() {
            true => "another process".to_owned(),
            false => peer.clone(),
        };
        found.push(Finding {
            rule: "",
            what: format!(
                "{} waits {} of its time for {whom} in {place}{each}",
                whose.name,
                percent(share.value)
            ),
            weight: wait.gravity(facts),
            share,
            evidence: vec![wait.evidence(facts, &whose, wait.seen())],
            remedy: format!(
                "see why {whom} is slow; ask it less in {} (cache its answers, many at once), \
                 beside other work, and over a connection that is kept open",
                short(&place)
            ),
            sure: match has_endpoints {
                true => Sure::High,
                false => Sure::Medium,
            },
            because: match has_endpoints {
                true => "its threads were seen waiting for this socket with the request".to_owned(),
                false => "no requests are marked, so who waits for this is not known".to_owned(),
            },
        });
        if found.len() == MOST {
            break;
        }
    }
    Verdict::Found(found)
}

fn call(facts: &Facts<'_>, clients: &Nodes, entry: &Entry<'_>) -> Option<(String, String)> {
    let kind = facts.subjects.get(entry.subject)?.kind;
    let asks = || kind == Kind::Endpoint || clients.has(entry.node);
    if entry.cause != "socket" || !asks() {
        return None;
    }
    let detail = entry.detail.map_or("", |id| facts.profile.names().text(id));
    let peer = detail
        .strip_prefix("peer ")
        .unwrap_or("")
        .replace("[::ffff:127.0.0.1]", "127.0.0.1");
    Some((peer, facts.stacks.place_name(entry.node)))
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

    #[test]
    fn a_few_looks_are_no_finding() {
        let mut art = Art::default();
        art.look("w-1", "GET /q", "socket", READ, 3, 20);
        assert_eq!(art.found(check), []);
    }
}
