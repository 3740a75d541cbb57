//! YCSB's property files and `-p name=value`: reading them, and refusing what nobody knows.
//!
//! The format is Java's: `name=value`, `name: value` or `name value` a line, `#` and `!` begin comments. An odd number of
//! backslashes at the end joins lines; `\t`, `\n`, `\r`, `\f` and `\u0066` stand for a character, before any other one a
//! backslash takes away its meaning. Differs: a line needs a value, and white space at the end of one is dropped.

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
        "property {name}={asked} of workload {workload}: the run's records are those of its first workload, which has {loaded}"
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
        for line in logical_lines(text) {
            let (name, value) = split(&line)?;
            match (decoded(name), decoded(value)) {
                (Some(name), Some(value)) => self.set(&name, value.trim_end())?,
                _ => return Err(malformed(&line)),
            }
        }
        Ok(())
    }

    /// Takes one `name=value` as it stands, without escapes.
    pub fn set_line(&mut self, line: &str) -> Result<(), PropertyError> {
        let (name, value) = split(line)?;
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

/// White space between names and values.
const BLANKS: [char; 3] = [' ', '\t', '\u{c}'];

fn malformed(line: &str) -> PropertyError {
    PropertyError::Malformed {
        line: line.to_owned(),
    }
}

/// The lines of a property file that say something, each joined with those that go on with it.
fn logical_lines(text: &str) -> Vec<String> {
    let text = text.replace("\r\n", "\n");
    let (mut lines, mut logical, mut goes_on) = (Vec::new(), String::new(), false);
    for line in text.split(['\n', '\r']) {
        let line = line.trim_start_matches(BLANKS);
        if !goes_on && (line.is_empty() || line.starts_with(['#', '!'])) {
            continue;
        }
        // Of an even number each second one is escaped.
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        goes_on = !backslashes.is_multiple_of(2);
        logical.push_str(&line[..line.len() - usize::from(goes_on)]);
        if !goes_on {
            lines.push(std::mem::take(&mut logical));
        }
    }
    lines.push(logical);
    lines.retain(|line| !line.is_empty());
    lines
}

/// Name and value of a line, with their escapes.
fn split(line: &str) -> Result<(&str, &str), PropertyError> {
    let mut escaped = false;
    let separates = |&(_, c): &(usize, char)| {
        let found = !escaped && (BLANKS.contains(&c) || c == '=' || c == ':');
        escaped = !escaped && c == '\\';
        found
    };
    let Some((at, _)) = line
        .char_indices()
        .find(separates)
        .filter(|(at, _)| *at > 0)
    else {
        return Err(malformed(line));
    };
    let (name, rest) = line.split_at(at);
    let rest = rest.trim_start_matches(BLANKS);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    Ok((name, value.trim_start_matches(BLANKS)))
}

/// `text` with its escapes replaced by what they stand for; none if there is half a character.
fn decoded(text: &str) -> Option<String> {
    let mut units = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let c = if c == '\\' {
            match chars.next() {
                Some('u') => {
                    let mut unit = 0;
                    for _ in 0..4 {
                        unit = unit * 16 + chars.next()?.to_digit(16)?;
                    }
                    units.push(unit as u16);
                    continue;
                }
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\u{c}',
                Some(other) => other,
                None => break,
            }
        } else {
            c
        };
        units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
    }
    // Java's characters are units of UTF-16, so one beyond 16 bits is two escapes.
    String::from_utf16(&units).ok()
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

    fn read(text: &str) -> Result<Vec<(String, String)>, PropertyError> {
        let mut p = Properties::default();
        p.read(text)?;
        let all = p.iter().map(|(n, v)| (n.to_owned(), v.to_owned()));
        Ok(all.collect())
    }

    #[track_caller]
    fn reads(text: &str, expected: &[(&str, &str)]) {
        let read = read(text).unwrap();
        let read: Vec<(&str, &str)> = read.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(read, expected, "{text:?}");
    }

    #[test]
    fn only_an_odd_number_of_backslashes_joins_lines() {
        reads(
            "exportfile=C:\\\\out\\\\\nrecordcount=1000000\n",
            &[("exportfile", "C:\\out\\"), ("recordcount", "1000000")],
        );
        reads(
            "exportfile=a\\\\\\\r\n \t\u{c}b\r\nrecordcount=5\rtarget=6",
            &[
                ("exportfile", "a\\b"),
                ("recordcount", "5"),
                ("target", "6"),
            ],
        );
        // What goes on is no comment; a blank line, or the end, ends it.
        reads("table=a\\\n#b", &[("table", "a#b")]);
        reads(
            "table=a\\\n\nrecordcount=5\\",
            &[("recordcount", "5"), ("table", "a")],
        );
        reads("\\\n", &[]);
    }

    #[test]
    fn escapes_stand_for_characters() {
        reads(
            "requestdistribution=zip\\u0066ian",
            &[("requestdistribution", "zipfian")],
        );
        reads("r\\u0065cord\\count=\\5", &[("recordcount", "5")]);
        reads(
            "table=\\ a\\tb\\nc\\rd\\fe\\=",
            &[("table", " a\tb\nc\rd\u{c}e=")],
        );
        reads(
            "table=\\ud83d\\ude00\u{e9}",
            &[("table", "\u{1f600}\u{e9}")],
        );
        for half in ["table=\\u00", "table=\\u+123", "table=\\ud83d"] {
            let error = read(half).unwrap_err();
            assert!(matches!(error, PropertyError::Malformed { .. }), "{half}");
        }
    }

    #[test]
    fn a_name_ends_at_the_first_separator_that_is_not_escaped() {
        let error = read("a\\:b=c").unwrap_err();
        let unknown = |name: &str| PropertyError::Unknown {
            name: name.to_owned(),
        };
        assert_eq!(error, unknown("a:b"));
        reads("measurement.a\\:b\\ \\=c=d", &[("measurement.a:b =c", "d")]);
        reads("table\u{c}=\t=a:b c \n", &[("table", "=a:b c")]);
        let error = read("table").unwrap_err();
        assert!(matches!(error, PropertyError::Malformed { .. }));
    }

    #[test]
    fn an_argument_is_taken_as_it_stands() {
        let mut p = Properties::default();
        p.set_line("exportfile=C:\\new\\").unwrap();
        assert_eq!(p.text("exportfile"), Some("C:\\new\\"));
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
