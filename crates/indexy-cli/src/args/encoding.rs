//! The encoding of keys and values on the command line and in files.

use super::usage::Usage;
use crate::format::{
    Encoding,
    jsonl::{self, Fields},
};
use clap::Args;
use std::{ffi::OsString, os::unix::ffi::OsStrExt};

/// Hexadecimal or escaped.
#[derive(Debug, Args)]
pub struct EncodingArgs {
    /// Keys and values are in hexadecimal, in and out
    #[arg(long, conflicts_with = "escaped")]
    pub hex: bool,
    /// Read \\ \t \n \r \xHH in what is given as the bytes they stand for
    #[arg(long, short = 'e')]
    pub escaped: bool,
}

impl EncodingArgs {
    /// The encoding of what the user gives.
    pub fn encoding(&self) -> Encoding {
        match (self.hex, self.escaped) {
            (true, _) => Encoding::Hex,
            (_, true) => Encoding::Escaped,
            _ => Encoding::Plain,
        }
    }

    /// The bytes of an argument; a mistake in it is one of usage.
    pub fn bytes(&self, name: &str, arg: &OsString) -> Result<Vec<u8>, Usage> {
        match self.encoding().decode(arg.as_bytes()) {
            Ok(bytes) => Ok(bytes.into_owned()),
            Err(what) => Err(Usage(format!("{name} {:?}: {what}", arg.display()))),
        }
    }

    /// The same for an argument that may be absent.
    pub fn optional(&self, name: &str, arg: Option<&OsString>) -> Result<Option<Vec<u8>>, Usage> {
        arg.map(|arg| self.bytes(name, arg)).transpose()
    }
}

/// Names of fields in JSON lines.
#[derive(Debug, Args)]
pub struct FieldArgs {
    /// JSON lines: the field that holds the key
    #[arg(long, value_name = "NAME", default_value = "key")]
    pub key_field: String,
    /// JSON lines: the field that holds the value
    #[arg(long, value_name = "NAME", default_value = "value")]
    pub value_field: String,
}

impl FieldArgs {
    /// The names, checked.
    pub fn fields(&self) -> Result<Fields, Usage> {
        if self.key_field == self.value_field {
            return Err(Usage("--key-field and --value-field must differ".into()));
        }
        let fields = [&self.key_field, &self.value_field];
        for (name, other) in [(fields[0], fields[1]), (fields[1], fields[0])] {
            if *other == jsonl::hex_name(name) {
                return Err(Usage(format!(
                    "--key-field and --value-field: {other:?} is what holds the bytes of {name:?} \
                     that are not text"
                )));
            }
        }
        Ok(Fields::new(&self.key_field, &self.value_field))
    }
}
