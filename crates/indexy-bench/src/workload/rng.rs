//! Random draws that a seed decides.

use super::keys::mix;
use rand::SeedableRng as _;

/// The generator of all random draws: small, fast, and the same sequence in every release.
pub type Rng = rand_xoshiro::Xoshiro256PlusPlus;

/// The generator of thread `thread` in phase `phase` of a run seeded with `seed`.
pub fn rng(seed: u64, phase: u64, thread: u64) -> Rng {
    Rng::seed_from_u64(mix(mix(seed ^ 0x1d8e_4e27_c47d_124f)
        .wrapping_add(phase << 20)
        ^ thread))
}
