//! Stacks of a recording as nodes of the call tree: each place in which one frame calls another is
//! looked for once, however many stacks go through it.

use std::collections::HashMap;

use dwell_jfr::hash::Seeds;
use dwell_jfr::reader::{StackFrame, StackNode, Stacks};

use super::folds::{Folds, Start, THREAD_START};
use super::kind;
use crate::builder::Builder;
use crate::frame::{FrameId, FrameKind};
use crate::sample::CauseId;
use crate::tree::{CallTree, NodeId};

/// Stands for the frames that a recording cut off at the root end.
const TRUNCATED: &str = "[truncated]";
/// Stands for a stack that a recording does not have.
const NO_STACK: &str = "[no stack]";
/// Not known yet.
const UNKNOWN: NodeId = NodeId::MAX;

/// The nodes.
pub(super) struct StackNodes<'r> {
    stacks: &'r Stacks,
    /// By place in the recording.
    methods: Vec<u32>,
    folds: Folds,
    /// By node of the recording's stacks: of whole ones, and of those that are cut off.
    known: [Vec<NodeId>; 2],
    /// The same stack can belong to walks that failed and to others.
    failed: HashMap<(u32, CauseId), NodeId, Seeds>,
    /// Nodes that are not known yet, the innermost first.
    path: Vec<StackNode>,
}

impl<'r> StackNodes<'r> {
    /// None is known yet; `methods`: their ids in the profile, by place in the recording.
    pub(super) fn new(stacks: &'r Stacks, methods: Vec<u32>, folds: Folds) -> StackNodes<'r> {
        StackNodes {
            stacks,
            methods,
            folds,
            known: Default::default(),
            failed: HashMap::default(),
            path: Vec::new(),
        }
    }

    /// The node of the stack at a place, with a marker at the root end if something is missing.
    pub(super) fn node(
        &mut self,
        builder: &mut Builder,
        place: u32,
        failure: Option<&str>,
    ) -> NodeId {
        let (leaf, truncated) = self.stacks.end(place).unwrap_or_default();
        match failure {
            Some(cause) => {
                let key = (place, builder.cause(cause));
                if let Some(node) = self.failed.get(&key) {
                    return *node;
                }
                let node = self.failed(builder, (leaf, truncated), cause);
                self.failed.insert(key, node);
                node
            }
            None if leaf == 0 => {
                let marker = builder.marker(NO_STACK, FrameKind::Other);
                builder.stack([marker])
            }
            None => self.whole(builder, leaf, truncated),
        }
    }

    /// The same of one that has frames.
    pub(super) fn node_of_frames(&mut self, builder: &mut Builder, place: u32) -> Option<NodeId> {
        let (leaf, _) = self.stacks.end(place)?;
        (leaf != 0).then(|| self.node(builder, place, None))
    }

    fn whole(&mut self, builder: &mut Builder, leaf: StackNode, truncated: bool) -> NodeId {
        let [whole, cut] = &mut self.known;
        let known = if truncated { cut } else { whole };
        if known.is_empty() {
            known.resize(self.stacks.last_node() as usize + 1, UNKNOWN);
            let root = match truncated {
                true => {
                    let marker = builder.marker(TRUNCATED, FrameKind::Other);
                    builder.stack([marker])
                }
                false => CallTree::ROOT,
            };
            known[0] = root;
        }
        let mut node = known[0];
        for (at, _) in self.stacks.outwards(leaf) {
            let found = known[at as usize];
            if found != UNKNOWN {
                node = found;
                break;
            }
            self.path.push(at);
        }
        while let Some(at) = self.path.pop() {
            let frame = self.stacks.node_frames().get(at as usize - 1);
            if let Some(frame) = frame {
                let start = (!truncated)
                    .then(|| self.folds.start(self.stacks, at))
                    .flatten();
                if let Some(frame) = frame_of(builder, &self.methods, frame, start) {
                    // The innermost function of a run stands for it.
                    let caller = match self.folds.continues(self.stacks, at, !truncated) {
                        true => builder.parent(node),
                        false => node,
                    };
                    node = builder.child(caller, frame);
                }
            }
            known[at as usize] = node;
        }
        node
    }

    fn failed(
        &self,
        builder: &mut Builder,
        (leaf, truncated): (StackNode, bool),
        cause: &str,
    ) -> NodeId {
        let frames = || self.stacks.outwards(leaf);
        let is_marked = frames().any(|(_, frame)| kind(frame.kind) == FrameKind::Failed);
        // Otherwise the walk did not get to where the thread starts.
        let has_root = is_marked && !truncated;
        let mut is_folded = false;
        let mut frames: Vec<FrameId> = frames()
            .filter_map(|(at, frame)| {
                let continues = self.folds.continues(self.stacks, at, has_root);
                if std::mem::replace(&mut is_folded, continues) {
                    return None;
                }
                let start = has_root
                    .then(|| self.folds.start(self.stacks, at))
                    .flatten();
                frame_of(builder, &self.methods, frame, start)
            })
            .collect();
        if !is_marked {
            let text = match cause.starts_with('[') {
                true => cause.to_owned(),
                false => format!("[{cause}]"),
            };
            frames.push(builder.marker(&text, FrameKind::Failed));
        }
        builder.stack(frames.into_iter().rev())
    }
}

/// None of what another frame stands for.
fn frame_of(
    builder: &mut Builder,
    methods: &[u32],
    frame: &StackFrame,
    start: Option<Start<'_>>,
) -> Option<FrameId> {
    let method = match (start, methods.get(frame.method as usize)) {
        (Some(Start::Folded), _) => return None,
        (Some(Start::Of(library)), _) => builder.method(library, THREAD_START, ""),
        (None, Some(&method)) => method,
        (None, None) => builder.method("", "[unknown method]", ""),
    };
    let line = u32::try_from(frame.line).unwrap_or(0);
    Some(builder.frame(method, line, kind(frame.kind)))
}
