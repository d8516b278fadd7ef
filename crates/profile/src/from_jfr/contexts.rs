//! What samples say their threads worked for, made whole: endpoints that only became known when the
//! request was over are found by its local root.

use crate::builder::Builder;
use crate::names::NameId;
use crate::sample::{Context, ContextId};
use dwell_jfr::hash::Seeds;
use dwell_jfr::reader::{Context as JfrContext, GenericEvent, Recording, Sample};
use std::collections::HashMap;

/// Finds the contexts of samples.
pub(crate) struct Contexts<'r> {
    recording: &'r Recording,
    /// Endpoints by local root.
    endpoints: HashMap<u64, &'r str>,
    /// By place in the recording.
    known: HashMap<u32, ContextId, Seeds>,
}

impl<'r> Contexts<'r> {
    pub(crate) fn new(recording: &'r Recording) -> Contexts<'r> {
        let mut endpoints = HashMap::new();
        // Inner spans rarely say what their local root has said.
        for context in &recording.contexts {
            let root = context.local_root_span_id;
            if let (Some(endpoint), true) = (recording.text(context.endpoint), root != 0) {
                endpoints.insert(root, endpoint);
            }
        }
        let requests = recording.events_named("dwell.Request");
        for event in requests.chain(recording.events_named("dwell.Endpoint")) {
            let root = event.text("localRootSpanId").map(parse).unwrap_or(0);
            let told = event.text("endpoint").filter(|told| !told.is_empty());
            if let (Some(endpoint), true) = (told, root != 0) {
                // The last one counts: a route is known better later.
                endpoints.insert(root, endpoint);
            }
        }
        for event in recording.events_named("datadog.Endpoint") {
            let root = event.int("localRootSpanId").map_or(0, i64::cast_unsigned);
            let told = event.text("endpoint").filter(|told| !told.is_empty());
            if let (Some(endpoint), true) = (told, root != 0) {
                endpoints.insert(root, endpoint);
            }
        }
        Contexts {
            recording,
            endpoints,
            known: HashMap::default(),
        }
    }

    /// The endpoint that was told of a local root.
    pub(crate) fn endpoint_of(&self, local_root: u64) -> Option<&'r str> {
        self.endpoints.get(&local_root).copied()
    }

    /// What the thread of a sample worked for.
    pub(crate) fn of(&mut self, sample: &Sample, builder: &mut Builder) -> Option<ContextId> {
        let place = sample.context?;
        if let Some(&id) = self.known.get(&place) {
            return Some(id);
        }
        let context = self.made(self.recording.context(sample)?, builder);
        let id = builder.context(context);
        self.known.insert(place, id);
        Some(id)
    }

    /// What the thread of an event worked for, which tells it in fields as samples have them.
    pub(crate) fn of_event(
        &self,
        event: &GenericEvent,
        builder: &mut Builder,
    ) -> Option<ContextId> {
        let text = |field| event.text(field).filter(|text| !text.is_empty());
        let span_id = text("spanId").map_or(0, parse);
        let local_root = text("localRootSpanId").map_or(0, parse);
        let (endpoint, labels) = (text("endpoint"), text("labels"));
        if span_id == 0 && local_root == 0 && endpoint.is_none() && labels.is_none() {
            return None;
        }
        let trace_id = text("traceId").and_then(|id| u128::from_str_radix(id, 16).ok());
        let endpoint = endpoint.or_else(|| self.endpoint_of(local_root));
        let context = Context {
            trace_id: trace_id.unwrap_or(0),
            span_id,
            local_root_span_id: local_root,
            endpoint: endpoint.map(|endpoint| builder.name(endpoint)),
            labels: labels_of(labels.unwrap_or(""), builder),
        };
        Some(builder.context(context))
    }

    fn made(&self, context: &JfrContext, builder: &mut Builder) -> Context {
        let root = context.local_root_span_id;
        let told = self.recording.text(context.endpoint);
        let endpoint = told.or_else(|| self.endpoint_of(root));
        let labels = self.recording.text(context.labels).unwrap_or("");
        Context {
            trace_id: context.trace_id,
            span_id: context.span_id,
            local_root_span_id: root,
            endpoint: endpoint.map(|endpoint| builder.name(endpoint)),
            labels: labels_of(labels, builder),
        }
    }
}

/// Names and values of labels that were written as `name=value,name=value`.
fn labels_of(labels: &str, builder: &mut Builder) -> Vec<(NameId, NameId)> {
    let labels = labels.split(',').filter_map(|label| label.split_once('='));
    labels
        .map(|(name, value)| {
            let name = builder.name(&unescaped(name));
            (name, builder.name(&unescaped(value)))
        })
        .collect()
}

fn parse(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap_or(0)
}

/// What was written as `%` and two digits. Anything else stays as it is.
fn unescaped(text: &str) -> String {
    [("%2C", ","), ("%3D", "="), ("%25", "%")]
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_comes_back() {
        assert_eq!(unescaped("50%25%2C x%3Dy"), "50%, x=y");
        assert_eq!(unescaped("%252C"), "%2C");
        assert_eq!(unescaped("100%"), "100%");
    }
}
