//! See `indexy::fuzzing::log_group`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| indexy::fuzzing::log_group(bytes));
