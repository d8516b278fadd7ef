//! Native code of the process: modules with their unwind tables, function names, kernel functions.

pub mod image;
pub mod memory;
pub mod modules;
pub mod unwind_rules;

pub use dwell_native::kernel::Kernel;
pub use image::Kept;
pub use modules::Modules;
pub use unwind_rules::Tables;
