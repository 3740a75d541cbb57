//! Everything at once: four writers, each of which knows what its keys hold, use the whole API over
//! trees of mixed pairs, beside transfers between shared accounts and a thread that changes the
//! budget, lets time pass, and flushes, copies, releases, compacts, verifies, renames and drops.
//!
//! `world.rs` has the database, `model.rs` what keys hold, `writer.rs` a writer, `writes.rs` and
//! `reads.rs` its calls, `transactions.rs` those that stay open, `disturb.rs` the thread beside
//! them. `replica.rs` follows the change feed. In `killed.rs` the process is killed.
//!
//! `INDEXY_COMBINED_SEED` (default 1) is the first seed, `INDEXY_COMBINED_STEPS` (default 1500) the
//! number of calls of each writer, `INDEXY_COMBINED_KILLS` (default 3) of the kills a pair.

mod disturb;
mod journal;
mod killed;
mod model;
mod reads;
mod replica;
mod run;
mod transactions;
mod world;
mod writer;
mod writes;
