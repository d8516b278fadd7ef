//! Waits for monitors as events.

use super::ChunkWriter;
use super::details::Detail;
use super::{ClassId, Context, StackId, ThreadId};
use crate::schema::id;
use crate::wire::{put_framed, put_varint};

/// A wait for a monitor (`jdk.JavaMonitorEnter`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MonitorEnter<'a> {
    /// When it began, in ticks of the chunk's clock.
    pub ticks: u64,
    /// How long it lasted, in such ticks.
    pub duration_ticks: u64,
    /// The thread: the virtual one if one was mounted.
    pub thread: ThreadId,
    /// The platform thread below a virtual thread.
    pub carrier: Option<ThreadId>,
    /// The stack, or [`StackId::NONE`].
    pub stack: StackId,
    /// The class of the monitor's object.
    pub class: ClassId,
    /// The thread that had the monitor when the wait began.
    pub owner: Option<ThreadId>,
    /// Where the runtime keeps the monitor, or 0.
    pub address: u64,
    /// The time in waits that it stands for, in nanoseconds.
    pub weight_ns: u64,
    /// Why the stack is not complete; `None`: it is.
    pub failure: Option<&'static str>,
    /// The context of the thread.
    pub context: Option<&'a Context<'a>>,
}

impl ChunkWriter {
    /// Adds a wait for a monitor; before it what differs from the one of its thread before.
    pub fn monitor_enter(&mut self, wait: &MonitorEnter<'_>) {
        let detail = Detail {
            number: wait.weight_ns,
            failure: wait.failure,
            carrier: wait.carrier,
        };
        self.tell(id::MONITOR_DETAIL, wait.ticks, wait.thread, detail);
        self.tell_context(wait.ticks, wait.thread, wait.context);
        self.scratch.clear();
        put_varint(&mut self.scratch, u64::from(id::MONITOR_ENTER));
        put_varint(&mut self.scratch, wait.ticks);
        put_varint(&mut self.scratch, wait.duration_ticks);
        put_varint(&mut self.scratch, u64::from(wait.thread.0));
        put_varint(&mut self.scratch, u64::from(wait.stack.0));
        put_varint(&mut self.scratch, u64::from(wait.class.0));
        let owner = wait.owner.unwrap_or_default();
        put_varint(&mut self.scratch, u64::from(owner.0));
        put_varint(&mut self.scratch, wait.address);
        put_framed(&mut self.events, &self.scratch);
        let end = wait.ticks.saturating_add(wait.duration_ticks);
        self.last_ticks = self.last_ticks.max(end);
    }
}
