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
mod builder;
mod contexts;
mod forks;
mod frame;
mod from_jfr;
mod info;
mod names;
mod profile;
mod requests;
mod roles;
mod sample;
mod stops;
mod symbol;
pub mod text_art;
mod tree;
mod wall;

pub use aggregate::{GroupBy, Grouped, Row, merged_tree, sort_by_total};
pub use builder::Builder;
pub use frame::{Frame, FrameId, FrameKind, Method, MethodId};
pub use from_jfr::EVENTS;
pub use info::{CpuLimit, CpuUse, Gap, GcPause, Info, Loss, SelfCost};
pub use names::{NameId, Names};
pub use profile::{Failure, Profile, Unit};
pub use requests::{Latencies, Request};
pub use roles::{Role, RoleShare};
pub use sample::{CauseId, Context, ContextId, Look, Sample, Thread, ThreadId, Weight};
pub use stops::{Late, Safepoint};
pub use tree::{CallTree, NodeId, TreeBuilder};
pub use wall::{Wall, WallFilter, group_of};
