//! YCSB's property files and `-p name=value`: reading them, and refusing what nobody knows.
//!
//! The format of a file is in `property_file.rs`. White space at the end of a value is dropped.

use super::property_file::{decoded, logical_lines, split};
use std::{collections::BTreeMap, str::FromStr};

/// What is wrong with a property.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PropertyError {
    /// A name that neither YCSB's core workload nor this tool knows.
    #[error("unknown property {name:?}; the valid ones are:\n  {}", valid_names().join("\n  "))]
    Unknown {
        /// The name.
        name: String,
    },
    /// A value that does not parse or is out of range.
    #[error("property {name}={value}: {expected}")]
    Invalid {
        /// The name.
        name: String,
        /// The value.
        value: String,
        /// What it must be.
        expected: String,
    },
    /// A workload whose records are not those that the first one of the run loads.
    #[error(
        "property {name}={asked} of workload {workload}: the run's records are those of its first \
         workload, which has {loaded}"
    )]
    Differs {
        /// The name.
        name: String,
        /// Its value in the first workload.
        loaded: String,
        /// Its value in the other one.
        asked: String,
        /// Name of the other one.
        workload: String,
    },
    /// A line of a file or an argument without a name, or with half an escape.
    #[error("{line:?} is not a property: write name=value")]
    Malformed {
        /// The text.
        line: String,
    },
}

/// A property that means something here, and its default.
struct Known {
    name: &'static str,
    default: &'static str,
    about: &'static str,
}

const fn known(name: &'static str, default: &'static str, about: &'static str) -> Known {
    Known {
        name,
        default,
        about,
    }
}

const KNOWN: &[Known] = &[
    known("recordcount", "1000", "records in the loaded set"),
    known("operationcount", "1000", "operations of the run"),
    known("insertstart", "0", "first record number"),
    known(
        "insertcount",
        "",
        "records to load; default recordcount - insertstart",
    ),
    known("fieldcount", "10", "fields of a record"),
    known(
        "fieldlength",
        "100",
        "bytes of a field, or the most of them",
    ),
    known(
        "minfieldlength",
        "1",
        "least bytes of a field of varying length",
    ),
    known(
        "fieldlengthdistribution",
        "constant",
        "constant | uniform | zipfian",
    ),
    known(
        "readallfields",
        "true",
        "read the whole record or one field",
    ),
    known(
        "writeallfields",
        "false",
        "update the whole record or one field",
    ),
    known("readproportion", "0.95", "share of reads"),
    known("updateproportion", "0.05", "share of updates"),
    known("insertproportion", "0.0", "share of inserts"),
    known("scanproportion", "0.0", "share of scans"),
    known(
        "readmodifywriteproportion",
        "0.0",
        "share of read-modify-writes",
    ),
    known(
        "deleteproportion",
        "0.0",
        "share of deletes (not in YCSB; workload X)",
    ),
    known(
        "requestdistribution",
        "uniform",
        "uniform | zipfian | latest | hotspot | exponential | sequential",
    ),
    known(
        "zipfianconstant",
        "0.99",
        "exponent of zipfian and latest (0.99 in YCSB)",
    ),
    known("maxscanlength", "1000", "most records of a scan"),
    known("minscanlength", "1", "least records of a scan"),
    known("scanlengthdistribution", "uniform", "uniform | zipfian"),
    known("insertorder", "hashed", "hashed | ordered"),
    known(
        "zeropadding",
        "1",
        "digits of the number in a key, at least",
    ),
    known(
        "keyformat",
        "ycsb",
        "ycsb: \"user\" and a number | u64: eight bytes (not in YCSB)",
    ),
    known(
        "hotspotdatafraction",
        "0.2",
        "share of the records that is hot",
    ),
    known(
        "hotspotopnfraction",
        "0.8",
        "share of the operations on hot records",
    ),
    known(
        "exponential.percentile",
        "95",
        "percent of the draws within exponential.frac",
    ),
    known(
        "exponential.frac",
        "0.8571428571",
        "share of the records, from the newest",
    ),
    known(
        "maxexecutiontime",
        "0",
        "seconds after which the run ends; 0: none",
    ),
    known("threadcount", "", "threads; default --threads"),
    known(
        "target",
        "0",
        "operations/s of an open loop; 0: closed loop",
    ),
    known(
        "dataintegrity",
        "true",
        "every value is checked whatever this says",
    ),
];

/// YCSB properties that steer what this tool does in its own way; they are accepted and have no
/// effect.
const WITHOUT_EFFECT: &[&str] = &[
    "workload",
    "db",
    "table",
    "fieldnameprefix",
    "fieldlengthhistogram",
    "exporter",
    "exportfile",
    "measurementtype",
    "status.interval",
    "warmupoperations",
    "core_workload_insertion_retry_limit",
    "core_workload_insertion_retry_interval",
];
const PREFIXES_WITHOUT_EFFECT: &[&str] =
    &["measurement.", "histogram.", "hdrhistogram.", "timeseries."];

/// Name, default and meaning of each property that has an effect.
pub fn described() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    KNOWN.iter().map(|k| (k.name, k.default, k.about))
}

fn valid_names() -> Vec<String> {
    let known = KNOWN.iter().map(|k| k.name.to_owned());
    let ignored = WITHOUT_EFFECT.iter().map(|n| format!("{n} (no effect)"));
    let prefixes = PREFIXES_WITHOUT_EFFECT
        .iter()
        .map(|n| format!("{n}* (no effect)"));
    known.chain(ignored).chain(prefixes).collect()
}

/// Properties by name; later ones win.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties {
    set: BTreeMap<String, String>,
}

impl Properties {
    /// Reads the text of a property file over what is there.
    pub fn read(&mut self, text: &str) -> Result<(), PropertyError> {
        for line in logical_lines(text) {
            let decoded =
                split(&line).and_then(|(name, value)| Some((decoded(name)?, decoded(value)?)));
            let (name, value) = decoded.ok_or_else(|| malformed(&line))?;
            self.set(&name, value.trim_end())?;
        }
        Ok(())
    }

    /// Takes one `name=value` as it stands, without escapes.
    pub fn set_line(&mut self, line: &str) -> Result<(), PropertyError> {
        let (name, value) = split(line).ok_or_else(|| malformed(line))?;
        self.set(name, value.trim_end())
    }

    /// Sets one property; the name must be known.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), PropertyError> {
        let known = KNOWN.iter().any(|k| k.name == name)
            || WITHOUT_EFFECT.contains(&name)
            || PREFIXES_WITHOUT_EFFECT.iter().any(|p| name.starts_with(p));
        if !known {
            return Err(PropertyError::Unknown {
                name: name.to_owned(),
            });
        }
        self.set.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    /// The text of `name` if it was set, or if its default is not empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        let default = || KNOWN.iter().find(|k| k.name == name).map(|k| k.default);
        self.set
            .get(name)
            .map(String::as_str)
            .or_else(default)
            .filter(|v| !v.is_empty())
    }

    /// The value of `name` (which has a default), parsed.
    pub fn get<T: FromStr>(&self, name: &str) -> Result<T, PropertyError> {
        let value = self.text(name).unwrap_or_default();
        value
            .parse()
            .map_err(|_| self.invalid(name, &format!("not a valid {}", kind_of::<T>())))
    }

    /// The value of `name` if it is set at all.
    pub fn get_if_set<T: FromStr>(&self, name: &str) -> Result<Option<T>, PropertyError> {
        self.text(name).map(|_| self.get(name)).transpose()
    }

    /// The error that the value of `name` is not what it must be.
    pub fn invalid(&self, name: &str, expected: &str) -> PropertyError {
        PropertyError::Invalid {
            name: name.to_owned(),
            value: self.text(name).unwrap_or_default().to_owned(),
            expected: expected.to_owned(),
        }
    }

    /// All that were set, for the report.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.set.iter().map(|(n, v)| (n.as_str(), v.as_str()))
    }
}

fn malformed(line: &str) -> PropertyError {
    PropertyError::Malformed {
        line: line.to_owned(),
    }
}

fn kind_of<T>() -> &'static str {
    match std::any::type_name::<T>() {
        "u64" | "usize" | "u32" => "whole number",
        "f64" => "number",
        "bool" => "true or false",
        _ => "value",
    }
}

#[cfg(test)]
#[path = "properties_tests.rs"]
mod tests;
