//! What the fuzz targets need to see of the manifest; see `crate::fuzzing`.

#![forbid(unsafe_code)]

use super::manifest::{FORMAT_VERSION, Manifest, decode, with_header};
use std::path::Path;

/// Decodes `bytes` as a file and as a body. What a manifest says comes back the same.
pub(crate) fn manifest(bytes: &[u8]) {
    let path = Path::new("MANIFEST");
    for file in [bytes.to_vec(), with_header(FORMAT_VERSION, bytes)] {
        if let Ok(manifest) = decode(&file, path) {
            let again = manifest.encode().and_then(|bytes| decode(&bytes, path));
            assert_eq!(again.ok(), Some(manifest));
        }
    }
}

pub(crate) fn manifest_sample() -> Vec<u8> {
    Manifest::new(7).encode().unwrap_or_default()
}
