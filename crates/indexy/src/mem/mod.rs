//! Memory: the budget, and the arena, latches and word buffers that Index X is built of.

pub(crate) mod append_buffer;
pub(crate) mod budget;
