//! YCSB's property files and `-p name=value`: reading them, and refusing what nobody knows.
//!
//! The format is Java's: `name=value`, `name: value` or `name value` a line, `#` and `!` begin
//! comments, a backslash at the end joins lines.

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
    /// A line of a file or an argument without a name.
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

/// YCSB properties that steer what this tool does in its own way; they are accepted and have no effect.
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
        let mut logical = String::new();
        for line in text.lines() {
            let line = line.trim_start();
            if logical.is_empty() && (line.is_empty() || line.starts_with(['#', '!'])) {
                continue;
            }
            if let Some(more) = line.strip_suffix('\\') {
                logical.push_str(more);
                continue;
            }
            logical.push_str(line);
            self.set_line(&std::mem::take(&mut logical))?;
        }
        if logical.is_empty() {
            Ok(())
        } else {
            self.set_line(&logical)
        }
    }

    /// Takes one `name=value`.
    pub fn set_line(&mut self, line: &str) -> Result<(), PropertyError> {
        let malformed = || PropertyError::Malformed {
            line: line.to_owned(),
        };
        let at = line.find(['=', ':', ' ', '\t']).ok_or_else(malformed)?;
        let (name, rest) = line.split_at(at);
        let value = rest.trim_start().trim_start_matches(['=', ':']).trim();
        if name.is_empty() {
            return Err(malformed());
        }
        self.set(name, value)
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

fn kind_of<T>() -> &'static str {
    match std::any::type_name::<T>() {
        "u64" | "usize" | "u32" => "whole number",
        "f64" => "number",
        "bool" => "true or false",
        _ => "value",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_java_reads() {
        let mut p = Properties::default();
        p.read("# comment\n! too\n\n recordcount=5\noperationcount: 7\nfieldcount 3\nrequestdistribution=zip\\\n  fian\n")
            .unwrap();
        assert_eq!(p.get::<u64>("recordcount").unwrap(), 5);
        assert_eq!(p.get::<u64>("operationcount").unwrap(), 7);
        assert_eq!(p.get::<u64>("fieldcount").unwrap(), 3);
        assert_eq!(p.text("requestdistribution"), Some("zipfian"));
    }

    #[test]
    fn later_values_win_and_defaults_fill() {
        let mut p = Properties::default();
        p.set_line("recordcount=5").unwrap();
        p.set_line("recordcount=6").unwrap();
        assert_eq!(p.get::<u64>("recordcount").unwrap(), 6);
        assert_eq!(p.get::<u64>("fieldlength").unwrap(), 100);
        assert_eq!(p.get_if_set::<u64>("insertcount").unwrap(), None);
    }

    #[test]
    fn an_unknown_name_lists_the_valid_ones() {
        let message = Properties::default()
            .set_line("recordcnt=5")
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("recordcnt")
                && message.contains("recordcount")
                && message.contains("maxscanlength")
        );
    }

    #[test]
    fn a_bad_value_names_its_property() {
        let mut p = Properties::default();
        p.set_line("recordcount=many").unwrap();
        let message = p.get::<u64>("recordcount").unwrap_err().to_string();
        assert_eq!(
            message,
            "property recordcount=many: not a valid whole number"
        );
        assert!(matches!(
            p.set_line("novalue"),
            Err(PropertyError::Malformed { .. })
        ));
    }

    #[test]
    fn properties_about_measuring_are_accepted() {
        let mut p = Properties::default();
        p.set_line("measurementtype=hdrhistogram").unwrap();
        p.set_line("hdrhistogram.percentiles=95,99").unwrap();
    }
}
