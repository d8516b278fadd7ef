//! Wall time: what threads did or waited for, made of looks at those that did not run and of the
//! samples of CPU time of those that did.

use crate::names::NameId;
use crate::profile::{Profile, Unit};
use crate::sample::{ContextId, Look, Sample, ThreadId, Weight};
use crate::tree::NodeId;
use std::collections::BTreeMap;

/// The cause of samples of CPU time.
pub const RUNNING: &str = "running";

/// The option of a recording that looks only at threads which work for a request.
const ONLY_CONTEXT: &str = "filter=context";

/// Which wall time is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WallFilter {
    /// Causes; none: all.
    pub causes: Vec<String>,
    /// Names of threads, `*` for anything; none: all.
    pub thread: Option<String>,
    /// Endpoints that threads worked for, `*` for anything; none: all, and what was for none.
    pub endpoint: Option<String>,
    /// Only what began at this time of the recording, in nanoseconds, or later.
    pub from_ns: Option<u64>,
    /// Only what began before.
    pub to_ns: Option<u64>,
}

/// Some wall time of a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wall<'p> {
    /// When it began, in nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// Whose.
    pub thread: ThreadId,
    /// Where.
    pub node: NodeId,
    /// What it did or waited for.
    pub cause: &'p str,
    /// On what it waited, in words.
    pub detail: Option<NameId>,
    /// The request that the thread worked for.
    pub context: Option<ContextId>,
    /// Who had what it waited for, and where that one was.
    pub owner: Option<(ThreadId, Option<NodeId>)>,
    /// How much; its samples are looks.
    pub weight: Weight,
}

impl Profile {
    /// Whether the recording has wall time.
    #[must_use]
    pub fn has_wall(&self) -> bool {
        !self.looks.is_empty() && self.unit == Unit::Nanoseconds
    }

    /// The wall time of Java threads that `filter` wants, first that of threads that ran.
    pub fn wall<'p>(&'p self, filter: &'p WallFilter) -> impl Iterator<Item = Wall<'p>> {
        let threads: Vec<bool> = (0..self.threads.len() as u32)
            .map(|thread| self.is_wanted(thread, filter))
            .collect();
        let ran = self.samples.iter().map(|sample| self.ran(sample));
        let waited = self.looks.iter().map(|look| self.waited(look));
        let start_ns = self.info.start_ns;
        let contexts: Vec<bool> = (0..self.contexts.len() as u32)
            .map(|context| self.is_wanted_for(context, filter))
            .collect();
        let for_any = filter.endpoint.is_none();
        // Of a recording of requests, what ran for none is no part of the wall time either.
        let of_requests = self.info.options.split(',').any(|o| o == ONLY_CONTEXT);
        ran.chain(waited).filter(move |wall| {
            let at_ns = wall.time_ns.saturating_sub(start_ns);
            let is_for = |context| contexts.get(context as usize) == Some(&true);
            threads.get(wall.thread as usize) == Some(&true)
                && (!of_requests || wall.context.is_some())
                && (for_any || wall.context.is_some_and(is_for))
                && filter.from_ns.is_none_or(|from_ns| at_ns >= from_ns)
                && filter.to_ns.is_none_or(|to_ns| at_ns < to_ns)
                && (filter.causes.is_empty() || filter.causes.iter().any(|c| c == wall.cause))
        })
    }

    /// For each sample whether its time is part of the wall time.
    #[must_use]
    pub fn samples_in_wall(&self) -> Vec<bool> {
        let of_requests = self.info.options.split(',').any(|o| o == ONLY_CONTEXT);
        let all = WallFilter::default();
        let threads: Vec<bool> = (0..self.threads.len() as u32)
            .map(|thread| self.is_wanted(thread, &all))
            .collect();
        let is_in = |sample: &Sample| {
            threads.get(sample.thread as usize) == Some(&true)
                && (!of_requests || sample.context.is_some())
        };
        self.samples.iter().map(is_in).collect()
    }

    fn is_wanted(&self, thread: ThreadId, filter: &WallFilter) -> bool {
        let is_java = self
            .threads
            .get(thread as usize)
            .is_some_and(|thread| thread.java_tid != 0);
        let name = self.thread_name(thread);
        is_java
            && filter
                .thread
                .as_deref()
                .is_none_or(|pattern| matches(pattern, name))
    }

    fn is_wanted_for(&self, context: ContextId, filter: &WallFilter) -> bool {
        let pattern = filter.endpoint.as_deref();
        let endpoint = self.endpoint(context);
        pattern.is_some_and(|pattern| endpoint.is_some_and(|text| matches(pattern, text)))
    }

    /// The endpoint of a context, if it has one.
    #[must_use]
    pub fn endpoint(&self, context: ContextId) -> Option<&str> {
        let context = self.contexts.get(context as usize)?;
        context.endpoint.map(|name| self.names.text(name))
    }

    fn ran(&self, sample: &Sample) -> Wall<'_> {
        Wall {
            time_ns: sample.time_ns,
            thread: sample.thread,
            node: sample.node,
            cause: RUNNING,
            detail: None,
            context: sample.context,
            owner: None,
            weight: Weight::of(sample.weight),
        }
    }

    fn waited(&self, look: &Look) -> Wall<'_> {
        // Each look of a run is a choice of its own; all of them weigh about the same.
        let count = look.count.max(1);
        Wall {
            time_ns: look.time_ns,
            thread: look.thread,
            node: look.node,
            cause: self.names.text(look.cause),
            detail: look.detail,
            context: look.context,
            owner: look.owner.map(|owner| (owner, look.owner_node)),
            weight: Weight {
                sum: look.weight_ns,
                squares: (look.weight_ns as f64).powi(2) / count as f64,
                samples: count,
            },
        }
    }

    /// Sums of wall time by what `key` says of it, the largest first.
    pub fn wall_by<'p, K: Ord>(
        &'p self,
        filter: &'p WallFilter,
        key: impl Fn(&Wall<'p>) -> K,
    ) -> Vec<(K, Weight)> {
        let mut sums: BTreeMap<K, Weight> = BTreeMap::new();
        for wall in self.wall(filter) {
            *sums.entry(key(&wall)).or_default() += &wall.weight;
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, weight)| std::cmp::Reverse(weight.sum));
        sums
    }

    /// The innermost frame of the program below `node`: the first Java method that is not the
    /// JDK's, or, if there is none, the first one.
    #[must_use]
    pub fn place(&self, node: NodeId) -> Option<String> {
        let mut first = None;
        for frame in self.tree.stack(node) {
            let kind = self.frames.get(frame as usize).map(|frame| frame.kind);
            let Some((id, method)) = self
                .method_of(frame)
                .filter(|_| kind.is_some_and(|k| k.is_java()))
            else {
                continue;
            };
            if !is_of_jdk(self.names.text(method.class)) {
                return Some(self.method_name(id));
            }
            first = first.or(Some(id));
        }
        first.map(|id| self.method_name(id))
    }
}

/// The name of a group of threads: what the names of a pool's threads have in common.
#[must_use]
pub fn group_of(thread: &str) -> String {
    let mut group = String::new();
    for c in thread.chars() {
        match c.is_ascii_digit() {
            true if group.ends_with('*') => {}
            true => group.push('*'),
            false => group.push(c),
        }
    }
    group
}

fn is_of_jdk(class: &str) -> bool {
    ["java.", "jdk.", "sun.", "com.sun.", "javax."]
        .iter()
        .any(|package| class.replace('/', ".").starts_with(package))
}

/// Whether `text` is like `pattern`, in which `*` stands for anything.
#[must_use]
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or(""),
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Look;
    use crate::text_art;

    fn profile() -> Profile {
        let mut builder = text_art::builder(
            "thread:  main         worker-1
             weight:  10           20
                      java.A.x      java.A.x
                      app.B.y      app.B.y",
        );
        let (park, monitor) = (builder.cause("park"), builder.cause("monitor"));
        let frame = builder.marker("[some code]", crate::FrameKind::Native);
        let node = builder.stack([frame]);
        for (thread, cause, weight_ns, count) in [(0, park, 300, 3), (1, monitor, 100, 1)] {
            builder.look(Look {
                time_ns: 5_000_000,
                duration_ns: 0,
                thread,
                node,
                cause,
                weight_ns,
                count,
                context: None,
                detail: None,
                owner: None,
                owner_node: None,
            });
        }
        builder.finish()
    }

    fn sums(filter: &WallFilter) -> Vec<(String, u64, u64)> {
        let rows = profile().wall_by(filter, |wall| wall.cause.to_owned());
        rows.into_iter()
            .map(|(cause, weight)| (cause, weight.sum, weight.samples))
            .collect()
    }

    #[test]
    fn wall_time_is_what_ran_and_what_waited() {
        let row = |cause: &str, sum, looks| (cause.to_owned(), sum, looks);
        let all = sums(&WallFilter::default());
        assert_eq!(
            all,
            [
                row("park", 300, 3),
                row("monitor", 100, 1),
                row(RUNNING, 30, 2)
            ]
        );
        let workers = WallFilter {
            thread: Some("worker-*".to_owned()),
            ..WallFilter::default()
        };
        assert_eq!(
            sums(&workers),
            [row("monitor", 100, 1), row(RUNNING, 20, 1)]
        );
        let parked = WallFilter {
            causes: vec!["park".to_owned(), RUNNING.to_owned()],
            to_ns: Some(5_000_000),
            ..WallFilter::default()
        };
        assert_eq!(sums(&parked), [row(RUNNING, 30, 2)]);
    }

    #[test]
    fn what_ran_is_part_of_the_wall_time() {
        assert_eq!(profile().samples_in_wall(), [true, true]);
        let mut builder = text_art::builder("a.A.x");
        builder.info.options = "start,filter=context".to_owned();
        assert_eq!(builder.finish().samples_in_wall(), [false]);
    }

    #[test]
    fn looks_that_saw_the_same_are_as_many_choices() {
        let profile = profile();
        let filter = WallFilter::default();
        let park = profile
            .wall(&filter)
            .find(|wall| wall.cause == "park")
            .unwrap();
        // Three times 100, each its own choice.
        assert_eq!(park.weight.squares, 30_000.0);
    }

    #[test]
    fn the_place_is_the_programs() {
        let profile = profile();
        let node = profile.samples()[0].node;
        assert_eq!(profile.place(node).as_deref(), Some("app.B.y"));
    }

    #[test]
    fn patterns_and_groups() {
        for (pattern, text, expected) in [
            ("worker-*", "worker-12", true),
            ("worker-*", "my worker-1", false),
            ("*", "", true),
            ("main", "main", true),
            ("main", "main2", false),
            ("a*b*c", "a--b-b-c", true),
            ("a*b*c", "a--c", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        assert_eq!(group_of("http-8080-exec-17"), "http-*-exec-*");
        assert_eq!(group_of("main"), "main");
    }
}
