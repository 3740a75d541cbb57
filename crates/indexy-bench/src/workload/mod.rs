//! What is asked of a contender: keys, values, distributions and YCSB's core workload.
//!
//! Everything here is a pure function of a seed, so that every contender meets the same
//! operations, and of a key, so that every value read can be checked.
//! Not here: running it (`harness/`), measuring it (`measure/`).

mod choose;
mod exponential;
mod hotspot;
mod keys;
mod latest;
mod properties;
mod property_file;
mod record;
mod scrambled;
mod values;
mod ycsb;
mod zipf;

pub use choose::{ABSENT_FROM, Chooser, Pick};
pub use exponential::Exponential;
pub use hotspot::Hotspot;
pub use keys::{Keys, Order, SmallKey, mix, stride_permutation, unmix};
pub use latest::{Acknowledged, Latest};
pub use properties::{Properties, PropertyError, described};
pub use record::{FieldLengths, Records};
pub use scrambled::{Scrambled, fnv64};
pub use values::{Mismatch, Values, seed_of};
pub use ycsb::{
    Client, Distribution, Operation, Shared, Workload, YcsbKeys, builtin_names, builtin_text,
};
pub use zipf::Zipf;

/// The generator of all random draws: small, fast, and the same sequence in every release.
pub type Rng = rand_xoshiro::Xoshiro256PlusPlus;

/// The generator of thread `thread` in phase `phase` of a run seeded with `seed`.
pub fn rng(seed: u64, phase: u64, thread: u64) -> Rng {
    use rand::SeedableRng;
    Rng::seed_from_u64(mix(mix(seed ^ 0x1d8e_4e27_c47d_124f)
        .wrapping_add(phase << 20)
        ^ thread))
}
