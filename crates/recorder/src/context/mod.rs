//! The contexts of logical threads: the records that an API for programs writes, and their texts.
//! The API itself is the runtime's.
//!
//! All state is made when the API is first used, and stays: an application that does not use the
//! API pays nothing. Code that samples a blocked thread calls [`context_of`] with the runtime's id
//! of that thread, the logical one if one is mounted.

pub mod foreign;
pub mod hook;
pub mod requests;
pub mod spans;
pub mod texts;

use crate::sys::lasting::Lasting;
use crate::sys::process;
use dwell_context::by_thread::BUCKET;
use dwell_context::{Context, RECORD_BYTES, Slab};
use requests::{Request, Requests};
use spans::{Span, Spans};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use texts::{Endpoint, Endpoints, Texts};

/// Maximum number of records; a sixteenth of them if the memory cannot be reserved.
const RECORDS: usize = 1 << 20;
/// Buckets of the table: with all records in use eight of sixteen entries are.
const RECORDS_PER_BUCKET: usize = 8;

/// The contexts of this process.
pub struct Contexts {
    slab: Slab<'static>,
    memory: Lasting,
    texts: Texts,
    endpoints: Mutex<Endpoints>,
    requests: Mutex<Requests>,
    spans: Mutex<Spans>,
}

static CONTEXTS: OnceLock<Option<Contexts>> = OnceLock::new();
/// Whether a recording takes the reports.
static RECORDING: AtomicBool = AtomicBool::new(false);

/// A recording begins or ends: endpoints, requests and spans are kept only for one.
pub fn set_recording(on: bool) {
    RECORDING.store(on, Ordering::Relaxed);
    if let Some(contexts) = Contexts::get() {
        let _ = contexts.take_endpoints();
        let _ = contexts.take_requests();
        let _ = contexts.take_spans();
    }
}

impl Contexts {
    /// The contexts, if the API has been used.
    #[must_use]
    pub fn get() -> Option<&'static Contexts> {
        CONTEXTS.get()?.as_ref()
    }

    /// The contexts, made now if necessary; `None` if there is no memory for them.
    #[must_use]
    pub fn get_or_make() -> Option<&'static Contexts> {
        let made =
            CONTEXTS.get_or_init(|| Contexts::of(RECORDS).or_else(|| Contexts::of(RECORDS / 16)));
        let contexts = made.as_ref()?;
        hook::show_contexts(&contexts.slab);
        Some(contexts)
    }

    fn of(records: usize) -> Option<Contexts> {
        let entries = (records / RECORDS_PER_BUCKET).checked_mul(BUCKET * size_of::<u32>())?;
        let memory = Lasting::reserve(records.checked_mul(RECORD_BYTES)?)?;
        let entries = Lasting::reserve(entries)?;
        Some(Contexts {
            slab: Slab::new(memory.words(), entries.half_words())?,
            memory,
            texts: Texts::default(),
            endpoints: Mutex::default(),
            requests: Mutex::new(Requests::new(process::epoch_ns())),
            spans: Mutex::default(),
        })
    }

    /// The records.
    #[must_use]
    pub fn slab(&self) -> &Slab<'static> {
        &self.slab
    }

    /// Where the records are.
    #[must_use]
    pub fn memory(&self) -> Lasting {
        self.memory
    }

    /// The meaning of the numbers in a context.
    #[must_use]
    pub fn texts(&self) -> &Texts {
        &self.texts
    }

    /// Reports the endpoint of a local root to the recording, so that earlier samples can be given
    /// it.
    pub fn tell_endpoint(&self, told: Endpoint) {
        if !RECORDING.load(Ordering::Relaxed) {
            return;
        }
        let mut endpoints = self
            .endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        endpoints.add(told);
    }

    /// Reports a request that has ended to the recording.
    pub fn tell_request(&self, told: Request) {
        if RECORDING.load(Ordering::Relaxed) {
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            requests.add(told);
        }
    }

    /// Takes the requests that have ended since the last time.
    #[must_use]
    pub fn take_requests(&self) -> Vec<Request> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.take()
    }

    /// Reports a span inside of a request that has ended to the recording.
    pub fn tell_span(&self, told: Span) {
        if RECORDING.load(Ordering::Relaxed) {
            let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
            spans.add(told);
        }
    }

    /// Takes the longest spans that have ended since the last time.
    #[must_use]
    pub fn take_spans(&self) -> Vec<Span> {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        spans.take()
    }

    /// Takes the reports since the last call, and the number of those that could not be kept.
    #[must_use]
    pub fn take_endpoints(&self) -> (Vec<Endpoint>, u64) {
        let mut endpoints = self
            .endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        endpoints.take()
    }
}

/// The present context of the logical thread with this id; may be called from any thread.
#[must_use]
pub fn context_of(thread_id: u64) -> Option<Context> {
    Contexts::get()?.slab.context_of(thread_id)
}

/// Whether the logical thread with this id has, had or will have a context, as far as the API for
/// programs knows.
#[must_use]
pub fn knows(thread_id: u64) -> bool {
    Contexts::get().is_some_and(|contexts| contexts.slab.knows(thread_id))
}

/// Number of threads that have a record: at least as many as have a context now. 0: callers need
/// not search.
#[must_use]
pub fn active_count() -> u32 {
    Contexts::get().map_or(0, |contexts| contexts.slab.held())
}

/// Shows the ids of all logical threads that have a context now, mounted or not.
pub fn for_each_working(visit: impl FnMut(u64)) {
    if let Some(contexts) = Contexts::get() {
        contexts.slab.for_each_working(visit);
    }
}
