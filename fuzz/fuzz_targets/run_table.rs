//! See `indexy::fuzzing::run_table`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| indexy::fuzzing::run_table(bytes));
