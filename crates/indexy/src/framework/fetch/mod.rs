//! Reads of Index Y that callers do not wait for at once: the retrieval by abort and restart of
//! anti-caching, as a queue.
//!
//! A caller that misses leaves the key in [`Fetches`] and gets a [`Slot`](slot::Slot). A few
//! threads, the fetchers, take what waits of all callers, a batch at a time, and read it with
//! overlapping reads. What was read goes into Index X as after any miss, whether somebody still
//! wants the answer or not.
//!
//! - [`queue`] is who waits, and how much may; [`slot`] the answer; [`fetcher`] the thread.
//!
//! Imports go one way: `fetcher` to `queue`, and that to `slot`.

pub(crate) mod fetcher;
pub(crate) mod queue;
pub(crate) mod slot;
