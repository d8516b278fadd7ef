//! The in-memory profile model: samples, stacks, threads; merging and aggregation.
//!
//! One [`Profile`] is what every report, conversion and view is made from. It is built from a
//! recording ([`Profile::from_recording`]), by a [`Builder`], or in tests from [`text_art`].
//!
//! This crate is pure: it must not touch files, the network, the clock or a terminal, and it must
//! not know any output format. Loops are iterative everywhere, because a stack can be thousands of
//! frames deep and its depth is chosen by the profiled program.

#![forbid(unsafe_code)]

mod aggregate;
mod alive;
mod allocated;
mod allocations;
mod asked_collections;
mod builder;
mod clusters;
mod collections;
mod counts;
mod derived;
pub mod diff;
mod event_tables;
mod extent;
mod forks;
mod frame;
mod from_jfr;
mod host;
mod idle;
mod idle_loops;
mod info;
mod lacks;
mod library;
mod live;
mod locked;
mod locks;
mod lost_allocations;
mod missing_details;
mod names;
mod payers;
mod plain_text;
mod platform;
mod profile;
mod requests;
mod roles;
mod sample;
mod self_check;
mod spans;
mod stopped_times;
mod stops;
mod stretches;
mod surroundings;
mod symbol;
pub mod text_art;
mod thread_time;
mod traced;
mod tree;
mod wall;

pub use aggregate::{GroupBy, Grouped, Row, merged_tree, sort_by_total};
pub use alive::{Alive, AliveClass, AliveStack, Objects, PARTS};
pub use allocations::{AllocatedClass, Allocation, AllocationSampling, LostAllocations};
pub use builder::Builder;
pub use clusters::{Clusters, RequestKey};
pub use collections::{Asked, Collection};
pub use counts::{count, plural};
pub use derived::DERIVED_MARK;
pub use dwell_jfr::hash::Seeds;
pub use dwell_jfr::kinds::{KINDS, StretchKind, told};
pub use dwell_jfr::reader::{BINS_MIN, BINS_NS, Form, choices_of_both};
pub use event_tables::{CellUnit, EventColumn, EventTable};
pub use extent::{Extent, Window};
pub use frame::{Frame, FrameId, FrameKind, Method, MethodId};
pub use from_jfr::{EVENTS, SAMPLES_MAX};
pub use host::Host;
pub use idle::{IDLE, Idle};
pub use info::{CpuLimit, CpuUse, EventWaits, Gap, Info, Loss, Measured, SelfCost, Unread};
pub use lacks::{Lack, Recorder};
pub use live::{LiveObject, LiveSampling};
pub use locks::{
    LockClass, LockLook, Locked, MonitorOwner, MonitorSums, MonitorWait, NOT_KNOWN, OwnerRow,
};
pub use lost_allocations::LostBytes;
pub use names::{NameId, Names};
pub use payers::Paid;
pub use plain_text::plain;
pub use platform::{Platform, is_of_platform, tool_of_platform};
pub use profile::{Failure, Profile, Unit};
pub use requests::{Latencies, Request};
pub use roles::{Role, RoleShare};
pub use sample::{CauseId, Context, ContextId, Look, Sample, Thread, ThreadId, Weight};
pub use self_check::{Accounted, Agreement, EndpointCheck, SelfCheck, ThreadLedger, ThreadLife};
pub use spans::Span;
pub use stopped_times::CAUSE as STOPPED;
pub use stops::{Late, Safepoint};
pub use stretches::{Fact, Stretch, StretchSum, Stretches};
pub use surroundings::{Compilation, Compilers, Machine, Throttled};
pub use symbol::{NO_SYMBOL, readable_function};
pub use thread_time::ThreadTime;
pub use traced::{ThrownSum, Traced, TracedKind};
pub use tree::{CallTree, NodeId, TreeBuilder};
pub use wall::{RUNNING, Wall, WallFilter, group_of, matches};
