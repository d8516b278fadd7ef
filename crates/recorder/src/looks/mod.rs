//! Data from samples of waiting threads: from the runtime to the wall-clock sampler, and from
//! there to the drainer.

pub mod off;
pub mod shelf;
pub mod threads;
pub mod unmounted;
