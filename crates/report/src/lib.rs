//! Reports from a profile: one HTML file with the viewer inside, collapsed stacks, and text.
//!
//! Everything is written to a `Write` that the caller gives. This crate must not open files, and it
//! must not let a name from the profiled program become anything but text: names reach the page
//! only inside compressed columns, and reach text only through [`plain`].

#![forbid(unsafe_code)]

mod collapsed;
mod diff;
mod event_lines;
mod explanation;
mod findings;
mod grown;
mod idle;
mod incomplete;
mod interchange;
mod latencies;
mod number;
mod page;
mod plain;
mod remedies;
mod self_check;
mod text;
mod totals;
mod unread;
mod words;

/// Said where endpoints are handlers found in stacks.
pub(crate) const FROM_STACKS: &str =
    "from stacks; counts and latencies need the Java API or OpenTelemetry (docs/context.md)";

pub use collapsed::{CollapsedOptions, Stacks, collapsed};
pub use diff::{Compared, Limit, Limited, Outcome, Verdict, compared};
pub use explanation::{
    explanation_and_totals_json, explanation_json, explanation_text, page_findings,
};
pub use findings::findings;
pub use grown::{Grown, grown};
pub use incomplete::incomplete;
pub use interchange::interchange_jfr;
pub use number::{count, date, duration, percent, size, stamp};
pub use page::{Finding, Options, compare_html, html, html_with};
pub use plain::{beginning, columns, padded, plain, shortened};
pub use text::{TextOptions, requests_text, safepoint_line, safepoints_text, text, text_with};
pub use unread::unread_words;
