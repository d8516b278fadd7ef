//! Reports from a profile: one HTML file with the viewer inside, collapsed stacks, and text.
//!
//! Everything is written to a `Write` that the caller gives. This crate must not open files, and it
//! must not let a name from the profiled program become anything but text: names reach the page
//! only inside compressed columns, and reach text only through [`plain`].

#![forbid(unsafe_code)]

mod collapsed;
mod findings;
mod number;
mod page;
mod plain;
mod text;

pub use collapsed::{CollapsedOptions, collapsed};
pub use findings::findings;
pub use number::stamp;
pub use page::{Options, html};
pub use plain::{plain, shortened};
pub use text::{requests_text, safepoint_line, safepoints_text, text};
