//! The source of the tables: a profile, with the ids and the texts that its rows share.

use std::collections::HashSet;

use dwell_profile::{
    CallTree, ContextId, Frame, FrameId, Locked, MethodId, NameId, NodeId, Profile, Sample,
    ThreadId, Unit, WallFilter, plain,
};
use parquet::data_type::ByteArray;

use super::content_ids::ContentIds;
use crate::NO_STACK;

/// A text in a column; its copies share their bytes.
pub type Text = ByteArray;

/// The request of a context.
#[derive(Default)]
pub struct RequestFacts {
    pub endpoint: Option<Text>,
    pub trace: Option<Text>,
    pub span: Option<i64>,
    pub root: Option<i64>,
    /// The labels as a JSON object.
    pub labels: Option<Text>,
}

/// A profile, with the ids and the texts of its rows.
pub struct Source<'p> {
    pub profile: &'p Profile,
    pub locked: Vec<Locked>,
    /// The stacks of events, each id once.
    pub stacks: Vec<NodeId>,
    /// Their frames, each id once.
    pub frames: Vec<FrameId>,
    ids: ContentIds,
    depths: Vec<u32>,
    names: Vec<Option<Text>>,
    methods: Vec<Option<Text>>,
    contexts: Vec<RequestFacts>,
    no_stack: Text,
    is_of_requests: bool,
}

impl<'p> Source<'p> {
    /// The source of a profile's tables.
    pub fn of(profile: &'p Profile) -> Source<'p> {
        let ids = ContentIds::of(profile);
        let locked = profile.locked(&WallFilter::default());
        let (stacks, frames) = used(profile, &locked, &ids);
        let method = |id| new_text(&profile.method_name(id));
        Source {
            names: profile.names().iter().map(new_text).collect(),
            methods: (0..profile.methods().len() as u32).map(method).collect(),
            contexts: contexts(profile),
            depths: depths(profile.tree()),
            no_stack: ByteArray::from(NO_STACK),
            is_of_requests: profile.is_of_requests(),
            profile,
            locked,
            stacks,
            frames,
            ids,
        }
    }

    /// A name.
    pub fn name(&self, id: NameId) -> Option<Text> {
        self.names.get(id as usize)?.clone()
    }

    /// Any other text.
    pub fn new_text(&self, text: &str) -> Option<Text> {
        new_text(text)
    }

    /// The name of a thread.
    pub fn thread(&self, id: ThreadId) -> Option<Text> {
        self.name(self.profile.threads().get(id as usize)?.name)
    }

    /// The request of a context.
    pub fn request(&self, id: Option<ContextId>) -> Option<&RequestFacts> {
        self.contexts.get(id? as usize)
    }

    /// The id of a stack.
    pub fn stack(&self, node: NodeId) -> Option<i64> {
        self.ids.stacks.get(node as usize).copied()
    }

    /// The id of a stack's methods.
    pub fn path(&self, node: NodeId) -> Option<i64> {
        self.ids.paths.get(node as usize).copied()
    }

    /// The id of a frame.
    pub fn frame(&self, frame: FrameId) -> Option<i64> {
        self.ids.frames.get(frame as usize).copied()
    }

    /// The frames of a stack.
    pub fn depth(&self, node: NodeId) -> usize {
        self.depths.get(node as usize).map_or(0, |it| *it as usize)
    }

    /// The name of a method, with its class.
    pub fn method(&self, id: MethodId) -> Option<Text> {
        self.methods.get(id as usize)?.clone()
    }

    /// The innermost method of a stack.
    pub fn method_at_end(&self, node: NodeId) -> Option<Text> {
        match self.profile.leaf(node) {
            Some(frame) => self.method(frame.method),
            None => Some(self.no_stack.clone()),
        }
    }

    /// The innermost method of a stack that is not of the runtime.
    pub fn own_method(&self, node: NodeId) -> Option<Text> {
        new_text(&self.profile.place(node)?)
    }

    /// The time that a sample stands for, if the recording has times.
    pub fn time_of(&self, sample: &Sample) -> Option<i64> {
        match (self.profile.unit(), self.profile.wall_scale()) {
            (Unit::Samples, 0) => None,
            (_, scale) => Some(signed(sample.weight.saturating_mul(scale))),
        }
    }

    /// Whether a wait of this thread is part of the wall time.
    pub fn is_wall(&self, thread: ThreadId, context: Option<ContextId>) -> bool {
        let thread = self.profile.threads().get(thread as usize);
        thread.is_some_and(|it| it.java_tid != 0) && (!self.is_of_requests || context.is_some())
    }
}

/// A number in a column.
pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A text in a column; null if it is empty.
fn new_text(text: &str) -> Option<Text> {
    (!text.is_empty()).then(|| ByteArray::from(plain(text).into_bytes()))
}

/// The id of a span in a column; null if it is 0.
pub fn span(id: u64) -> Option<i64> {
    (id != 0).then_some(id as i64)
}

/// The id of a trace in hexadecimal digits; null if it is 0.
pub fn trace(id: u128) -> Option<Text> {
    (id != 0).then(|| ByteArray::from(format!("{id:032x}").into_bytes()))
}

/// The line of a frame, if it is known.
pub fn line(frame: &Frame) -> Option<i64> {
    (frame.line != 0).then_some(frame.line.into())
}

/// The requests, by context.
fn contexts(profile: &Profile) -> Vec<RequestFacts> {
    let text = |name| plain(profile.names().text(name));
    let labels = |labels: &[(NameId, NameId)]| {
        let labels = labels
            .iter()
            .map(|(name, value)| (text(*name), text(*value)));
        let labels = labels.map(|(name, value)| (name, serde_json::Value::String(value)));
        let labels: serde_json::Map<_, _> = labels.collect();
        (!labels.is_empty()).then(|| serde_json::Value::Object(labels).to_string())
    };
    let facts = |it: &dwell_profile::Context| RequestFacts {
        endpoint: it.endpoint.and_then(|name| new_text(&text(name))),
        trace: trace(it.trace_id),
        span: span(it.span_id),
        root: span(it.local_root_span_id),
        labels: labels(&it.labels).map(|it| ByteArray::from(it.into_bytes())),
    };
    profile.contexts().iter().map(facts).collect()
}

/// The depths of stacks, by their ends.
fn depths(tree: &CallTree) -> Vec<u32> {
    let mut depths = vec![0u32; tree.len()];
    for node in 1..tree.len() {
        let outer = depths.get(tree.parent(node as u32) as usize).copied();
        if let Some(depth) = depths.get_mut(node) {
            *depth = outer.unwrap_or(0).saturating_add(1);
        }
    }
    depths
}

/// The stacks of events, and their frames, in the order of the profile. Of several with one id, the
/// first.
fn used(profile: &Profile, locked: &[Locked], ids: &ContentIds) -> (Vec<NodeId>, Vec<FrameId>) {
    let tree = profile.tree();
    let mut is_stack = vec![false; tree.len()];
    let mut add = |node: NodeId| {
        if let Some(is_stack) = is_stack.get_mut(node as usize) {
            *is_stack = true;
        }
    };
    add(CallTree::ROOT);
    profile.samples().iter().for_each(|it| add(it.node));
    for it in profile.looks() {
        add(it.node);
        it.owner_node.into_iter().for_each(&mut add);
    }
    let objects = profile.live().iter().map(|it| &it.allocated);
    let objects = profile.allocations().iter().chain(objects);
    objects.for_each(|it| add(tree.parent(it.node)));
    locked.iter().for_each(|it| add(tree.parent(it.node)));
    for it in profile.monitor_owners() {
        add(it.waiter_node);
        it.node.into_iter().for_each(&mut add);
    }
    let late = profile.late().iter().filter_map(|it| it.node);
    late.for_each(&mut add);

    let (mut stacks, mut seen_stacks) = (Vec::new(), HashSet::new());
    let mut is_outer = vec![false; tree.len()];
    let mut is_frame = vec![false; profile.frames().len()];
    let used = (0u32..).zip(&is_stack).filter(|(_, is_stack)| **is_stack);
    for (node, _) in used {
        if !seen_stacks.insert(ids.stacks.get(node as usize)) {
            continue;
        }
        stacks.push(node);
        let mut at = node;
        while at != CallTree::ROOT
            && let Some(is_outer) = is_outer.get_mut(at as usize)
            && !std::mem::replace(is_outer, true)
        {
            if let Some(is_frame) = is_frame.get_mut(tree.key(at) as usize) {
                *is_frame = true;
            }
            at = tree.parent(at);
        }
    }
    let mut seen_frames = HashSet::new();
    let used = (0u32..).zip(&is_frame).filter(|(_, is_frame)| **is_frame);
    let frames = used.map(|(frame, _)| frame);
    let is_new = |frame: &FrameId| seen_frames.insert(ids.frames.get(*frame as usize));
    (stacks, frames.filter(is_new).collect())
}
