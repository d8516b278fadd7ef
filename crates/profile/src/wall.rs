//! Wall time: the activities and waits of threads, from wall-clock samples of waiting threads and
//! from CPU samples of running ones.

use crate::allocations::Allocation;
use crate::extent::{Extent, Window};
use crate::names::NameId;
use crate::platform::{is_of_platform, tool_of_platform};
use crate::profile::{Profile, Unit};
use crate::sample::{ContextId, Look, Sample, ThreadId, Weight};
use crate::tree::NodeId;
use std::collections::BTreeMap;

/// The cause of samples of CPU time.
pub const RUNNING: &str = "running";

/// The option of a recording that looks only at threads which work for a request.
const ONLY_CONTEXT: &str = "filter=context";

/// Which wall time, or which CPU time, is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WallFilter {
    /// Causes; empty for all. CPU time has no cause.
    pub causes: Vec<String>,
    /// Names of threads, `*` for anything; none: all.
    pub thread: Option<String>,
    /// Endpoints that threads worked for, `*` for anything; none: all, and what was for none.
    pub endpoint: Option<String>,
    /// The beginning of the window in the recording, in nanoseconds. An event with a duration
    /// counts in part: see [`Window::part`].
    pub from_ns: Option<u64>,
    /// Only what was before.
    pub to_ns: Option<u64>,
}

/// Some wall time of a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wall<'p> {
    /// When it began, in nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// The time from there on over which its weight lies evenly; 0: it is at one instant.
    pub duration_ns: u64,
    /// Whose.
    pub thread: ThreadId,
    /// Where.
    pub node: NodeId,
    /// Its activity, or the cause of its wait.
    pub cause: &'p str,
    /// On what it waited, in words.
    pub detail: Option<NameId>,
    /// The request that the thread worked for.
    pub context: Option<ContextId>,
    /// The owner of the lock that it waited for, and the owner's stack.
    pub owner: Option<(ThreadId, Option<NodeId>)>,
    /// How much; its samples are looks.
    pub weight: Weight,
    /// For how long it was seen to last without a break; 0 where it was seen once, or where looks
    /// are put together because there are so many ([`Profile::bin_ns`]).
    pub lasted_ns: u64,
}

/// Finds the weight of the heaviest looks of a sort. Those that stand for less than a hundredth of
/// all their time do not count: a single tick that came late.
struct Heaviest {
    /// By the power of two that the weight of one look is at least: the time that such looks stand
    /// for, and the most that one weighs.
    classes: [(u64, f64); 64],
}

impl Default for Heaviest {
    fn default() -> Heaviest {
        Heaviest {
            classes: [(0, 0.0); 64],
        }
    }
}

impl Heaviest {
    fn add(&mut self, look: &Look) {
        let each = look.weight_ns / look.count.max(1);
        let class = self.classes.get_mut(each.max(1).ilog2() as usize);
        if let Some((time, most)) = class {
            *time = time.saturating_add(look.weight_ns);
            *most = most.max(look.weight_ns as f64 / look.count.max(1) as f64);
        }
    }

    fn weight(&self) -> f64 {
        let all: u128 = self.classes.iter().map(|(time, _)| u128::from(*time)).sum();
        let mut above = 0u128;
        for (time, most) in self.classes.iter().rev() {
            above += u128::from(*time);
            if above * 100 >= all {
                return *most;
            }
        }
        0.0
    }
}

/// A filter, applied to the threads and the contexts of a profile.
pub(crate) struct Wanted<'p> {
    /// Which threads are Java's.
    java: Vec<bool>,
    /// Which threads have the right name.
    named: Vec<bool>,
    /// Which contexts have the right endpoint.
    contexts: Vec<bool>,
    /// Which time.
    pub(crate) window: Window,
    filter: &'p WallFilter,
}

impl Wanted<'_> {
    /// Whether something of a thread, at this instant and for this context, is wanted.
    pub(crate) fn is(&self, time_ns: u64, thread: ThreadId, context: Option<ContextId>) -> bool {
        self.window.has(time_ns) && self.is_of(thread, context)
    }

    /// The same whenever it was.
    pub(crate) fn is_of(&self, thread: ThreadId, context: Option<ContextId>) -> bool {
        let is_for = |context| self.contexts.get(context as usize) == Some(&true);
        self.named.get(thread as usize) == Some(&true)
            && (self.filter.endpoint.is_none() || context.is_some_and(is_for))
    }
}

impl<'p> Wall<'p> {
    /// The time over which its weight lies.
    #[must_use]
    pub fn extent(&self) -> Extent {
        Extent {
            time_ns: self.time_ns,
            duration_ns: self.duration_ns,
        }
    }

    /// The part in a window; `None` outside of it.
    fn within(self, window: &Window) -> Option<Wall<'p>> {
        let extent = window.overlap(self.extent())?;
        Some(Wall {
            time_ns: extent.time_ns,
            duration_ns: extent.duration_ns,
            weight: self.weight.within(window, self.extent())?,
            lasted_ns: self.lasted_ns.min(extent.duration_ns),
            ..self
        })
    }
}

impl Profile {
    /// Whether the recording has wall time.
    #[must_use]
    pub fn has_wall(&self) -> bool {
        !self.looks.is_empty()
            && (self.unit == Unit::Nanoseconds || self.info.event_waits.is_some())
    }

    /// The wall time that a unit of a sample's weight stands for, in nanoseconds; 0: its time is
    /// not known. Where samples are only counted it is the time from one to the next.
    #[must_use]
    pub fn wall_scale(&self) -> u64 {
        match self.unit {
            Unit::Nanoseconds => 1,
            Unit::Samples => self.info.counted_ns(),
        }
    }

    /// Whether the wall time is that of threads at work for a request only.
    #[must_use]
    pub fn is_of_requests(&self) -> bool {
        self.info.options.split(',').any(|o| o == ONLY_CONTEXT)
    }

    /// The wall time of Java threads that `filter` wants, first that of threads that ran.
    pub fn wall<'p, 'f>(
        &'p self,
        filter: &'f WallFilter,
    ) -> impl Iterator<Item = Wall<'p>> + use<'p, 'f> {
        let scale = self.wall_scale();
        let samples = self.samples.iter().filter(move |_| scale > 0);
        let ran = samples.map(move |sample| self.ran(sample, scale));
        let heaviest = self.heaviest_looks();
        let waited = self.looks.iter();
        let waited = waited.map(move |look| self.waited(look, &heaviest));
        let wanted = self.wanted(filter);
        // Of a recording of requests, what ran for none is no part of the wall time either.
        let of_requests = self.is_of_requests();
        ran.chain(waited).filter_map(move |wall| {
            let is_wanted = wanted.java.get(wall.thread as usize) == Some(&true)
                && (!of_requests || wall.context.is_some())
                && wanted.is_of(wall.thread, wall.context)
                && (filter.causes.is_empty() || filter.causes.iter().any(|c| c == wall.cause));
            is_wanted.then(|| wall.within(&wanted.window)).flatten()
        })
    }

    /// The samples of CPU time of all threads that `filter` wants, whose causes do not matter.
    pub fn cpu<'p>(&'p self, filter: &'p WallFilter) -> impl Iterator<Item = &'p Sample> {
        let wanted = self.wanted(filter);
        let is_wanted = move |s: &&Sample| wanted.is(s.time_ns, s.thread, s.context);
        self.samples.iter().filter(is_wanted)
    }

    /// The allocations of all threads that `filter` wants, whose causes do not matter.
    pub fn allocations_of<'p>(
        &'p self,
        filter: &'p WallFilter,
    ) -> impl Iterator<Item = &'p Allocation> {
        let wanted = self.wanted(filter);
        let is_wanted = move |a: &&Allocation| wanted.is(a.time_ns, a.thread, a.context);
        self.allocations.iter().filter(is_wanted)
    }

    /// The decision of `filter` for each thread and each context.
    pub(crate) fn wanted<'p>(&self, filter: &'p WallFilter) -> Wanted<'p> {
        let threads = 0..self.threads.len() as u32;
        let contexts = 0..self.contexts.len() as u32;
        Wanted {
            java: threads.clone().map(|t| self.is_java(t)).collect(),
            named: threads.map(|t| self.is_named(t, filter)).collect(),
            contexts: contexts.map(|c| self.is_wanted_for(c, filter)).collect(),
            window: self.window(filter),
            filter,
        }
    }

    /// The time that `filter` wants, by the clock of the samples.
    fn window(&self, filter: &WallFilter) -> Window {
        let at = |since_ns: u64| self.info.start_ns.saturating_add(since_ns);
        Window {
            // A time before the beginning becomes the beginning.
            from_ns: filter.from_ns.filter(|ns| *ns > 0).map_or(0, at),
            to_ns: filter.to_ns.map_or(u64::MAX, at),
        }
    }

    /// By sample: whether its time is part of the wall time.
    #[must_use]
    pub fn samples_in_wall(&self) -> Vec<bool> {
        let of_requests = self.is_of_requests();
        let has_time = self.wall_scale() > 0;
        let threads: Vec<bool> = (0..self.threads.len() as u32)
            .map(|thread| self.is_java(thread))
            .collect();
        let is_in = |sample: &Sample| {
            has_time
                && threads.get(sample.thread as usize) == Some(&true)
                && (!of_requests || sample.context.is_some())
        };
        self.samples.iter().map(is_in).collect()
    }

    fn is_java(&self, thread: ThreadId) -> bool {
        let thread = self.threads.get(thread as usize);
        thread.is_some_and(|thread| thread.java_tid != 0)
    }

    fn is_named(&self, thread: ThreadId, filter: &WallFilter) -> bool {
        let name = self.thread_name(thread);
        let pattern = filter.thread.as_deref();
        pattern.is_none_or(|pattern| matches(pattern, name))
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

    fn ran(&self, sample: &Sample, scale: u64) -> Wall<'_> {
        let counted = Weight::of_sample(sample);
        Wall {
            time_ns: sample.time_ns,
            duration_ns: 0,
            thread: sample.thread,
            node: sample.node,
            cause: RUNNING,
            detail: None,
            context: sample.context,
            owner: None,
            weight: Weight {
                sum: counted.sum.saturating_mul(scale),
                squares: counted.squares * (scale as f64).powi(2),
                ..counted
            },
            lasted_ns: 0,
        }
    }

    /// The most that one look weighs, of those at platform threads and at virtual ones: these are
    /// chosen in other ways, and some of them stand for many.
    pub(crate) fn heaviest_looks(&self) -> [f64; 2] {
        let mut sorts = [Heaviest::default(), Heaviest::default()];
        for look in &self.looks {
            let [of_platform, of_virtual] = &mut sorts;
            match self.is_virtual(look.thread) {
                true => of_virtual.add(look),
                false => of_platform.add(look),
            }
        }
        sorts.map(|sort| sort.weight())
    }

    fn is_virtual(&self, thread: ThreadId) -> bool {
        let thread = self.threads.get(thread as usize);
        thread.is_some_and(|thread| thread.is_virtual)
    }

    pub(crate) fn waited(&self, look: &Look, [of_platform, of_virtual]: &[f64; 2]) -> Wall<'_> {
        let heaviest = match self.is_virtual(look.thread) {
            true => *of_virtual,
            false => *of_platform,
        };
        Wall {
            time_ns: look.time_ns,
            duration_ns: look.duration_ns,
            thread: look.thread,
            node: look.node,
            cause: self.names.text(look.cause),
            detail: look.detail,
            context: look.context,
            owner: look.owner.map(|owner| (owner, look.owner_node)),
            weight: Weight::of_look(look, heaviest),
            lasted_ns: match self.bin_ns {
                0 => look.duration_ns,
                _ => 0,
            },
        }
    }

    /// Sums of wall time by what `key` says of it, the largest first.
    pub fn wall_by<'p, K: Ord>(
        &'p self,
        filter: &WallFilter,
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

    /// The beginning of the program's classes, if it is a tool that comes with the platform.
    #[must_use]
    pub fn tool(&self) -> Option<String> {
        tool_of_platform(&self.info.java_arguments)
    }

    /// The innermost frame of the program below `node`: the first managed method outside of the
    /// runtime, otherwise the first method.
    #[must_use]
    pub fn place(&self, node: NodeId) -> Option<String> {
        let mut first = None;
        let tool = self.tool();
        for frame in self.tree.stack(node) {
            let kind = self.frames.get(frame as usize).map(|frame| frame.kind);
            let Some((id, method)) = self
                .method_of(frame)
                .filter(|_| kind.is_some_and(|k| k.is_java()))
            else {
                continue;
            };
            let class = self.names.text(method.class);
            if !is_of_platform(class) || tool.as_ref().is_some_and(|it| class.starts_with(it)) {
                return Some(self.method_name(id));
            }
            first = first.or(Some(id));
        }
        first.map(|id| self.method_name(id))
    }
}

/// The name of a group of threads: the common part of the names of a pool's threads. Numbers and
/// ids in hexadecimal digits do not matter. The twin of `poolOf` in `viewer/src/tree/keys.ts`.
#[must_use]
pub fn group_of(thread: &str) -> String {
    let mut group = String::new();
    let mut rest = thread;
    let mut is_in_word = false;
    while let Some(c) = rest.chars().next() {
        let id = match is_in_word {
            true => 0,
            false => hexadecimal_id(rest),
        };
        let taken = match (id, c.is_ascii_digit()) {
            (1.., _) => id,
            (_, true) => 1,
            _ => 0,
        };
        match taken {
            0 => group.push(c),
            _ if group.ends_with('*') => {}
            _ => group.push('*'),
        }
        is_in_word = c.is_ascii_alphanumeric();
        rest = rest.get(taken.max(c.len_utf8())..).unwrap_or("");
    }
    group
}

/// Least length of an id, such as the hash code of an object or the first part of a UUID. Its short
/// parts have the other length.
const ID_LEN: usize = 6;
const UUID_PART_LEN: usize = 4;

/// The length of the id in hexadecimal digits that `text` begins with; 0 without one. Words have
/// no decimal digits.
fn hexadecimal_id(text: &str) -> usize {
    if let Some(number) = text.strip_prefix("0x") {
        let digits = hexadecimal_word(number, 1).len();
        return if digits > 0 { 2 + digits } else { 0 };
    }
    let first = hexadecimal_word(text, ID_LEN);
    if !first.bytes().any(|b| b.is_ascii_digit()) {
        return 0;
    }
    let mut len = first.len();
    while let Some(next) = text.get(len..).and_then(|rest| rest.strip_prefix('-')) {
        match hexadecimal_word(next, UUID_PART_LEN).len() {
            0 => break,
            more => len += 1 + more,
        }
    }
    len
}

/// The word that `text` begins with, if it has only hexadecimal digits and so many of them.
fn hexadecimal_word(text: &str, least: usize) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric());
    let word = text.get(..end.unwrap_or(text.len())).unwrap_or("");
    match word.len() >= least && word.bytes().all(|b| b.is_ascii_hexdigit()) {
        true => word,
        false => "",
    }
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
    use crate::builder::Builder;
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
                thread,
                node,
                cause,
                weight_ns,
                count,
                ..Look::PLAIN
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
    fn cpu_time_is_filtered_by_thread_and_time() {
        let profile = profile();
        let weights = |filter: &WallFilter| -> Vec<u64> {
            profile.cpu(filter).map(|sample| sample.weight).collect()
        };
        assert_eq!(weights(&WallFilter::default()), [10, 20]);
        let workers = WallFilter {
            thread: Some("worker-*".to_owned()),
            ..WallFilter::default()
        };
        assert_eq!(weights(&workers), [20]);
        let later = WallFilter {
            from_ns: Some(u64::MAX),
            ..WallFilter::default()
        };
        assert_eq!(weights(&later), [0; 0]);
        let of_request = WallFilter {
            endpoint: Some("*".to_owned()),
            ..WallFilter::default()
        };
        assert_eq!(weights(&of_request), [0; 0]);
    }

    #[test]
    fn wall_time_sums_running_and_waiting() {
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

    /// A wait of ten seconds has a tenth of its time and of its looks in each of them.
    #[test]
    fn wall_time_of_a_second_has_the_part_of_a_long_wait() {
        const SECOND: u64 = 1_000_000_000;
        let mut builder = text_art::builder("thread: main\nweight: 10\na.A.x");
        builder.info.start_ns = 0;
        let cause = builder.cause("park");
        builder.look(Look {
            time_ns: SECOND / 2,
            duration_ns: 10 * SECOND,
            cause,
            weight_ns: 20 * SECOND,
            count: 10,
            ..Look::PLAIN
        });
        let profile = builder.finish();
        let of = |from: u64, to: Option<u64>| {
            let filter = WallFilter {
                causes: vec!["park".to_owned()],
                from_ns: Some(from * SECOND),
                to_ns: to.map(|to| to * SECOND),
                ..WallFilter::default()
            };
            let all: Vec<Wall<'_>> = profile.wall(&filter).collect();
            let [wall] = all[..] else {
                return (0, 0, 0);
            };
            (
                wall.weight.sum / SECOND,
                wall.weight.samples,
                wall.lasted_ns,
            )
        };
        assert_eq!(of(0, Some(1)), (1, 1, SECOND / 2));
        assert_eq!(of(4, Some(5)), (2, 1, SECOND));
        assert_eq!(of(4, Some(9)), (10, 5, 5 * SECOND));
        assert_eq!(of(10, None), (1, 0, SECOND / 2));
        assert_eq!(of(11, None), (0, 0, 0));
    }

    #[test]
    fn running_samples_are_part_of_wall_time() {
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
    fn looks_weigh_no_more_than_the_heaviest_of_their_sort() {
        let mut builder = text_art::builder("thread: main\nweight: 10\njava.A.x");
        let cause = builder.cause("park");
        let platform = builder.thread("worker-1", 7, 7, false);
        let light = builder.thread("v-1", 0, 8, true);
        let heavy = builder.thread("v-2", 0, 9, true);
        for (thread, weight_ns, count) in [(platform, 60, 3), (light, 5, 1), (heavy, 900, 2)] {
            builder.look(Look {
                thread,
                cause,
                weight_ns,
                count,
                ..Look::PLAIN
            });
        }
        let profile = builder.finish();
        let rows = profile.wall_by(&WallFilter::default(), |wall| wall.thread);
        let of = |thread| {
            rows.iter()
                .find(|(id, _)| *id == thread)
                .unwrap()
                .1
                .heaviest
        };
        assert_eq!((of(platform), of(light), of(heavy)), (20.0, 450.0, 450.0));
    }

    #[test]
    fn single_late_tick_makes_no_new_kind_of_looks() {
        let look = |weight_ns, count| Look {
            weight_ns,
            count,
            ..Look::PLAIN
        };
        let mut heaviest = Heaviest::default();
        assert_eq!(heaviest.weight(), 0.0);
        heaviest.add(&look(20_000, 1000));
        heaviest.add(&look(0, 0));
        assert_eq!(heaviest.weight(), 20.0);
        heaviest.add(&look(200, 1));
        assert_eq!(heaviest.weight(), 20.0, "less than a hundredth of the time");
        heaviest.add(&look(300, 1));
        assert_eq!(heaviest.weight(), 300.0);
    }

    #[test]
    fn the_place_is_the_programs() {
        let profile = profile();
        let node = profile.samples()[0].node;
        assert_eq!(profile.place(node).as_deref(), Some("app.B.y"));
    }

    #[test]
    fn place_in_a_tool_of_the_jdk_is_the_tools() {
        let mut builder = text_art::builder("com.sun.tools.javac.Attr.visit\njava.util.Map.get");
        let node = |profile: &Profile| profile.samples()[0].node;
        let place = |builder: &Builder| {
            let profile = builder.clone().finish();
            profile.place(node(&profile))
        };
        assert_eq!(place(&builder).as_deref(), Some("java.util.Map.get"));
        builder.info.java_arguments = "jdk.compiler/com.sun.tools.javac.Main A.java".to_owned();
        assert_eq!(
            place(&builder).as_deref(),
            Some("com.sun.tools.javac.Attr.visit")
        );
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

    #[test]
    fn groups_ignore_ids_in_hexadecimal_digits() {
        for (thread, group) in [
            ("HSQLDB Connection @1f6c9cd8", "HSQLDB Connection @*"),
            ("HSQLDB Connection @c5ad07e2", "HSQLDB Connection @*"),
            (
                "app-3f1c9a40-0b5e-4d2a-9c1f-00ffab12cdef-StreamThread-1",
                "app-*-StreamThread-*",
            ),
            ("a (Impl@6a2b4c1f)-x", "a (Impl@*)-x"),
            ("[0x5c1a 0xbeef] socket", "[* *] socket"),
            ("0x-0xyz", "*x-*xyz"),
            // Words, and numbers in them.
            ("facade-deadbeef", "facade-deadbeef"),
            ("db01-feed2", "db*-feed*"),
            ("xcafe123-y", "xcafe*-y"),
            ("über-12é34", "über-*é*"),
            ("", ""),
        ] {
            assert_eq!(group_of(thread), group, "{thread}");
        }
    }
}
