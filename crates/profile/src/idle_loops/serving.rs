//! Threads of servers that read the next request of their own connection. A thread that waits for
//! an answer waits in the same calls of the JDK, so the peers decide. A server's clients have a
//! port each, which the kernel has chosen, and each connection has a thread. Of an asked service
//! all connections have one peer.

use super::waiting::own_method;
use crate::builder::Builder;
use crate::frame::MethodId;
use crate::sample::ThreadId;
use std::collections::{BTreeMap, BTreeSet};

/// Ports that the kernel chooses for connections to others (`ip_local_port_range`) begin here.
const CHOSEN_PORT_MIN: u16 = 32_768;
/// The least number of connections: a service may listen to such a port, too.
const CONNECTIONS: usize = 2;

/// Methods in which threads read requests.
#[derive(Debug, Default)]
pub(super) struct Serving {
    methods: BTreeSet<MethodId>,
}

impl Serving {
    /// Those of all waits for peers.
    pub(super) fn of(builder: &Builder) -> Serving {
        let mut peers: BTreeMap<MethodId, BTreeMap<&str, BTreeSet<ThreadId>>> = BTreeMap::new();
        for look in builder.looks() {
            let detail = look.detail.filter(|_| builder.text(look.cause) == "socket");
            let Some(peer) = detail.and_then(|detail| builder.text(detail).strip_prefix("peer "))
            else {
                continue;
            };
            if let Some(method) = own_method(builder, look.node) {
                let of_peer = peers.entry(method).or_default().entry(peer).or_default();
                of_peer.insert(look.thread);
            }
        }
        let are_clients = |peers: &BTreeMap<&str, BTreeSet<ThreadId>>| {
            let ports: BTreeSet<u16> = peers.keys().filter_map(|peer| chosen_port(peer)).collect();
            let have_own_threads = peers.values().all(|threads| threads.len() == 1);
            ports.len() == peers.len() && ports.len() >= CONNECTIONS && have_own_threads
        };
        let methods = peers.into_iter().filter(|(_, peers)| are_clients(peers));
        Serving {
            methods: methods.map(|(method, _)| method).collect(),
        }
    }

    /// Whether threads wait for requests where the program's innermost method is this one.
    pub(super) fn reads_requests(&self, method: MethodId) -> bool {
        self.methods.contains(&method)
    }
}

/// The port of a peer, if it can be that of a client.
fn chosen_port(peer: &str) -> Option<u16> {
    let (_, port) = peer.rsplit_once(':')?;
    port.parse().ok().filter(|port| *port >= CHOSEN_PORT_MIN)
}
