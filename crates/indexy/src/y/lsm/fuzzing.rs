//! What the fuzz targets need to see of the LSM tree; see `crate::fuzzing`.

pub(crate) use super::{
    table::fuzzing::{decode as decode_table, samples as table_samples},
    version::fuzzing::{decode as decode_versions, samples as version_samples},
};
