//! Native code of the process: modules with their unwind tables, function names, kernel functions.

pub mod image;
pub mod kernel;
pub mod modules;
pub mod remembered;

pub use kernel::Kernel;
pub use modules::Modules;
