//! What the fuzz targets need to see of the run store; see `crate::fuzzing`.

pub(crate) use super::table::fuzzing::{decode as decode_table, samples as table_samples};
