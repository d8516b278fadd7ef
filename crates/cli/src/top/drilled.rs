//! The part of the time that the user drilled into. Pure.

use super::window::{IDLE, Piece, Snapshot};
use dwell_profile::{CallTree, group_of};

/// A thread, or a group of threads whose names differ in numbers only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// One thread, by its ids in the operating system and in Java.
    One {
        /// Its name.
        name: String,
        /// The operating system's id.
        os_tid: i64,
        /// Java's id.
        java_tid: i64,
    },
    /// A group, by the common part of the names.
    Group(String),
}

impl Who {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Who::One { name, .. } | Who::Group(name) => name,
        }
    }

    /// Whether this is the thread of the snapshot.
    fn is(&self, snapshot: &Snapshot, thread: u32) -> bool {
        let Some(found) = snapshot.profile.threads().get(thread as usize) else {
            return false;
        };
        match self {
            Who::One {
                os_tid, java_tid, ..
            } => (found.os_tid, found.java_tid) == (*os_tid, *java_tid),
            Who::Group(group) => group_of(snapshot.profile.thread_name(thread)) == *group,
        }
    }
}

/// A part of the time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// With this method on the stack.
    pub method: Option<String>,
    /// Time of these threads.
    pub who: Option<Who>,
    /// For this endpoint, or for none.
    pub endpoint: Option<Option<String>>,
    /// With this cause.
    pub cause: Option<String>,
    /// Safepoints for this operation.
    pub operation: Option<String>,
}

impl Scope {
    /// The names of the selected parts.
    pub fn parts(&self) -> Vec<&str> {
        let endpoint = self.endpoint.as_ref();
        let endpoint = endpoint.map(|endpoint| endpoint.as_deref().unwrap_or("no endpoint"));
        let parts = [
            endpoint,
            self.who.as_ref().map(Who::name),
            self.cause.as_deref(),
            self.method.as_deref(),
            self.operation.as_deref(),
        ];
        parts.into_iter().flatten().collect()
    }

    /// Whether requests can be counted for it: they have an endpoint, but no other part.
    pub fn has_requests(&self) -> bool {
        self.method.is_none() && self.who.is_none() && self.cause.is_none()
    }

    /// The pieces of time in this part; idle threads of pools only on request.
    pub fn pieces<'s>(
        &'s self,
        snapshot: &'s Snapshot,
        idle: bool,
    ) -> impl Iterator<Item = &'s Piece> {
        let threads: Vec<bool> = (0..snapshot.profile.threads().len() as u32)
            .map(|thread| {
                let who = self.who.as_ref();
                who.is_none_or(|who| who.is(snapshot, thread))
            })
            .collect();
        let has_method = self.method.as_ref().map(|method| {
            let names = &snapshot.methods.names;
            let group = names.iter().position(|name| name == method);
            nodes_with(&snapshot.tree, group)
        });
        let idle = idle || self.cause.as_deref() == Some(IDLE);
        snapshot.pieces.iter().filter(move |piece| {
            let cause = snapshot.cause(piece);
            let endpoint = self.endpoint.as_ref();
            let has_method = has_method.as_ref();
            threads.get(piece.thread as usize) == Some(&true)
                && (idle || cause != IDLE)
                && self.cause.as_deref().is_none_or(|wanted| wanted == cause)
                && endpoint.is_none_or(|wanted| wanted.as_deref() == snapshot.endpoint(piece))
                && has_method.is_none_or(|has| has.get(piece.node as usize) == Some(&true))
        })
    }
}

/// Whether this method is on a stack, for each stack.
fn nodes_with(tree: &CallTree, group: Option<usize>) -> Vec<bool> {
    let mut has = vec![false; tree.len()];
    let keys = tree.keys().iter().zip(tree.parents()).enumerate();
    for (node, (key, parent)) in keys.skip(1) {
        let above = has.get(*parent as usize) == Some(&true);
        if let Some(has) = has.get_mut(node) {
            *has = above || Some(*key as usize) == group;
        }
    }
    has
}

#[cfg(test)]
mod tests {
    use super::super::window::tests::look;
    use super::*;
    use dwell_profile::text_art;

    fn snapshot() -> Snapshot {
        let mut builder = text_art::builder(
            "thread: pool-1 pool-2 main
             weight: 1      2      4
                     a.A.x  a.A.x  a.B.z
                     a.A.y  -      -",
        );
        look(&mut builder, 0, "socket", &["a.A.x", "a.A.r"], 8);
        look(&mut builder, 1, IDLE, &["a.A.x"], 16);
        Snapshot::new(builder.finish(), 1_000_000_000)
    }

    fn sum(scope: &Scope, idle: bool) -> (u64, u64) {
        let snapshot = snapshot();
        let pieces = scope.pieces(&snapshot, idle);
        let times: Vec<_> = pieces.map(|piece| piece.time).collect();
        let ms = |wall: u64| wall / 1_000_000 + wall % 1_000_000;
        (
            times.iter().map(|time| time.cpu).sum(),
            times.iter().map(|time| ms(time.wall)).sum(),
        )
    }

    #[test]
    fn each_filter_narrows_the_view() {
        let all = Scope::default();
        assert_eq!(sum(&all, true), (7, 7 + 24));
        assert_eq!(sum(&all, false), (7, 7 + 8));
        let method = |name: &str| Scope {
            method: Some(name.to_owned()),
            ..Scope::default()
        };
        assert_eq!(sum(&method("a.A.x"), false), (3, 3 + 8));
        assert_eq!(sum(&method("a.A.y"), true), (1, 1));
        assert_eq!(sum(&method("gone"), true), (0, 0));
        let group = Scope {
            who: Some(Who::Group("pool-*".to_owned())),
            ..Scope::default()
        };
        assert_eq!(sum(&group, true), (3, 3 + 24));
        let idle = Scope {
            cause: Some(IDLE.to_owned()),
            ..group.clone()
        };
        assert_eq!(sum(&idle, false), (0, 16));
        assert_eq!(idle.parts(), ["pool-*", IDLE]);
        let one = Scope {
            who: Some(Who::One {
                name: "pool-2".to_owned(),
                os_tid: 2,
                java_tid: 2,
            }),
            ..Scope::default()
        };
        assert_eq!(sum(&one, false), (2, 2));
        let none = Scope {
            endpoint: Some(Some("GET /".to_owned())),
            ..Scope::default()
        };
        assert_eq!(sum(&none, true), (0, 0));
    }
}
