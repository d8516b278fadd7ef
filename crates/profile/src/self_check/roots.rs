//! Which request a scope belongs to, and what is known of each request: by the local roots that
//! contexts and requests name.

use crate::clusters::RequestKey;
use crate::names::NameId;
use crate::profile::Profile;
use crate::sample::{ContextId, ThreadId};
use crate::wall::Wall;
use dwell_jfr::hash::Seeds;
use std::collections::{HashMap, HashSet};

/// Whose latency the time of a scope is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attribution {
    /// Of no request's.
    Nobody,
    /// Of requests of this endpoint; `None`: without one.
    Endpoint(Option<NameId>),
    /// Of a request whose endpoint is not known.
    Unknown,
}

/// The endpoint that something names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Named {
    #[default]
    Nothing,
    One(Option<NameId>),
    /// It contradicts itself: ids are used again.
    Several,
}

impl Named {
    fn add(&mut self, endpoint: Option<NameId>) {
        *self = match *self {
            Named::Nothing => Named::One(endpoint),
            Named::One(known) if known == endpoint => Named::One(endpoint),
            _ => Named::Several,
        };
    }

    fn one(self) -> Option<Option<NameId>> {
        match self {
            Named::One(endpoint) => Some(endpoint),
            _ => None,
        }
    }
}

/// The known data of a request.
#[derive(Clone, Copy, Debug, Default)]
struct Root {
    /// By its latency, and by its own scope.
    by_request: Named,
    by_scope: Named,
    /// Latencies; more than one where ids are used again.
    latencies: u32,
    /// When it was seen, and where first.
    first_ns: u64,
    last_ns: u64,
    thread: Option<ThreadId>,
    on_several: bool,
    /// The part that was seen in the compared time.
    seen_ns: f64,
}

/// The requests of a profile.
pub(super) struct RequestRoots {
    roots: Vec<Root>,
    /// By context the place of its root; none: it names none. The same by request.
    of_context: Vec<Option<usize>>,
    of_request: Vec<Option<usize>>,
    attributions: Vec<Attribution>,
}

impl RequestRoots {
    pub(super) fn of(profile: &Profile) -> RequestRoots {
        let mut roots: Vec<Root> = Vec::new();
        let mut known: HashMap<RequestKey, usize, Seeds> = HashMap::default();
        let mut place = |roots: &mut Vec<Root>, key: RequestKey| {
            *known.entry(key).or_insert_with(|| {
                roots.push(Root::default());
                roots.len() - 1
            })
        };
        let mut of_request = Vec::with_capacity(profile.requests.len());
        for request in &profile.requests {
            let local_root = request.local_root_span_id;
            let at = (local_root != 0).then(|| place(&mut roots, (request.trace_id, local_root)));
            if let Some(root) = at.and_then(|at| roots.get_mut(at)) {
                root.by_request.add(request.endpoint);
                root.latencies = root.latencies.saturating_add(1);
            }
            of_request.push(at);
        }
        let mut of_context = Vec::with_capacity(profile.contexts.len());
        for context in &profile.contexts {
            let local_root = context.local_root_span_id;
            let at = (local_root != 0).then(|| place(&mut roots, (context.trace_id, local_root)));
            if let Some(root) = at.and_then(|at| roots.get_mut(at))
                && context.span_id == local_root
            {
                root.by_scope.add(context.endpoint);
            }
            of_context.push(at);
        }
        let attributions = attributions(profile, &roots, &of_context);
        RequestRoots {
            roots,
            of_context,
            of_request,
            attributions,
        }
    }

    /// Adds time that is compared.
    pub(super) fn add_seen(&mut self, context: ContextId, ns: f64) {
        let at = self.place(context);
        if let Some(root) = at.and_then(|at| self.roots.get_mut(at)) {
            root.seen_ns += ns;
        }
    }

    /// How much of a request was seen in the time that is compared, by its place in the profile;
    /// none: its ids are not its own.
    pub(super) fn seen_of_request(&self, place: usize) -> Option<f64> {
        let root = self.roots.get((*self.of_request.get(place)?)?)?;
        (root.latencies == 1).then_some(root.seen_ns)
    }

    /// Notes when and where a request was seen.
    pub(super) fn see(&mut self, wall: &Wall<'_>) {
        let at = wall.context.and_then(|context| self.place(context));
        let Some(root) = at.and_then(|at| self.roots.get_mut(at)) else {
            return;
        };
        let end_ns = wall.time_ns.saturating_add(wall.lasted_ns);
        if root.thread.is_none() {
            root.first_ns = wall.time_ns;
        }
        root.first_ns = root.first_ns.min(wall.time_ns);
        root.last_ns = root.last_ns.max(end_ns);
        let first = *root.thread.get_or_insert(wall.thread);
        root.on_several |= first != wall.thread;
    }

    pub(super) fn attribution(&self, context: ContextId) -> Attribution {
        let attribution = self.attributions.get(context as usize);
        attribution.copied().unwrap_or(Attribution::Nobody)
    }

    /// Whether a context's request has no latency and was seen for so long.
    pub(super) fn is_unended(&self, context: ContextId, least_ns: u64) -> bool {
        self.root(context).is_some_and(|root| {
            root.latencies == 0 && root.last_ns.saturating_sub(root.first_ns) >= least_ns
        })
    }

    /// Whether a context's request was seen on several threads.
    pub(super) fn is_on_several(&self, context: ContextId) -> bool {
        (self.root(context)).is_some_and(|root| root.on_several && root.latencies <= 1)
    }

    fn place(&self, context: ContextId) -> Option<usize> {
        *self.of_context.get(context as usize)?
    }

    fn root(&self, context: ContextId) -> Option<&Root> {
        self.roots.get(self.place(context)?)
    }
}

fn attributions(
    profile: &Profile,
    roots: &[Root],
    of_context: &[Option<usize>],
) -> Vec<Attribution> {
    let by_root = |at: &Option<usize>| {
        let root = roots.get((*at)?)?;
        root.by_request.one().or_else(|| root.by_scope.one())
    };
    let all = || profile.contexts.iter().zip(of_context);
    // Endpoints that scopes inside of requests of other endpoints name.
    let inner = all().filter(|(context, at)| by_root(at).is_some_and(|of| of != context.endpoint));
    let inner: HashSet<Option<NameId>> = inner.map(|(context, _)| context.endpoint).collect();
    let attribution = |(context, at): (&crate::sample::Context, &Option<usize>)| {
        if let Some(endpoint) = by_root(at) {
            return Attribution::Endpoint(endpoint);
        }
        let is_root = at.is_some() && context.span_id == context.local_root_span_id;
        match context.endpoint {
            None if at.is_none() => Attribution::Nobody,
            endpoint if !is_root && inner.contains(&endpoint) => Attribution::Unknown,
            endpoint => Attribution::Endpoint(endpoint),
        }
    };
    all().map(attribution).collect()
}
