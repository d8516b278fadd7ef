//! The part of a recording that a question is about: an event, filters, and the entries that pass.

use crate::answer::{Answer, Page, Unit};
use crate::arguments::{Argument, Arguments, Kind};
use dwell_profile::{
    ContextId, GroupBy, Grouped, IDLE, Lack, NodeId, Profile, ThreadId, WallFilter, Weight, matches,
};
use dwell_report::{incomplete, percent, unread_words};

/// Rows of an answer.
const LIMIT: u64 = 20;
const LIMIT_MAX: u64 = 200;
/// A time in a recording, in seconds.
const SECONDS_MAX: f64 = 1e9;
/// Failed stacks that deserve a note, as a share.
const FAILED: f64 = 0.01;
/// Warnings of a recording in an answer.
const WARNINGS: usize = 3;

pub(crate) const FILE: Argument =
    Argument::new("file", Kind::File, "The recording; default: the first one");
pub(crate) const LIMIT_OF_ROWS: Argument = Argument::new(
    "limit",
    Kind::Whole(1, LIMIT_MAX),
    "Maximum number of rows; default 20. An answer has at most 16 KiB",
);
pub(crate) const OFFSET: Argument = Argument::new(
    "offset",
    Kind::Whole(0, u32::MAX as u64),
    "Rows to skip: the `next` of the answer before",
);
pub(crate) const ENDPOINT: Argument = Argument::new(
    "endpoint",
    Kind::Text,
    "Only time for matching endpoints; * stands for anything",
);
pub(crate) const EVENT: Argument = Argument::new(
    "event",
    Kind::Word(&["cpu", "wall", "alloc", "live", "lock"]),
    "cpu: time on a CPU. wall: time of Java threads, waiting included. alloc: bytes allocated. \
     live: bytes that survived. lock: time blocked. With the last three, the innermost frame is \
     the class of the object or lock. Default: cpu, or wall if something else asks for causes",
);
pub(crate) const FROM: Argument = Argument::new(
    "from_s",
    Kind::Number(0.0, SECONDS_MAX),
    "Only from this second of the recording on",
);
pub(crate) const TO: Argument = Argument::new(
    "to_s",
    Kind::Number(0.0, SECONDS_MAX),
    "Only before this second of the recording",
);
pub(crate) const THREAD: Argument = Argument::new(
    "thread",
    Kind::Text,
    "Only threads with matching names; * stands for anything",
);
pub(crate) const CAUSE: Argument = Argument::new(
    "cause",
    Kind::Texts,
    "Only wall time with these causes: running, runnable, monitor, lock, park, sleep, socket, \
     file, and others that `top` by cause lists",
);
pub(crate) const METHOD: Argument = Argument::new(
    "method",
    Kind::Text,
    "Only stacks with this method: Class.method, with or without packages; * stands for anything",
);
pub(crate) const IDLE_TIME: Argument = Argument::new(
    "idle",
    Kind::Flag,
    "Include wall time of threads without work (cause idle-pool); default false",
);

/// The arguments of a selection.
pub(crate) const FILTERS: [Argument; 8] =
    [EVENT, FROM, TO, THREAD, ENDPOINT, CAUSE, METHOD, IDLE_TIME];

/// A measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Cpu,
    Wall,
    Alloc,
    Live,
    Lock,
}

/// Some time or bytes of a thread at a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'p> {
    pub(crate) thread: ThreadId,
    pub(crate) node: NodeId,
    pub(crate) weight: Weight,
    pub(crate) context: Option<ContextId>,
    /// Cause of wall time.
    pub(crate) cause: Option<&'p str>,
    /// Object of a wait, or class of a lock.
    pub(crate) detail: &'p str,
    /// The owner of the lock, and its stack.
    pub(crate) owner: Option<(ThreadId, Option<NodeId>)>,
}

/// An event with filters.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) event: Event,
    pub(crate) filter: WallFilter,
    method: Option<String>,
    has_idle: bool,
}

/// The page that arguments ask for.
pub(crate) fn page(arguments: &Arguments) -> Page {
    let number = |name, default| arguments.whole(name).unwrap_or(default);
    Page {
        offset: usize::try_from(number("offset", 0)).unwrap_or(usize::MAX),
        limit: usize::try_from(number("limit", LIMIT)).unwrap_or(usize::MAX),
    }
}

/// Nanoseconds of a number of seconds.
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

impl Selection {
    /// The selection of these arguments; `usual` is the event if nothing says otherwise.
    pub(crate) fn new(
        arguments: &Arguments,
        profile: &Profile,
        usual: Event,
    ) -> Result<Selection, String> {
        let time = |name| arguments.number(name).map(nanoseconds);
        let owned = |name| arguments.text(name).map(str::to_owned);
        let causes = arguments.texts("cause");
        let event = match arguments.text("event") {
            Some("cpu") => Event::Cpu,
            Some("wall") => Event::Wall,
            Some("alloc") => Event::Alloc,
            Some("live") => Event::Live,
            Some("lock") => Event::Lock,
            _ if !causes.is_empty() => Event::Wall,
            _ if usual == Event::Cpu && profile.total().samples == 0 && profile.has_wall() => {
                Event::Wall
            }
            _ => usual,
        };
        if event != Event::Wall && !causes.is_empty() {
            return Err("cause: only wall time has causes; use event wall".to_owned());
        }
        if let (Some(from), Some(to)) = (time("from_s"), time("to_s"))
            && from >= to
        {
            return Err("from_s: must be less than to_s".to_owned());
        }
        let selection = Selection {
            event,
            has_idle: arguments.flag("idle") || causes.contains(&IDLE),
            filter: WallFilter {
                causes: causes.into_iter().map(str::to_owned).collect(),
                thread: owned("thread"),
                endpoint: owned("endpoint"),
                from_ns: time("from_s"),
                to_ns: time("to_s"),
            },
            method: owned("method"),
        };
        selection.check(profile)?;
        Ok(selection)
    }

    /// The same for all methods.
    pub(crate) fn of_all_methods(self) -> Selection {
        Selection {
            method: None,
            ..self
        }
    }

    /// Checks that the recording has such data.
    fn check(&self, profile: &Profile) -> Result<(), String> {
        let (is_there, what, lack) = match self.event {
            Event::Cpu => (
                profile.total().samples > 0,
                "samples of time",
                Lack::Samples,
            ),
            Event::Wall => (profile.has_wall(), "wall time", Lack::Wall),
            Event::Alloc => {
                let has = !profile.allocations().is_empty();
                (has, "allocations", Lack::Allocations)
            }
            Event::Live => (profile.has_live(), "data on live objects", Lack::Live),
            Event::Lock => (profile.has_locks(), "waits for locks", Lack::Locks),
        };
        match is_there {
            true => Ok(()),
            false => Err(format!(
                "the recording has no {what}; {}",
                profile.info().remedy(lack)
            )),
        }
    }

    /// The quantity, in words.
    pub(crate) fn words(&self, profile: &Profile) -> String {
        match self.event {
            Event::Cpu => profile.info().measured.name(),
            Event::Wall if self.has_idle => "Wall time".to_owned(),
            Event::Wall => "Wall time without idle time".to_owned(),
            Event::Alloc => "Allocated bytes".to_owned(),
            Event::Live => "Live bytes".to_owned(),
            Event::Lock => "Time blocked by locks".to_owned(),
        }
    }

    pub(crate) fn unit(&self, profile: &Profile) -> Unit {
        match self.event {
            Event::Cpu => Unit::of(profile.unit()),
            Event::Wall | Event::Lock => Unit::Nanoseconds,
            Event::Alloc | Event::Live => Unit::Bytes,
        }
    }

    /// All that passes.
    pub(crate) fn entries<'p>(&self, profile: &'p Profile) -> Vec<Entry<'p>> {
        let has_method = self.method.as_deref().map(|it| nodes_with(profile, it));
        let is_wanted = |entry: &Entry<'_>| {
            let is_idle = entry.cause == Some(IDLE) && !self.has_idle;
            let has = has_method.as_ref();
            !is_idle && has.is_none_or(|has| has.get(entry.node as usize) == Some(&true))
        };
        let mut entries = self.unfiltered(profile);
        entries.retain(is_wanted);
        entries
    }

    fn unfiltered<'p>(&self, profile: &'p Profile) -> Vec<Entry<'p>> {
        let filter = &self.filter;
        let text = |name| profile.names().text(name);
        let plain = |thread, node, weight, context| Entry {
            thread,
            node,
            weight,
            context,
            cause: None,
            detail: "",
            owner: None,
        };
        match self.event {
            Event::Cpu => profile
                .cpu(filter)
                .map(|it| plain(it.thread, it.node, Weight::of_sample(it), it.context))
                .collect(),
            Event::Wall => profile
                .wall(filter)
                .map(|it| Entry {
                    cause: Some(it.cause),
                    detail: it.detail.map_or("", text),
                    owner: it.owner,
                    ..plain(it.thread, it.node, it.weight, it.context)
                })
                .collect(),
            Event::Alloc => profile
                .allocations_of(filter)
                .map(|it| plain(it.thread, it.node, it.weight(), it.context))
                .collect(),
            Event::Live => profile
                .live_of(filter)
                .map(|it| &it.allocated)
                .map(|it| plain(it.thread, it.node, it.weight(), it.context))
                .collect(),
            Event::Lock => profile
                .locked(filter)
                .iter()
                .map(|it| Entry {
                    detail: text(it.class),
                    owner: it.owner.map(|owner| (owner, None)),
                    ..plain(it.thread, it.node, it.weight, it.context)
                })
                .collect(),
        }
    }

    /// Fields and notes that all answers of a selection have.
    pub(crate) fn describe(&self, answer: &mut Answer, profile: &Profile, whole: &Weight) {
        let unit = self.unit(profile);
        answer.put("unit", unit.label());
        answer.put("total", crate::answer::amount(whole, whole, unit));
        if whole.samples == 0 {
            let note = "nothing in the recording matches: change or leave out a filter (in names, \
                        * is anything)";
            answer.notes.push(note.to_owned());
        }
        if self.event == Event::Wall
            && !self.has_idle
            && let Some(idle) = profile.idle(&self.filter)
        {
            answer.notes.push(format!(
                "idle threads are not included: {}, {} of all wall time (idle: true)",
                unit.shown(idle.weight.sum),
                percent(idle.share())
            ));
        }
        answer.notes.extend(cautions(profile));
    }
}

/// The class of the lock that an entry is a wait for.
pub(crate) fn lock_of<'p>(entry: &Entry<'p>) -> Option<&'p str> {
    let class = match entry.cause {
        None => entry.detail,
        // Which one of the class it was is its address.
        Some("monitor" | "lock") => entry.detail.split('@').next().unwrap_or(""),
        Some(_) => "",
    };
    (!class.is_empty()).then_some(class)
}

/// The sum of entries.
pub(crate) fn sum(entries: &[Entry<'_>]) -> Weight {
    let mut sum = Weight::default();
    entries.iter().for_each(|entry| sum += &entry.weight);
    sum
}

/// The sums of entries by place.
pub(crate) fn by_node(profile: &Profile, entries: &[Entry<'_>]) -> Vec<Weight> {
    let mut weights = vec![Weight::default(); profile.tree().len()];
    for entry in entries {
        if let Some(weight) = weights.get_mut(entry.node as usize) {
            *weight += &entry.weight;
        }
    }
    weights
}

/// Losses and damages of a recording, one line each.
pub(crate) fn cautions(profile: &Profile) -> Vec<String> {
    let mut cautions = Vec::new();
    if let Some(unread) = profile.unread() {
        cautions.push(format!("the file {}", unread_words(unread)));
    }
    cautions.push(incomplete(profile));
    let waits = profile.info().event_waits;
    cautions.extend(waits.map(|waits| waits.in_words()));
    let failed = profile.failed().share(&profile.total());
    if failed > FAILED {
        cautions.push(format!("{} of the stacks are incomplete", percent(failed)));
    }
    let warnings = profile.warnings().iter().take(WARNINGS);
    cautions.extend(warnings.cloned());
    cautions.retain(|text| !text.is_empty());
    cautions
}

/// Whether a method has this name. A name without a star may lack the package.
pub(crate) fn is_named(pattern: &str, name: &str) -> bool {
    match pattern.contains('*') {
        true => matches(pattern, name),
        false => name
            .strip_suffix(pattern)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.')),
    }
}

/// Which groups of frames have this name.
pub(crate) fn groups_named(grouped: &Grouped, pattern: &str) -> Vec<bool> {
    let names = grouped.names.iter();
    names.map(|name| is_named(pattern, name)).collect()
}

/// Which places have a method of this name on their stack.
fn nodes_with(profile: &Profile, pattern: &str) -> Vec<bool> {
    let grouped = profile.group(GroupBy::Method);
    let named = groups_named(&grouped, pattern);
    let tree = profile.tree();
    let mut has = vec![false; tree.len()];
    for node in 1..has.len() {
        let frame = tree.key(node as NodeId) as usize;
        let group = grouped.of_frame.get(frame).copied().unwrap_or(u32::MAX);
        let is_named = named.get(group as usize) == Some(&true);
        // Parents come before their children.
        let parent = tree.parent(node as NodeId) as usize;
        has[node] = is_named || has[parent];
    }
    has
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_profile;
    use serde_json::{Value, json};

    fn selected(given: Value) -> Result<(Selection, Profile), String> {
        let profile = made_profile::full();
        let arguments = Arguments::check(&FILTERS, given.as_object().unwrap(), &[])?;
        let selection = Selection::new(&arguments, &profile, Event::Cpu)?;
        Ok((selection, profile))
    }

    fn sum_of(given: Value) -> u64 {
        let (selection, profile) = selected(given).unwrap();
        sum(&selection.entries(&profile)).sum
    }

    #[test]
    fn sums_are_those_of_the_profile() {
        let profile = made_profile::full();
        let all = WallFilter::default();
        let wall: u64 = profile.wall(&all).map(|it| it.weight.sum).sum();
        assert_eq!(sum_of(json!({})), profile.total().sum);
        assert_eq!(sum_of(json!({ "event": "wall", "idle": true })), wall);
        let idle = profile.idle(&all).unwrap().weight.sum;
        assert_eq!(sum_of(json!({ "event": "wall" })), wall - idle);
        assert_eq!(sum_of(json!({ "cause": ["idle-pool"] })), idle);
        assert_eq!(sum_of(json!({ "event": "alloc" })), profile.allocated().sum);
        assert_eq!(
            sum_of(json!({ "event": "live" })),
            profile.alive().bytes.sum
        );
        let locked: u64 = profile.locked(&all).iter().map(|it| it.weight.sum).sum();
        assert_eq!(sum_of(json!({ "event": "lock" })), locked);
    }

    #[test]
    fn filters_select_by_thread_time_and_method() {
        assert_eq!(sum_of(json!({ "thread": "gc*" })), 100_000_000);
        assert_eq!(sum_of(json!({ "method": "Work.run" })), 900_000_000);
        assert_eq!(sum_of(json!({ "method": "app.*.parse" })), 600_000_000);
        assert_eq!(sum_of(json!({ "method": "ork.run" })), 0);
        let parts = [(0.0, 0.001), (0.001, 0.002), (0.002, 9.0)];
        let parts = parts.map(|(from, to)| sum_of(json!({ "from_s": from, "to_s": to })));
        assert_eq!(parts, [600_000_000, 300_000_000, 100_000_000]);
    }

    #[test]
    fn selections_that_make_no_sense_are_refused() {
        let refused = |given| selected(given).map(|_| ()).unwrap_err();
        let cause = refused(json!({ "event": "cpu", "cause": ["park"] }));
        assert_eq!(cause, "cause: only wall time has causes; use event wall");
        let time = refused(json!({ "from_s": 2, "to_s": 1 }));
        assert_eq!(time, "from_s: must be less than to_s");
        let empty = dwell_profile::Builder::default().finish();
        for (event, expected) in [
            ("cpu", "the recording has no samples of time; record longer"),
            (
                "wall",
                "the recording has no wall time; record with -e cpu,wall",
            ),
            ("alloc", "the recording has no allocations; record with"),
            (
                "live",
                "the recording has no data on live objects; record with",
            ),
            ("lock", "the recording has no waits for locks; record with"),
        ] {
            let given = json!({ "event": event });
            let arguments = Arguments::check(&FILTERS, given.as_object().unwrap(), &[]).unwrap();
            let error = Selection::new(&arguments, &empty, Event::Cpu).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
