//! Spans with times inside of requests.

/// A span inside of a request, which has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it began, in nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// The request's first span in this process.
    pub local_root_span_id: u64,
    /// Its own id.
    pub span_id: u64,
}
