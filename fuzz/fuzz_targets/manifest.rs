//! See `indexy::fuzzing::manifest`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| indexy::fuzzing::manifest(bytes));
