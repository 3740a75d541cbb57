//! See `indexy::fuzzing::index_y_page`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| indexy::fuzzing::index_y_page(bytes));
