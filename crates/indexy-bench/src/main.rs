//! Benchmarks of IndeXY.
fn main() {}
