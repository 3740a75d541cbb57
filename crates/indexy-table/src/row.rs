//! Rows: the columns outside of the key as bytes. `docs/formats/rows.md` has the bytes.
//!
//! A row begins with the version of the schema that wrote it; columns are only ever added at the
//! end, so a version says how many there are. Fixed columns lie at fixed offsets. The decoder
//! trusts no byte: whatever it is given, it returns a value or an error.

use crate::value::{Borrowed, Type, Value};
use std::borrow::Cow;

/// The flag, in the version's field, of ends of 4 bytes.
const WIDE: u16 = 1 << 15;
/// The highest version of a schema.
pub(crate) const MAX_VERSION: u16 = WIDE - 1;

/// What does not hold.
pub(crate) type Damage = &'static str;

/// How the rows of one list of columns are laid out, in every version of it.
#[derive(Debug)]
pub(crate) struct RowFormat {
    columns: Vec<Slot>,
    /// By version, ascending.
    versions: Vec<Version>,
}

#[derive(Debug)]
struct Slot {
    ty: Type,
    nullable: bool,
    /// Offset among the fixed columns, or number among the others.
    at: usize,
}

/// What the rows of one version have.
#[derive(Debug, Clone, Copy)]
struct Version {
    number: u16,
    columns: usize,
    fixed_bytes: usize,
    varying: usize,
}

impl Version {
    fn fixed_at(&self) -> usize {
        2 + self.columns.div_ceil(8)
    }

    fn ends_at(&self) -> usize {
        self.fixed_at() + self.fixed_bytes
    }
}

impl RowFormat {
    /// Of columns with type, whether they may be NULL, and the version since which they exist,
    /// which does not descend; the newest version is `newest`.
    pub(crate) fn new(columns: impl Iterator<Item = (Type, bool, u16)>, newest: u16) -> Self {
        let mut format = Self {
            columns: Vec::new(),
            versions: Vec::new(),
        };
        let (mut fixed, mut varying) = (0, 0);
        let mut versions = vec![(1, 0, 0, 0)];
        for (ty, nullable, since) in columns {
            let at = match ty.width() {
                Some(width) => {
                    fixed += width;
                    fixed - width
                }
                None => {
                    varying += 1;
                    varying - 1
                }
            };
            format.columns.push(Slot { ty, nullable, at });
            let here = (since, format.columns.len(), fixed, varying);
            match versions.last_mut() {
                Some(last) if last.0 == since => *last = here,
                _ => versions.push(here),
            }
        }
        // A version that added only columns of other places has the columns of the one before.
        let mut known = versions.iter().peekable();
        let mut shape = (0, 0, 0);
        for number in 1..=newest {
            while let Some(&&(_, columns, fixed, varying)) =
                known.peek().filter(|version| version.0 <= number)
            {
                shape = (columns, fixed, varying);
                known.next();
            }
            format.versions.push(Version {
                number,
                columns: shape.0,
                fixed_bytes: shape.1,
                varying: shape.2,
            });
        }
        format
    }

    /// The row of `values`, one for each column, in the newest version.
    pub(crate) fn encode<'a>(&self, values: impl Iterator<Item = &'a Value> + Clone) -> Vec<u8> {
        let Some(version) = self.versions.last() else {
            return Vec::new();
        };
        let varying = |value: &Value| match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        let rest: usize = values.clone().map(varying).sum();
        let wide = rest > usize::from(u16::MAX);
        let end_bytes = if wide { 4 } else { 2 };
        let ends_at = version.ends_at();
        let rest_at = ends_at + version.varying * end_bytes;
        let mut row = vec![0; rest_at];
        row.reserve_exact(rest);
        let head = version.number | if wide { WIDE } else { 0 };
        row[..2].copy_from_slice(&head.to_le_bytes());
        for (at, (slot, value)) in self.columns.iter().zip(values).enumerate() {
            if value.is_null() {
                row[2 + at / 8] |= 1 << (at % 8);
            }
            let Some(width) = slot.ty.width() else {
                match value {
                    Value::Text(text) => row.extend_from_slice(text.as_bytes()),
                    Value::Bytes(bytes) => row.extend_from_slice(bytes),
                    _ => {}
                }
                let end = (row.len() - rest_at) as u32;
                let end_at = ends_at + slot.at * end_bytes;
                row[end_at..end_at + end_bytes].copy_from_slice(&end.to_le_bytes()[..end_bytes]);
                continue;
            };
            let fixed_at = version.fixed_at() + slot.at;
            let to = &mut row[fixed_at..fixed_at + width];
            match value {
                Value::Bool(v) => to[0] = u8::from(*v),
                Value::I32(v) => to.copy_from_slice(&v.to_le_bytes()),
                Value::I64(v) => to.copy_from_slice(&v.to_le_bytes()),
                Value::U64(v) => to.copy_from_slice(&v.to_le_bytes()),
                Value::F64(v) => to.copy_from_slice(&v.to_le_bytes()),
                Value::Timestamp(v) => to.copy_from_slice(&v.0.to_le_bytes()),
                _ => {}
            }
        }
        row
    }

    /// Looks at a row; checks its version and that its parts fit.
    pub(crate) fn read<'a>(&'a self, row: &'a [u8]) -> Result<Row<'a>, Damage> {
        let head = array::<2>(row, 0).map(u16::from_le_bytes)?;
        let wide = head & WIDE != 0;
        let number = usize::from(head & !WIDE);
        let known = number.checked_sub(1).and_then(|at| self.versions.get(at));
        let version = *known.ok_or("a version that its table does not have")?;
        let row = Row {
            format: self,
            version,
            wide,
            row,
        };
        let rest = row.row.len().checked_sub(row.rest_at());
        let rest = rest.ok_or("a row ends before its columns")?;
        let end = match version.varying {
            0 => 0,
            n => row.end(n - 1)?,
        };
        match end == rest {
            true => Ok(row),
            false => Err("a row does not end where its last column does"),
        }
    }

    /// The version of a row, as it says.
    pub(crate) fn version_of(row: &[u8]) -> Option<u16> {
        array::<2>(row, 0)
            .ok()
            .map(|head| u16::from_le_bytes(head) & !WIDE)
    }
}

fn array<const N: usize>(row: &[u8], at: usize) -> Result<[u8; N], Damage> {
    let bytes = row.get(at..).and_then(|rest| rest.first_chunk::<N>());
    bytes.copied().ok_or("a row ends before its columns")
}

/// A row that is read.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    format: &'a RowFormat,
    version: Version,
    wide: bool,
    row: &'a [u8],
}

impl<'a> Row<'a> {
    fn end_bytes(&self) -> usize {
        if self.wide { 4 } else { 2 }
    }

    fn rest_at(&self) -> usize {
        self.version.ends_at() + self.version.varying * self.end_bytes()
    }

    /// Where the varying column `at` ends, from the start of the rest.
    fn end(&self, at: usize) -> Result<usize, Damage> {
        let offset = self.version.ends_at() + at * self.end_bytes();
        match self.wide {
            true => array::<4>(self.row, offset).map(|end| u32::from_le_bytes(end) as usize),
            false => array::<2>(self.row, offset).map(|end| usize::from(u16::from_le_bytes(end))),
        }
    }

    /// The value of column `at`; `None`: the row is older than the column.
    pub(crate) fn get(&self, at: usize) -> Result<Option<Borrowed<'a>>, Damage> {
        let slot = match self.format.columns.get(at) {
            Some(slot) if at < self.version.columns => slot,
            _ => return Ok(None),
        };
        let nulls = self.row.get(2 + at / 8).copied().unwrap_or(0);
        if nulls & (1 << (at % 8)) != 0 {
            return match slot.nullable {
                true => Ok(Some(Borrowed::Null)),
                false => Err("NULL in a column that has none"),
            };
        }
        let fixed_at = self.version.fixed_at() + slot.at;
        let eight = || array::<8>(self.row, fixed_at);
        Ok(Some(match slot.ty {
            Type::Bool => match array::<1>(self.row, fixed_at)? {
                [0] => Borrowed::Bool(false),
                [1] => Borrowed::Bool(true),
                _ => return Err("a bool that is neither"),
            },
            Type::I32 => Borrowed::I32(i32::from_le_bytes(array::<4>(self.row, fixed_at)?)),
            Type::I64 => Borrowed::I64(i64::from_le_bytes(eight()?)),
            Type::U64 => Borrowed::U64(u64::from_le_bytes(eight()?)),
            Type::F64 => Borrowed::F64(f64::from_le_bytes(eight()?)),
            Type::Timestamp => Borrowed::Timestamp(i64::from_le_bytes(eight()?)),
            Type::Text => {
                let text = std::str::from_utf8(self.varying(slot.at)?);
                Borrowed::Text(Cow::Borrowed(text.map_err(|_| "text that is not UTF-8")?))
            }
            Type::Bytes => Borrowed::Bytes(Cow::Borrowed(self.varying(slot.at)?)),
        }))
    }

    fn varying(&self, at: usize) -> Result<&'a [u8], Damage> {
        let from = match at {
            0 => 0,
            _ => self.end(at - 1)?,
        };
        let (from, to) = (self.rest_at() + from, self.rest_at() + self.end(at)?);
        self.row
            .get(from..to)
            .ok_or("a column ends before it begins")
    }
}

#[cfg(test)]
mod tests;
