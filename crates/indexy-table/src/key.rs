//! Keys: values as bytes in whose order they are ordered. `docs/formats/keys.md` has the bytes.
//!
//! The encoding is that of the crate storekey, pinned: numbers of fixed width, text and bytes with
//! an end and escapes. No encoded value of a column is the beginning of another one, so that equal
//! leading columns are exactly a common beginning of keys. A column that may be NULL has a byte
//! before its value. Not here: what a key is made of (`layout.rs`).

use crate::value::{Borrowed, Type, Value};
use storekey::{BorrowReader, DecodeError, EncodeError, Writer};

/// Before a NULL and before any other value, in a column that may be NULL.
const NULL: u8 = 2;
const NOT_NULL: u8 = 3;
const FALSE: u8 = 2;
const TRUE: u8 = 3;

/// Appends `value`, which is of its column's type, or NULL if `nullable`.
pub(crate) fn encode(key: &mut Vec<u8>, value: &Value, nullable: bool) {
    let mut writer = Writer::new(key);
    let written = write(&mut writer, value, nullable);
    debug_assert!(written.is_ok(), "a Vec takes everything");
}

fn write(to: &mut Writer<&mut Vec<u8>>, value: &Value, nullable: bool) -> Result<(), EncodeError> {
    if nullable {
        to.write_u8(if value.is_null() { NULL } else { NOT_NULL })?;
    }
    match value {
        Value::Null => Ok(()),
        Value::Bool(v) => to.write_u8(if *v { TRUE } else { FALSE }),
        Value::I32(v) => to.write_i32(*v),
        Value::I64(v) => to.write_i64(*v),
        Value::U64(v) => to.write_u64(*v),
        Value::F64(v) => to.write_f64(*v),
        Value::Text(v) => to.write_slice(v.as_bytes()),
        Value::Bytes(v) => to.write_slice(v),
        Value::Timestamp(v) => to.write_i64(v.0),
    }
}

/// Takes a value of a column from the front of a key. Any bytes are safe; what no value encodes to
/// is an error, or a value that does not encode to these bytes.
pub(crate) fn decode<'a>(
    from: &mut BorrowReader<'a>,
    ty: Type,
    nullable: bool,
) -> Result<Borrowed<'a>, DecodeError> {
    if nullable {
        match from.read_u8()? {
            NULL => return Ok(Borrowed::Null),
            NOT_NULL => {}
            _ => return Err(DecodeError::InvalidFormat),
        }
    }
    Ok(match ty {
        Type::Bool => match from.read_u8()? {
            FALSE => Borrowed::Bool(false),
            TRUE => Borrowed::Bool(true),
            _ => return Err(DecodeError::InvalidFormat),
        },
        Type::I32 => Borrowed::I32(from.read_i32()?),
        Type::I64 => Borrowed::I64(from.read_i64()?),
        Type::U64 => Borrowed::U64(from.read_u64()?),
        Type::F64 => Borrowed::F64(from.read_f64()?),
        Type::Text => Borrowed::Text(from.read_str_cow()?),
        Type::Bytes => Borrowed::Bytes(from.read_cow()?),
        Type::Timestamp => Borrowed::Timestamp(from.read_i64()?),
    })
}

/// Passes a value of a column; its length in the key. Errors: as of [`decode`], and of fewer bytes.
pub(crate) fn skip(
    from: &mut BorrowReader<'_>,
    ty: Type,
    nullable: bool,
) -> Result<usize, DecodeError> {
    if nullable {
        match from.read_u8()? {
            NULL => return Ok(1),
            NOT_NULL => {}
            _ => return Err(DecodeError::InvalidFormat),
        }
    }
    let len = match ty.width() {
        Some(1) => from.read_array::<1>()?.len(),
        Some(4) => from.read_array::<4>()?.len(),
        Some(_) => from.read_array::<8>()?.len(),
        None => from.read_escaped_slice()?.as_bytes().len(),
    };
    Ok(len + usize::from(nullable))
}

/// The smallest key greater than every one that begins with `prefix`; `None`: there is none.
pub(crate) fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

#[cfg(test)]
mod tests;
