//! Test tools shared by the crates of IndeXY.
