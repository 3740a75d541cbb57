//! See `indexy::fuzzing::hot_set`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| indexy::fuzzing::hot_set(bytes));
