//! What the fuzz targets need to see of Index Y; see `crate::fuzzing`.

#![forbid(unsafe_code)]

use super::{lsm::fuzzing as lsm, paged::fuzzing as paged, run_store::fuzzing as run_store};

pub(crate) fn samples() -> Vec<Vec<u8>> {
    lsm::samples()
}

pub(crate) fn decode(bytes: &[u8]) {
    lsm::decode(bytes);
}

pub(crate) fn page_samples() -> Vec<Vec<u8>> {
    paged::samples()
}

pub(crate) fn decode_page(bytes: &[u8]) {
    paged::decode(bytes);
}

pub(crate) fn table_samples() -> Vec<Vec<u8>> {
    run_store::table_samples()
}

pub(crate) fn decode_table(bytes: &[u8]) {
    run_store::decode_table(bytes);
}

pub(crate) fn keys(a: &[u8], b: &[u8]) {
    lsm::keys(a, b);
}
