//! What looks at threads that wait have to say: from the runtime to the wall-clock sampler, and
//! from there to the drainer. Data only.

pub mod off;
pub mod shelf;
pub mod threads;
pub mod unmounted;
