//! Completes the contexts of samples: an endpoint that became known at the end of the request is
//! found by its local root.

use crate::builder::Builder;
use crate::names::NameId;
use crate::sample::{Context, ContextId};
use dwell_jfr::hash::Seeds;
use dwell_jfr::kinds::told;
use dwell_jfr::reader::{Context as JfrContext, Recording, Sample};
use std::collections::HashMap;
use std::sync::Arc;

dwell_jfr::told! {
    /// The endpoint of a local root, in recordings of ddprof.
    pub(crate) struct DdprofEndpoint = "datadog.Endpoint" {
        /// The local root.
        local_root_span_id: Id "localRootSpanId";
        /// The endpoint.
        endpoint: Text "endpoint";
    }

    /// The context of the thread of an object or a wait.
    pub(crate) struct WorkedFor = "jdk.ObjectAllocationSample" | "dwell.LiveObject"
        | "jdk.JavaMonitorEnter"
    {
        /// Its trace.
        trace_id: Text "traceId";
        /// Its span.
        span_id: Text "spanId";
        /// The first span of the trace in this process.
        local_root_span_id: Text "localRootSpanId";
        /// Its endpoint.
        endpoint: Text "endpoint";
        /// Its labels.
        labels: Text "labels";
    }
}

/// Finds the contexts of samples.
pub(crate) struct Contexts<'r> {
    recording: &'r Recording,
    /// Endpoints by local root, as samples have them.
    endpoints: HashMap<u64, &'r str>,
    /// Endpoints by local root from events of their own, which take precedence.
    told: HashMap<u64, Arc<str>>,
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
        let requests = recording.told::<told::Request>();
        let requests = requests.map(|it| (parse(&it.local_root_span_id), it.endpoint));
        let ours = recording.told::<told::Endpoint>();
        let ours = ours.map(|it| (parse(&it.local_root_span_id), it.endpoint));
        let theirs = recording.told::<DdprofEndpoint>();
        let theirs = theirs.map(|it| (it.local_root_span_id, it.endpoint));
        // The last one counts: a route is known better later.
        let all = requests.chain(ours).chain(theirs);
        let is_told = |(root, endpoint): &(u64, Arc<str>)| *root != 0 && !endpoint.is_empty();
        Contexts {
            recording,
            endpoints,
            told: all.filter(is_told).collect(),
            known: HashMap::default(),
        }
    }

    /// The endpoint of a local root.
    pub(crate) fn endpoint_of(&self, local_root: u64) -> Option<&str> {
        let told = self.told.get(&local_root).map(|endpoint| &**endpoint);
        told.or_else(|| self.endpoints.get(&local_root).copied())
    }

    /// The context of the thread of a sample.
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

    /// The request of an event's thread, from fields that samples have, too.
    pub(crate) fn of_event(&self, told: &WorkedFor, builder: &mut Builder) -> Option<ContextId> {
        let span_id = parse(&told.span_id);
        let local_root = parse(&told.local_root_span_id);
        let (endpoint, labels) = (&*told.endpoint, &*told.labels);
        if span_id == 0 && local_root == 0 && endpoint.is_empty() && labels.is_empty() {
            return None;
        }
        let endpoint = match endpoint {
            "" => self.endpoint_of(local_root),
            told => Some(told),
        };
        let context = Context {
            trace_id: u128::from_str_radix(&told.trace_id, 16).unwrap_or(0),
            span_id,
            local_root_span_id: local_root,
            endpoint: endpoint.map(|endpoint| builder.name(endpoint)),
            labels: labels_of(labels, builder),
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

/// Decodes `%` with two digits. Other text stays as it is.
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
