//! What is asked of a contender: keys, values, distributions and YCSB's core workload.
//!
//! Everything here is a pure function of a seed, so that every contender meets the same
//! operations, and of a key, so that every value read can be checked.
//! Not here: running it (`harness/`), measuring it (`measure/`).

mod builtin;
mod choose;
mod exponential;
mod hotspot;
mod keys;
mod latest;
mod operation;
mod properties;
mod property_file;
mod record;
mod rng;
mod scrambled;
mod values;
mod ycsb;
mod zipf;

pub use builtin::{builtin_names, builtin_text};
pub use choose::{ABSENT_FROM, Chooser, Pick};
pub use exponential::Exponential;
pub use hotspot::Hotspot;
pub use keys::{Keys, Order, SmallKey, mix, stride_permutation, unmix};
pub use latest::{Acknowledged, Latest};
pub use operation::{Distribution, Operation, YcsbKeys};
pub use properties::{Properties, PropertyError, described};
pub use record::{FieldLengths, Records};
pub use rng::{Rng, rng};
pub use scrambled::{Scrambled, fnv64};
pub use values::{Mismatch, Values, seed_of};
pub use ycsb::{Client, Shared, Workload};
pub use zipf::Zipf;
