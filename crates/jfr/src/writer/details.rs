//! Writes data that the JDK's events lack, in detail events before them: the weight of a sample,
//! why its stack is incomplete, the carrier of a virtual thread, the request of the thread. A
//! detail holds for all later events of its thread in the chunk. It is therefore only written for a
//! change.

use super::{ChunkWriter, Context, ThreadId};
use crate::hash::Seeds;
use crate::schema::id;
use crate::wire::{put_framed, put_hex, put_pooled_text, put_varint};
use std::collections::HashMap;

/// Digits of a trace id.
const TRACE_DIGITS: u32 = 32;
/// Digits of a span id.
const SPAN_DIGITS: u32 = 16;

/// The additional data of an event of the JDK's.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Detail {
    /// The weight, or the size of an object.
    pub(super) number: u64,
    pub(super) failure: Option<&'static str>,
    pub(super) carrier: Option<ThreadId>,
}

/// The request of a thread; texts by their keys in the pool.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Work {
    trace_id: u128,
    span_id: u64,
    local_root_span_id: u64,
    endpoint: u32,
    labels: u32,
}

/// The latest details of each thread in the chunk.
#[derive(Default)]
pub(super) struct Told {
    /// By the type of the event and the thread.
    details: HashMap<(u8, u32), Detail, Seeds>,
    /// Of threads that work for something.
    works: HashMap<u32, Work, Seeds>,
}

impl Told {
    /// Heap memory, without the allocator's own.
    pub(super) fn memory_bytes(&self) -> usize {
        let detail = size_of::<((u8, u32), Detail)>() + 1;
        let work = size_of::<(u32, Work)>() + 1;
        (self.details.capacity() * detail + self.works.capacity() * work) * 8 / 7
    }
}

impl ChunkWriter {
    /// Writes an event of type `type_id` if the next event of that thread needs another detail.
    pub(super) fn tell(&mut self, type_id: u8, ticks: u64, thread: ThreadId, detail: Detail) {
        if self.is_plain || self.told.details.get(&(type_id, thread.0)) == Some(&detail) {
            return;
        }
        self.told.details.insert((type_id, thread.0), detail);
        let failure = detail.failure.map_or(0, |text| self.constants.string(text));
        self.scratch.clear();
        put_varint(&mut self.scratch, u64::from(type_id));
        put_varint(&mut self.scratch, ticks);
        put_varint(&mut self.scratch, u64::from(thread.0));
        put_varint(&mut self.scratch, detail.number);
        put_pooled_text(&mut self.scratch, failure);
        let carrier = detail.carrier.unwrap_or_default();
        put_varint(&mut self.scratch, u64::from(carrier.0));
        put_framed(&mut self.events, &self.scratch);
    }

    /// Writes the request of the thread, from its next event on.
    pub(super) fn tell_context(
        &mut self,
        ticks: u64,
        thread: ThreadId,
        context: Option<&Context<'_>>,
    ) {
        if self.is_plain || context.is_none() && self.told.works.is_empty() {
            return;
        }
        let work = self.work(context);
        let told = self.told.works.get(&thread.0).copied().unwrap_or_default();
        if told == work {
            return;
        }
        match work == Work::default() {
            true => self.told.works.remove(&thread.0),
            false => self.told.works.insert(thread.0, work),
        };
        self.scratch.clear();
        put_varint(&mut self.scratch, u64::from(id::THREAD_CONTEXT));
        put_varint(&mut self.scratch, ticks);
        put_varint(&mut self.scratch, u64::from(thread.0));
        self.put_work(&work);
        put_framed(&mut self.events, &self.scratch);
    }

    /// Appends what a thread works for to the event that is being made.
    pub(super) fn put_context(&mut self, context: Option<&Context<'_>>) {
        let work = self.work(context);
        self.put_work(&work);
    }

    fn work(&mut self, context: Option<&Context<'_>>) -> Work {
        let Some(context) = context else {
            return Work::default();
        };
        let mut pooled = |text: &str| match text {
            "" => 0,
            text => self.constants.string(text),
        };
        Work {
            trace_id: context.trace_id,
            span_id: context.span_id,
            local_root_span_id: context.local_root_span_id,
            endpoint: pooled(context.endpoint),
            labels: pooled(context.labels),
        }
    }

    /// Ids are part of the event, as there are too many of them for a pool. The other values are
    /// pooled.
    fn put_work(&mut self, work: &Work) {
        let ids = [
            (work.trace_id, TRACE_DIGITS),
            (u128::from(work.span_id), SPAN_DIGITS),
            (u128::from(work.local_root_span_id), SPAN_DIGITS),
        ];
        for (id, digits) in ids {
            match id {
                0 => put_pooled_text(&mut self.scratch, 0),
                id => put_hex(&mut self.scratch, id, digits),
            }
        }
        put_pooled_text(&mut self.scratch, work.endpoint);
        put_pooled_text(&mut self.scratch, work.labels);
    }
}
