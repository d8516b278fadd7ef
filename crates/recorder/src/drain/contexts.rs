//! The texts of contexts, in the file's form.

use crate::context::Contexts;
use crate::context::requests::Request;
use crate::context::spans::Span;
use crate::context::texts::{Endpoint, Texts};
use crate::record::batch::ContextId;
use crate::sys::process;
use dwell_context::Context;
use dwell_jfr::writer::{ChunkWriter, Context as FileContext, Event};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// The contexts of a batch with their texts.
pub struct ContextTexts(Vec<(Context, Option<Arc<str>>, String)>);

impl ContextTexts {
    /// Looks up the texts.
    #[must_use]
    pub fn of(contexts: &[Context]) -> ContextTexts {
        let texts = Contexts::get().map(Contexts::texts);
        let with_texts = contexts.iter().map(|context| {
            let endpoint = texts.and_then(|texts| texts.get(context.endpoint));
            let labels = texts.map_or_else(String::new, |texts| texts.labels_of(context));
            (*context, endpoint, labels)
        });
        ContextTexts(with_texts.collect())
    }

    /// As the file has it.
    #[must_use]
    pub fn get(&self, id: ContextId) -> Option<FileContext<'_>> {
        let (context, endpoint, labels) = self.0.get(id.place()?)?;
        Some(FileContext {
            trace_id: u128::from(context.trace_hi) << 64 | u128::from(context.trace_lo),
            span_id: context.span,
            local_root_span_id: context.local_root,
            endpoint: endpoint.as_deref().unwrap_or(""),
            labels,
        })
    }
}

/// Maximum number of local roots remembered, in each of two generations.
const ROOTS_MAX: usize = 50_000;
/// Number of flushes after which an unused root is forgotten, between once and twice as many.
const FLUSHES: u32 = 120;

/// The endpoints that are worth a place in the file: those of requests that were sampled before
/// their endpoint was known. The others are many, and no reader needs them.
#[derive(Default)]
pub struct EndpointDrain {
    roots: [FxHashSet<u64>; 2],
    flushes: u32,
    /// Reports from before the last flush: samples from that time may come a little later.
    recent: Vec<Endpoint>,
}

impl EndpointDrain {
    /// Writes the endpoints that samples of this batch or earlier ones lack.
    pub fn write(&mut self, batch: &[Context], chunk: &mut ChunkWriter) {
        let Some(contexts) = Contexts::get() else {
            return;
        };
        for context in batch {
            if context.local_root != 0 && context.endpoint == 0 {
                self.want(context.local_root);
            }
        }
        // The order matters: a request's endpoint is reported before its end.
        let requests = contexts.take_requests();
        for request in &requests {
            if request.local_root != 0 && request.endpoint == 0 {
                self.want(request.local_root);
            }
            write_request(request, contexts.texts(), chunk);
        }
        for span in &contexts.take_spans() {
            write_span(span, chunk);
        }
        let (told, lost) = contexts.take_endpoints();
        let before = std::mem::replace(&mut self.recent, told.clone());
        for endpoint in before.into_iter().chain(told) {
            if self.is_wanted(endpoint.local_root)
                && let Some(text) = contexts.texts().get(endpoint.endpoint)
            {
                chunk.event(&Event::Endpoint {
                    ticks: endpoint.time_ns,
                    local_root_span_id: &format!("{:016x}", endpoint.local_root),
                    endpoint: &text,
                });
            }
        }
        if lost > 0 {
            chunk.event(&Event::Lost {
                ticks: process::monotonic_ns(),
                cause: "endpoints_too_many_at_once",
                samples: lost,
                weight_ns: 0,
            });
        }
        self.flushes += 1;
        if self.flushes >= FLUSHES {
            self.turn();
        }
    }

    fn want(&mut self, root: u64) {
        if self.roots[0].len() >= ROOTS_MAX {
            self.turn();
        }
        self.roots[0].insert(root);
    }

    fn is_wanted(&self, root: u64) -> bool {
        self.roots.iter().any(|roots| roots.contains(&root))
    }

    fn turn(&mut self) {
        self.roots.swap(0, 1);
        self.roots[0].clear();
        self.flushes = 0;
    }
}

fn write_request(request: &Request, texts: &Texts, chunk: &mut ChunkWriter) {
    let endpoint = texts.get(request.endpoint);
    chunk.event(&Event::Request {
        ticks: request.start_ns,
        duration_ticks: request.duration_ns,
        trace_id: &format!("{:032x}", request.trace),
        local_root_span_id: &format!("{:016x}", request.local_root),
        endpoint: endpoint.as_deref().unwrap_or(""),
        count: request.count,
    });
}

fn write_span(span: &Span, chunk: &mut ChunkWriter) {
    chunk.event(&Event::Span {
        ticks: span.start_ns,
        duration_ticks: span.duration_ns,
        trace_id: &format!("{:032x}", span.trace),
        local_root_span_id: &format!("{:016x}", span.local_root),
        span_id: &format!("{:016x}", span.span),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_kept_for_a_while_and_bounded() {
        let mut drain = EndpointDrain::default();
        drain.want(7);
        drain.turn();
        assert!(drain.is_wanted(7) && !drain.is_wanted(8));
        drain.turn();
        assert!(!drain.is_wanted(7));
        for root in 0..5 * ROOTS_MAX as u64 {
            drain.want(root);
        }
        assert!(drain.is_wanted(5 * ROOTS_MAX as u64 - 1) && !drain.is_wanted(0));
        assert!(drain.roots.iter().all(|roots| roots.len() <= ROOTS_MAX));
    }
}
