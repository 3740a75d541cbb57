//! See `indexy::fuzzing::version_log`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| indexy::fuzzing::version_log(bytes));
