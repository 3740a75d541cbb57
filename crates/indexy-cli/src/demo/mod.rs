//! `indexy demo`: shows on this machine what the index is for, and checks everything that it reads.
//!
//! It indexes the paths of the file system and generated records until they are many times the
//! memory budget. It reads a scattered working set and by a zipf distribution, scans, kills a
//! writing process, recovers and verifies. It scales by time: a slower machine gets fewer records.
//! The database is in a temporary directory that is removed however the demo ends, except by a
//! second signal or SIGKILL.

mod charts;
mod crash;
mod fill;
mod generate;
mod live;
mod paths;
mod plan;
mod reads;
mod report;
mod sample;
mod scans;
mod screen;
mod show;
mod space;
mod stage;
mod stop;

pub use crash::{victim, victim_arguments};
pub use show::run;
