//! See `indexy::fuzzing::log_payload`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| indexy::fuzzing::log_payload(bytes));
