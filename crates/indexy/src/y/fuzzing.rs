//! What the fuzz targets need to see of Index Y; see `crate::fuzzing`.

#![forbid(unsafe_code)]

use super::{lsm::fuzzing as lsm, paged::fuzzing as paged};

pub(crate) fn page_samples() -> Vec<Vec<u8>> {
    paged::samples()
}

pub(crate) fn decode_page(bytes: &[u8]) {
    paged::decode(bytes);
}

pub(crate) fn table_samples() -> Vec<Vec<u8>> {
    lsm::table_samples()
}

pub(crate) fn decode_table(bytes: &[u8]) {
    lsm::decode_table(bytes);
}

pub(crate) fn version_samples() -> Vec<Vec<u8>> {
    lsm::version_samples()
}

pub(crate) fn decode_versions(bytes: &[u8]) {
    lsm::decode_versions(bytes);
}
