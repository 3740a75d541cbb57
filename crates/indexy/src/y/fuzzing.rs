//! What the fuzz targets need to see of Index Y; see `crate::fuzzing`.

#![forbid(unsafe_code)]

use super::lsm::fuzzing as lsm;

pub(crate) fn samples() -> Vec<Vec<u8>> {
    lsm::samples()
}

pub(crate) fn decode(bytes: &[u8]) {
    lsm::decode(bytes);
}

pub(crate) fn keys(a: &[u8], b: &[u8]) {
    lsm::keys(a, b);
}
