//! Records as text: what `load` reads and `dump` and `scan` write.
//!
//! Three formats: TSV (`tsv.rs`), JSON lines (`jsonl.rs`) and one key per line (here). Whatever is
//! written is read back to the same bytes. Not here: splitting the input into lines (`input.rs`).

pub mod escape;
pub mod jsonl;
pub mod tsv;

use escape::{escape_into, hex_into, unescape, unhex};
use indexy::limits::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use std::{borrow::Cow, path::Path};

/// A byte order mark, a tab, a CR; names of fields.
const AROUND_A_RECORD: usize = 4 << 10;

/// The format of records in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A key, a tab, a value
    Tsv,
    /// A JSON object per line
    Jsonl,
    /// A key per line, no values
    Lines,
}

impl Format {
    /// The format that a file's extension tells; TSV otherwise.
    pub fn of_file(path: &Path) -> Self {
        match path.extension().and_then(|e| e.to_str()) {
            Some("jsonl" | "ndjson" | "json") => Self::Jsonl,
            Some("keys" | "lines" | "list") => Self::Lines,
            _ => Self::Tsv,
        }
    }
}

/// The encoding of bytes in arguments and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Byte for byte.
    Plain,
    /// With the escapes of `escape.rs`.
    Escaped,
    /// In hexadecimal.
    Hex,
}

impl Encoding {
    /// The bytes that `text` stands for. `Err` says what is wrong.
    pub fn decode(self, text: &[u8]) -> Result<Cow<'_, [u8]>, String> {
        match self {
            Self::Plain => Ok(Cow::Borrowed(text)),
            Self::Escaped => unescape(text),
            Self::Hex => unhex(text).map(Cow::Owned),
        }
    }

    /// Appends `bytes` as shown to the user: hex with `--hex`, escaped otherwise.
    pub fn show_into(self, out: &mut Vec<u8>, bytes: &[u8]) {
        match self {
            Self::Hex => hex_into(out, bytes),
            Self::Plain | Self::Escaped => escape_into(out, bytes),
        }
    }

    /// `bytes` as shown to the user, for messages.
    pub fn shown(self, bytes: &[u8]) -> String {
        let mut out = Vec::new();
        self.show_into(&mut out, bytes);
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// A key and its value.
pub type Record<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// Turns lines into records.
#[derive(Debug)]
pub struct Parser {
    format: Format,
    /// What keys and values are in from the beginning, and now.
    given: Encoding,
    encoding: Encoding,
    fields: jsonl::Fields,
}

impl Parser {
    /// `encoding` is that of keys and values in the lines.
    pub fn new(format: Format, encoding: Encoding, fields: jsonl::Fields) -> Self {
        Self {
            format,
            given: encoding,
            encoding,
            fields,
        }
    }

    /// Bytes of the longest line that can be a record: key and value at their limits, with what
    /// may be around them.
    pub fn longest_line(&self) -> usize {
        let bytes = match self.format {
            Format::Lines => MAX_KEY_BYTES,
            Format::Tsv | Format::Jsonl => MAX_KEY_BYTES + MAX_VALUE_BYTES,
        };
        let longest = match (self.format, self.encoding) {
            // `\uHHHH`
            (Format::Jsonl, _) => 6 * bytes,
            (_, Encoding::Plain) => bytes,
            (_, Encoding::Hex) => 2 * bytes,
            // `\xHH`
            (_, Encoding::Escaped) => 4 * bytes,
        };
        longest + AROUND_A_RECORD
    }

    /// The record of a line (without its line end), `None` if the line has none. `Err` says what is
    /// wrong with it.
    pub fn parse<'a>(&mut self, line: &'a [u8]) -> Result<Option<Record<'a>>, String> {
        match self.format {
            Format::Lines => Ok(Some((self.encoding.decode(line)?, Cow::Borrowed(b"")))),
            Format::Tsv => {
                if line == tsv::ESCAPED_MARKER && self.encoding != Encoding::Hex {
                    self.encoding = Encoding::Escaped;
                    return Ok(None);
                }
                if line == tsv::PLAIN_MARKER {
                    self.encoding = self.given;
                    return Ok(None);
                }
                let Some((key, value)) = tsv::split(line) else {
                    return Err("no tab between key and value".into());
                };
                Ok(Some((
                    self.encoding.decode(key)?,
                    self.encoding.decode(value)?,
                )))
            }
            Format::Jsonl => {
                let Some((key, value)) = jsonl::parse(line, &self.fields)? else {
                    return Ok(None);
                };
                Ok(Some((self.decode_owned(key)?, self.decode_owned(value)?)))
            }
        }
    }

    /// What a field in hex has is decoded already.
    fn decode_owned(&self, field: jsonl::Field) -> Result<Cow<'static, [u8]>, String> {
        match (field, self.encoding) {
            (jsonl::Field::Text(text), encoding) if encoding != Encoding::Plain => {
                Ok(Cow::Owned(encoding.decode(&text)?.into_owned()))
            }
            (jsonl::Field::Text(bytes) | jsonl::Field::Bytes(bytes), _) => Ok(Cow::Owned(bytes)),
        }
    }
}

/// Who the text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// `load` reads it: plain lines as long as all records are text.
    Reload,
    /// A person reads it: every line is escaped.
    Show,
}

/// Turns records into lines.
#[derive(Debug)]
pub struct Writer {
    format: Format,
    hex: bool,
    escaped: bool,
    /// The marker has been written.
    marked: bool,
    fields: jsonl::Fields,
}

impl Writer {
    /// `hex`: keys and values in hexadecimal.
    pub fn new(format: Format, purpose: Purpose, hex: bool, fields: jsonl::Fields) -> Self {
        Self {
            format,
            hex,
            // One key per line has no place for a marker: it is escaped throughout.
            escaped: purpose == Purpose::Show || format == Format::Lines,
            marked: false,
            fields,
        }
    }

    /// Appends the line of a record to `out`; without a value only its key.
    pub fn write(&mut self, out: &mut Vec<u8>, key: &[u8], value: Option<&[u8]>) {
        if self.format == Format::Jsonl {
            jsonl::write(out, key, value, self.hex, &self.fields);
            return;
        }
        let value = value.filter(|_| self.format == Format::Tsv);
        if !self.hex && !self.escaped && !tsv::is_plain(key, value.unwrap_or_default()) {
            out.extend_from_slice(tsv::ESCAPED_MARKER);
            out.push(b'\n');
            self.escaped = true;
            self.marked = true;
        }
        self.field(out, key);
        if let Some(value) = value {
            out.push(b'\t');
            self.field(out, value);
        }
        out.push(b'\n');
    }

    /// Appends what belongs behind the last record: what another dump appends is read as it begins.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.marked) {
            out.extend_from_slice(tsv::PLAIN_MARKER);
            out.push(b'\n');
            self.escaped = false;
        }
    }

    fn field(&self, out: &mut Vec<u8>, bytes: &[u8]) {
        match (self.hex, self.escaped) {
            (true, _) => hex_into(out, bytes),
            (false, true) => escape_into(out, bytes),
            (false, false) => out.extend_from_slice(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields() -> jsonl::Fields {
        jsonl::Fields::new("key", "value")
    }

    fn read_back(mut parser: Parser, text: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        text.strip_suffix(b"\n")
            .map_or(vec![], |t| t.split(|&b| b == b'\n').collect::<Vec<_>>())
            .into_iter()
            .filter_map(|line| parser.parse(line).unwrap())
            .map(|(k, v)| (k.into_owned(), v.into_owned()))
            .collect()
    }

    #[test]
    fn text_is_dumped_as_it_was_loaded() {
        let text = "C:\\new\t\\x41\nkey\tva\tlue\n\t\n\
                    Zürich\t#indexy:escaped\n#indexy:escaped\t\n";
        let mut parser = Parser::new(Format::Tsv, Encoding::Plain, fields());
        let mut writer = Writer::new(Format::Tsv, Purpose::Reload, false, fields());
        let mut out = Vec::new();
        for line in text.lines() {
            let (k, v) = parser.parse(line.as_bytes()).unwrap().unwrap();
            writer.write(&mut out, &k, Some(&v));
        }
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }

    #[test]
    fn the_marker_comes_when_it_is_needed() {
        let mut writer = Writer::new(Format::Tsv, Purpose::Reload, false, fields());
        let mut out = Vec::new();
        writer.write(&mut out, b"a\\", Some(b"1"));
        writer.write(&mut out, b"b\n", Some(b"2\\"));
        writer.write(&mut out, b"c\xff", Some(b"x\ty"));
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "a\\\t1\n#indexy:escaped\nb\\n\t2\\\\\nc\\xff\tx\\ty\n"
        );
    }

    #[test]
    fn dumps_can_follow_each_other() {
        let mut out = Vec::new();
        let records: [(&[u8], &[u8]); 3] = [(b"a\n", b"1"), (b"C:\\new", b"2"), (b"b\r", b"\\3")];
        for (key, value) in records {
            let mut writer = Writer::new(Format::Tsv, Purpose::Reload, false, fields());
            writer.write(&mut out, key, Some(value));
            writer.end(&mut out);
        }
        let read = read_back(Parser::new(Format::Tsv, Encoding::Plain, fields()), &out);
        assert_eq!(read, records.map(|(k, v)| (k.to_vec(), v.to_vec())));
    }

    #[test]
    fn the_longest_lines() {
        let longest = |format, encoding| Parser::new(format, encoding, fields()).longest_line();
        assert!(longest(Format::Lines, Encoding::Plain) < 100 << 10);
        let plain = longest(Format::Tsv, Encoding::Plain);
        assert!((256 << 20..257 << 20).contains(&plain));
        let mut parser = Parser::new(Format::Tsv, Encoding::Plain, fields());
        parser.parse(tsv::ESCAPED_MARKER).unwrap();
        assert!(parser.longest_line() > 3 * plain);
    }

    proptest! {
        #[test]
        fn any_records_survive_every_format(
            records: Vec<(Vec<u8>, Vec<u8>)>,
            text: Vec<(String, String)>,
        ) {
            let text = text.into_iter().map(|(k, v)| (k.into_bytes(), v.into_bytes()));
            let records: Vec<_> = text.chain(records).collect();
            for (format, hex, purpose, encoding) in [
                (Format::Tsv, false, Purpose::Reload, Encoding::Plain),
                (Format::Tsv, false, Purpose::Show, Encoding::Escaped),
                (Format::Tsv, true, Purpose::Reload, Encoding::Hex),
                (Format::Jsonl, false, Purpose::Reload, Encoding::Plain),
                (Format::Jsonl, true, Purpose::Reload, Encoding::Hex),
            ] {
                let mut writer = Writer::new(format, purpose, hex, fields());
                let mut out = Vec::new();
                for (k, v) in &records {
                    writer.write(&mut out, k, Some(v));
                }
                let read = read_back(Parser::new(format, encoding, fields()), &out);
                prop_assert_eq!(&read, &records);
            }
            let mut writer = Writer::new(Format::Lines, Purpose::Reload, false, fields());
            let mut out = Vec::new();
            for (k, _) in &records {
                writer.write(&mut out, k, None);
            }
            let read = read_back(Parser::new(Format::Lines, Encoding::Escaped, fields()), &out);
            prop_assert!(read.iter().map(|r| &r.0).eq(records.iter().map(|r| &r.0)));
        }
    }
}
