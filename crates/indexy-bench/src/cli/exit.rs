//! Exit codes.

/// A mistake in the arguments, or a run that could not begin.
pub(super) const REFUSED: u8 = 2;
/// An interrupted run, as shells expect it.
pub(super) const INTERRUPTED: u8 = 130;
