//! Samples by thread in the order of time, for formats that show time.

pub mod categories;
pub mod sample_rows;
pub mod tracks;
