//! Command line of IndeXY.
fn main() {}
