//! Blocked event loops: threads that serve many connections wait for one thing, or read files, and
//! all connections wait with them.

use super::no_wall;
use crate::evidence::{Facts, is_wait};
use crate::finding::{Evidence, Finding, Measure, Sure, Verdict, View};
use crate::names::Set;
use crate::numbers::{percent, short};
use crate::share::Share;
use dwell_profile::{NodeId, RUNNING, WallFilter, Weight};
use std::collections::BTreeMap;

/// A share of the loops' time that is worth a change, and the least it must surely be.
const SHARE: f64 = 0.03;
const SURELY: f64 = 0.01;
const LOOKS: u64 = 5;
const MOST: usize = 3;

/// Frames that all work of an event loop runs under.
pub(super) const LOOPS: &[&str] = &[
    "io.netty.channel.nio.NioEventLoop.run",
    "io.netty.channel.epoll.EpollEventLoop.run",
    "io.netty.channel.SingleThreadIoEventLoop.run",
    "io.netty.channel.uring.*EventLoop.run",
    "io.netty.incubator.channel.uring.*EventLoop.run",
    "org.xnio.nio.WorkerThread.run",
    "org.apache.tomcat.util.net.NioEndpoint$Poller.run",
    "org.glassfish.grizzly.nio.SelectorRunner.run",
    "io.undertow.server.protocol.http.HttpReadListener.handleEvent",
];

/// Frames that read or write files, also when they find all in the page cache and do not wait.
pub(super) const FILE_CALLS: &[&str] = &[
    "java.io.FileInputStream.read*",
    "java.io.FileOutputStream.write*",
    "java.io.RandomAccessFile.read*",
    "java.io.RandomAccessFile.write*",
    "java.nio.file.Files.read*",
    "java.nio.file.Files.write*",
    "java.nio.file.Files.copy",
    // Not its FileDispatcherImpl: sockets use that, too, on JDK 8 and 11.
    "sun.nio.ch.FileChannelImpl.read*",
    "sun.nio.ch.FileChannelImpl.write*",
];

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    if !facts.profile.has_wall() {
        return no_wall(facts);
    }
    let loops = Set::new(facts.profile, LOOPS);
    if loops.is_empty() {
        return Verdict::lacks("no thread runs a known event loop");
    }
    let loops = facts.stacks.nodes_with(&loops);
    let files = Set::new(facts.profile, FILE_CALLS);
    // Each group's whole time, and the blocking calls by place and kind.
    let mut totals: BTreeMap<String, Weight> = BTreeMap::new();
    let mut blocked: BTreeMap<(String, String, String), (Weight, NodeId)> = BTreeMap::new();
    let filter = WallFilter {
        endpoint: facts.endpoint.map(str::to_owned),
        ..WallFilter::default()
    };
    for wall in facts.profile.wall(&filter) {
        if !loops.has(wall.node) {
            continue;
        }
        let group = facts.group(wall.thread).to_owned();
        *totals.entry(group.clone()).or_default() += &wall.weight;
        let how = match wall.cause {
            RUNNING if facts.stacks.top_has(wall.node, &files) => "file (from the page cache)",
            cause if is_blocking(cause) => cause,
            _ => continue,
        };
        // The program cannot move work that a framework does on its own loops.
        if !facts.stacks.can_be_changed(wall.node) {
            continue;
        }
        let place = facts.stacks.place_name(wall.node);
        let sum = blocked
            .entry((group, place, how.to_owned()))
            .or_insert((Weight::default(), wall.node));
        sum.0 += &wall.weight;
    }
    let mut found: Vec<Finding> = blocked
        .iter()
        .filter_map(|((group, place, how), (weight, node))| {
            let total = totals.get(group)?;
            let share = Share::sampled(weight, total, format!("the wall time of threads {group}"));
            let is_large = share.is_at_least(SHARE, SURELY, LOOKS);
            is_large.then(|| finding(facts, group, place, how, share, *node))
        })
        .collect();
    found.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    found.truncate(MOST);
    Verdict::Found(found)
}

/// Waits that a loop must never enter. A stop of all threads is not the loop's fault.
fn is_blocking(cause: &str) -> bool {
    is_wait(cause)
        && !matches!(
            cause,
            "safepoint" | "gc-stall" | "vm-lock" | "unknown" | "page-fault"
        )
}

fn finding(
    facts: &Facts<'_>,
    group: &str,
    place: &str,
    how: &str,
    share: Share,
    node: NodeId,
) -> Finding {
    Finding {
        rule: "",
        what: format!(
            "the event loops {group} are blocked {} of their time in {place} ({how}): all their \
             connections wait",
            percent(share.value)
        ),
        // Requests on a loop stand still while it is blocked, whatever they are at.
        weight: match facts.has_endpoints() {
            true => facts.lost_by_all(share.value),
            false => facts.lost_waiting(share.ns),
        },
        evidence: vec![Evidence {
            text: "frames of the event loop lie below this wait".to_owned(),
            view: View {
                measure: Measure::Wall,
                threads: Some(group.to_owned()),
                focus: facts.stacks.focus_of(node),
                ..View::default()
            },
            stack: facts.stacks.shown(node),
        }],
        remedy: remedy(place, how),
        sure: Sure::High,
        because: "event loops are recognised by their frames, and these threads were sampled"
            .to_owned(),
        share,
    }
}

fn remedy(place: &str, how: &str) -> String {
    let place = short(place);
    if how.starts_with("file") {
        return format!(
            "do not read files in {place} on the event loop: let the framework send them \
             (sendFile, StaticHandler, DefaultFileRegion), keep small ones in memory, or read on \
             a worker pool (executeBlocking)"
        );
    }
    format!(
        "run the blocking call in {place} on a worker pool (executeBlocking, a scheduler of its \
         own), or use a client that does not block"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    const LOOP: &str = "io.netty.channel.nio.NioEventLoop.run";

    #[test]
    fn blocking_calls_and_reads_on_loop_are_reported() {
        let mut art = Art::default();
        art.look("eventloop-1", "", "idle-pool", LOOP, 50, 20);
        let stack = format!("java.lang.Thread.sleep;app.Handler.handle;{LOOP}");
        art.look("eventloop-1", "", "sleep", &stack, 20, 20);
        let read = format!("java.io.FileInputStream.readBytes;app.Files.send;{LOOP}");
        art.cpu("eventloop-1", "", &read, 60, 10);
        let found = art.found(check);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].what.contains("app.Files.send (file"), "{found:?}");
        assert!(found[0].remedy.contains("sendFile"));
        assert!(
            found[1].what.contains("app.Handler.handle (sleep)"),
            "{found:?}"
        );
    }

    #[test]
    fn relocated_loops_are_known_and_their_own_waits_left_alone() {
        let of = |below: &str| {
            let mut art = Art::default();
            let root = "io.grpc.netty.shaded.io.netty.channel.nio.NioEventLoop.run";
            art.look("loop-1", "", "monitor", &format!("{below};{root}"), 90, 20);
            art.found(check).len()
        };
        assert_eq!(of("app.Handler.handle"), 1);
        assert_eq!(of("io.grpc.netty.shaded.io.netty.channel.Registry.add"), 0);
    }

    #[test]
    fn a_loop_that_selects_and_runs_is_fine() {
        let mut art = Art::default();
        art.look("eventloop-1", "", "idle-pool", LOOP, 50, 20);
        art.cpu(
            "eventloop-1",
            "",
            &format!("app.Codec.decode;{LOOP}"),
            50,
            10,
        );
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn without_event_loops_the_rule_does_not_apply() {
        let mut art = Art::default();
        art.look("w-1", "", "sleep", "java.lang.Thread.sleep;app.A.b", 50, 20);
        assert!(art.lacks(check).contains("event loop"));
    }
}
