//! JSON lines: one object per line, with the key and the value in named fields.
//!
//! A string is stored as its text; any other value as its compact JSON text, exactly as written
//! (digits of numbers and the order of fields stay, white space between tokens goes). The key is a
//! string or a number. Other fields are ignored. Bytes that are not UTF-8 are in hex, in a field
//! with `_hex` appended to its name, so that every record has a line.

use super::escape::{hex_into, unhex};
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// A key or a value.
#[derive(Debug, PartialEq, Eq)]
pub enum Field {
    /// As its field has it.
    Text(Vec<u8>),
    /// From a field in hex: bytes as they are.
    Bytes(Vec<u8>),
}

/// A key and its value.
type Pair = (Field, Field);

const HEX_SUFFIX: &str = "_hex";

/// Names of the fields that hold the key and the value.
#[derive(Debug, Clone)]
pub struct Fields {
    key: String,
    value: String,
    key_hex: String,
    value_hex: String,
}

impl Fields {
    /// Fields of these names.
    pub fn new(key: &str, value: &str) -> Self {
        Self {
            key: key.into(),
            value: value.into(),
            key_hex: hex_name(key),
            value_hex: hex_name(value),
        }
    }
}

/// The field that has in hex what `name` cannot have as text.
pub fn hex_name(name: &str) -> String {
    format!("{name}{HEX_SUFFIX}")
}

/// What a line holds; `None` for a blank one. `Err` says what is wrong.
pub fn parse(line: &[u8], fields: &Fields) -> Result<Option<Pair>, String> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let mut json = serde_json::Deserializer::from_slice(line);
    let found = Wanted(fields)
        .deserialize(&mut json)
        .and_then(|found| json.end().map(|()| found))
        .map_err(|e| without_position(&e))?;
    let key = one_of(&fields.key, found.key, found.key_hex, |raw| {
        if matches!(
            raw.get().as_bytes().first(),
            Some(b'"' | b'-' | b'0'..=b'9')
        ) {
            bytes_of(raw)
        } else {
            Err(format!(
                "field {:?} is neither a string nor a number",
                fields.key
            ))
        }
    })?;
    let value = one_of(&fields.value, found.value, found.value_hex, bytes_of)?;
    Ok(Some((key, value)))
}

/// Appends the object of a record and a line end.
pub fn write(out: &mut Vec<u8>, key: &[u8], value: Option<&[u8]>, hex: bool, fields: &Fields) {
    out.push(b'{');
    write_field(out, &fields.key, &fields.key_hex, key, hex);
    if let Some(value) = value {
        out.push(b',');
        write_field(out, &fields.value, &fields.value_hex, value, hex);
    }
    out.extend_from_slice(b"}\n");
}

fn write_field(out: &mut Vec<u8>, name: &str, hex_name: &str, bytes: &[u8], hex: bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) if !hex => {
            write_string(out, name);
            out.push(b':');
            write_string(out, text);
        }
        _ => {
            write_string(out, if hex { name } else { hex_name });
            out.extend_from_slice(b":\"");
            hex_into(out, bytes);
            out.push(b'"');
        }
    }
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    // A string is always serializable and a Vec always takes it.
    let written = serde_json::to_writer(&mut *out, text);
    debug_assert!(written.is_ok());
}

fn one_of(
    name: &str,
    text: Option<&RawValue>,
    hex: Option<&RawValue>,
    decode: impl FnOnce(&RawValue) -> Result<Vec<u8>, String>,
) -> Result<Field, String> {
    match (text, hex) {
        (Some(raw), None) => decode(raw).map(Field::Text),
        (None, Some(raw)) => unhex(&bytes_of(raw)?).map(Field::Bytes),
        (None, None) => Err(format!("no field {name:?}")),
        (Some(_), Some(_)) => Err(format!("both {name:?} and \"{name}{HEX_SUFFIX}\"")),
    }
}

/// Text of a string, compact JSON of anything else.
fn bytes_of(raw: &RawValue) -> Result<Vec<u8>, String> {
    let text = raw.get();
    if text.starts_with('"') {
        let text: String = serde_json::from_str(text).map_err(|e| without_position(&e))?;
        return Ok(text.into_bytes());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut in_string = false;
    let mut after_backslash = false;
    for b in text.bytes() {
        if in_string {
            in_string = after_backslash || b != b'"';
            after_backslash = b == b'\\' && !after_backslash;
        } else if b.is_ascii_whitespace() {
            continue;
        } else {
            in_string = b == b'"';
        }
        out.push(b);
    }
    Ok(out)
}

/// The message without "at line 1": the caller puts the number of the line before it.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) => format!("{what} (column {})", error.column()),
        None => text,
    }
}

#[derive(Default)]
struct Found<'a> {
    key: Option<&'a RawValue>,
    key_hex: Option<&'a RawValue>,
    value: Option<&'a RawValue>,
    value_hex: Option<&'a RawValue>,
}

struct Wanted<'f>(&'f Fields);

impl<'de> DeserializeSeed<'de> for Wanted<'_> {
    type Value = Found<'de>;
    fn deserialize<D: serde::Deserializer<'de>>(self, d: D) -> Result<Found<'de>, D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Wanted<'_> {
    type Value = Found<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "an object with fields {:?} and {:?}",
            self.0.key, self.0.value
        )
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found<'de>, A::Error> {
        let mut found = Found::default();
        while let Some(name) = map.next_key::<String>()? {
            let fields = self.0;
            let place = match &name {
                n if *n == fields.key => &mut found.key,
                n if *n == fields.value => &mut found.value,
                n if *n == fields.key_hex => &mut found.key_hex,
                n if *n == fields.value_hex => &mut found.value_hex,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if place.replace(map.next_value()?).is_some() {
                return Err(A::Error::custom(format!("field {name:?} stands twice")));
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(line: &str) -> Result<Option<Pair>, String> {
        parse(line.as_bytes(), &Fields::new("key", "value"))
    }

    fn bytes(field: Field) -> Vec<u8> {
        match field {
            Field::Text(bytes) | Field::Bytes(bytes) => bytes,
        }
    }

    fn ok(line: &str) -> (String, String) {
        let (k, v) = read(line).unwrap().unwrap();
        let text = |field| String::from_utf8(bytes(field)).unwrap();
        (text(k), text(v))
    }

    #[test]
    fn strings_and_anything_else() {
        assert_eq!(
            ok(r#"{"key": "k", "value": "a\tb\u0000"}"#),
            ("k".into(), "a\tb\0".into())
        );
        assert_eq!(
            ok(r#"{"value": {"b" : [1.50, "x y\" z"], "a": 1}, "key": 12}"#),
            ("12".into(), r#"{"b":[1.50,"x y\" z"],"a":1}"#.into())
        );
        assert_eq!(
            ok(r#" {"key":"","value":null,"more":[{}]} "#),
            (String::new(), "null".into())
        );
        assert_eq!(
            ok(r#"{"key":"a","value":123456789012345678901234567890}"#).1,
            "123456789012345678901234567890"
        );
        assert_eq!(ok(r#"{"key":"a","value":["\\", " "]}"#).1, r#"["\\"," "]"#);
        assert_eq!(
            read("{\"key_hex\":\"00ff\",\"value\":\"\"}")
                .unwrap()
                .unwrap()
                .0,
            Field::Bytes(vec![0, 255])
        );
        assert_eq!(read(" \t").unwrap(), None);
    }

    #[test]
    fn malformed() {
        for line in [
            r#"{"key":"a"}"#,
            r#"{"value":"a"}"#,
            r#"{"key":"a","value":"b""#,
            r#"{"key":"a","value":"b"} x"#,
            r#"{"key":null,"value":"b"}"#,
            r#"{"key":["a"],"value":"b"}"#,
            r#"{"key":"a","key":"b","value":"c"}"#,
            r#"{"key":"a","key_hex":"61","value":"c"}"#,
            r#"{"key_hex":"6","value":"c"}"#,
            r#"["a","b"]"#,
            r#""a""#,
            r#"{"key":"\ud800","value":"c"}"#,
        ] {
            let error = read(line).unwrap_err();
            assert!(!error.contains("line 1"), "{error}");
        }
        assert!(
            parse(
                b"{\"key\":\"\xff\",\"value\":\"\"}",
                &Fields::new("key", "value")
            )
            .is_err()
        );
    }

    #[test]
    fn deep_nesting_is_read() {
        let line = format!(
            r#"{{"key":"a","value":{}{}}}"#,
            "[".repeat(100_000),
            "]".repeat(100_000)
        );
        // Whether it is taken or refused is serde_json's choice; the stack must hold.
        let _ = read(&line);
    }

    proptest! {
        #[test]
        fn any_bytes_survive(key: Vec<u8>, value: Vec<u8>) {
            let fields = Fields::new("k", "v \"quoted\"");
            let mut line = Vec::new();
            write(&mut line, &key, Some(&value), false, &fields);
            prop_assert_eq!(memchr::memchr(b'\n', &line), Some(line.len() - 1));
            let (k, v) = parse(&line, &fields).unwrap().unwrap();
            prop_assert_eq!((bytes(k), bytes(v)), (key, value));
        }
    }
}
