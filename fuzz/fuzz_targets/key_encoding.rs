//! See `indexy::fuzzing::key_encoding`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| indexy::fuzzing::key_encoding(bytes));
