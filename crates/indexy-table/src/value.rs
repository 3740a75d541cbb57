//! Values and their types.

use serde::{Deserialize, Serialize};
use std::{borrow::Cow, cmp::Ordering, fmt};

/// The type of a column.
///
/// ```
/// use indexy_table::Type;
/// assert_eq!(Type::Text.to_string(), "text");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Type {
    /// `false` sorts before `true`.
    Bool,
    /// A signed number of 32 bits.
    I32,
    /// A signed number of 64 bits.
    I64,
    /// An unsigned number of 64 bits.
    U64,
    /// A floating-point number. -0.0 is stored as 0.0; every NaN is the same one, above all others.
    F64,
    /// UTF-8, ordered bytewise.
    Text,
    /// Bytes.
    Bytes,
    /// Microseconds since 1970-01-01 UTC; see [`Timestamp`].
    Timestamp,
}

impl Type {
    /// Bytes of a value in a row; `None`: it varies.
    pub(crate) fn width(self) -> Option<usize> {
        match self {
            Self::Bool => Some(1),
            Self::I32 => Some(4),
            Self::I64 | Self::U64 | Self::F64 | Self::Timestamp => Some(8),
            Self::Text | Self::Bytes => None,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bool => "bool",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U64 => "u64",
            Self::F64 => "f64",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::Timestamp => "timestamp",
        })
    }
}

/// Microseconds since 1970-01-01 UTC.
///
/// ```
/// use indexy_table::{Timestamp, Value};
/// use std::time::{Duration, UNIX_EPOCH};
/// let at = Timestamp::from(UNIX_EPOCH + Duration::from_millis(5));
/// assert_eq!(at, Timestamp(5_000));
/// assert_eq!(Value::from(at), Value::Timestamp(at));
/// ```
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Timestamp(
    /// The number.
    pub i64,
);

/// Saturates outside of the years that fit.
impl From<std::time::SystemTime> for Timestamp {
    fn from(time: std::time::SystemTime) -> Self {
        let micros =
            |part: std::time::Duration| i64::try_from(part.as_micros()).unwrap_or(i64::MAX);
        match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => Self(micros(since)),
            Err(before) => Self(-micros(before.duration())),
        }
    }
}

/// One value of a row.
///
/// Values are ordered as keys are: NULL first, then by value; of different types, in the order
/// below. (In a column all are of one type.)
///
/// Whole numbers fit every column of numbers that has them exactly, so that `1` is good for all.
///
/// ```
/// use indexy_table::Value;
/// assert_eq!(Value::from("Ada"), Value::Text("Ada".into()));
/// assert_eq!(Value::from(None::<i64>), Value::Null);
/// assert!(Value::Null < Value::from(-1));
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Value {
    /// No value.
    #[default]
    Null,
    /// Of a [`Type::Bool`].
    Bool(bool),
    /// Of a [`Type::I32`].
    I32(i32),
    /// Of a [`Type::I64`].
    I64(i64),
    /// Of a [`Type::U64`].
    U64(u64),
    /// Of a [`Type::F64`].
    F64(f64),
    /// Of a [`Type::Text`].
    Text(String),
    /// Of a [`Type::Bytes`].
    Bytes(Vec<u8>),
    /// Of a [`Type::Timestamp`].
    Timestamp(Timestamp),
}

impl Value {
    /// Its type; NULL has none.
    ///
    /// ```
    /// use indexy_table::{Type, Value};
    /// assert_eq!(Value::from(true).ty(), Some(Type::Bool));
    /// ```
    #[must_use]
    pub fn ty(&self) -> Option<Type> {
        Some(match self {
            Self::Null => return None,
            Self::Bool(_) => Type::Bool,
            Self::I32(_) => Type::I32,
            Self::I64(_) => Type::I64,
            Self::U64(_) => Type::U64,
            Self::F64(_) => Type::F64,
            Self::Text(_) => Type::Text,
            Self::Bytes(_) => Type::Bytes,
            Self::Timestamp(_) => Type::Timestamp,
        })
    }

    /// Whether it is NULL.
    ///
    /// ```
    /// assert!(indexy_table::Value::Null.is_null());
    /// ```
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// It as a value of a column of type `ty`, NULL as NULL; itself if it does not fit.
    pub(crate) fn fit(self, ty: Type) -> Result<Self, Self> {
        match (&self, ty) {
            (Self::F64(v), Type::F64) => return Ok(Self::F64(normal(*v))),
            (Self::Null, _) => return Ok(self),
            _ if self.ty() == Some(ty) => return Ok(self),
            _ => {}
        }
        let whole = match self {
            Self::I32(v) => i128::from(v),
            Self::I64(v) => i128::from(v),
            Self::U64(v) => i128::from(v),
            other => return Err(other),
        };
        let fitted = match ty {
            Type::I32 => i32::try_from(whole).ok().map(Self::I32),
            Type::I64 => i64::try_from(whole).ok().map(Self::I64),
            Type::U64 => u64::try_from(whole).ok().map(Self::U64),
            Type::F64 if whole.unsigned_abs() <= 1 << 53 => Some(Self::F64(whole as f64)),
            _ => None,
        };
        fitted.ok_or(self)
    }

    /// Its place among values of other types.
    fn rank(&self) -> u8 {
        self.ty().map_or(0, |ty| ty as u8 + 1)
    }
}

/// A value where it lies, in the bytes of an entry or in a definition: text and bytes are not
/// copied, unless escapes of a key make it necessary.
#[derive(Debug, Clone)]
pub(crate) enum Borrowed<'a> {
    Null,
    Bool(bool),
    I32(i32),
    I64(i64),
    U64(u64),
    F64(f64),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    Timestamp(i64),
}

impl Borrowed<'_> {
    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(v) => Value::Bool(v),
            Self::I32(v) => Value::I32(v),
            Self::I64(v) => Value::I64(v),
            Self::U64(v) => Value::U64(v),
            Self::F64(v) => Value::F64(v),
            Self::Text(v) => Value::Text(v.into_owned()),
            Self::Bytes(v) => Value::Bytes(v.into_owned()),
            Self::Timestamp(v) => Value::Timestamp(Timestamp(v)),
        }
    }
}

impl<'a> From<&'a Value> for Borrowed<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(v) => Self::Bool(*v),
            Value::I32(v) => Self::I32(*v),
            Value::I64(v) => Self::I64(*v),
            Value::U64(v) => Self::U64(*v),
            Value::F64(v) => Self::F64(*v),
            Value::Text(v) => Self::Text(Cow::Borrowed(v)),
            Value::Bytes(v) => Self::Bytes(Cow::Borrowed(v)),
            Value::Timestamp(v) => Self::Timestamp(v.0),
        }
    }
}

/// What is stored for `v`: one zero, one NaN, so that equal numbers have equal keys.
fn normal(v: f64) -> f64 {
    if v.is_nan() {
        f64::NAN
    } else if v == 0.0 {
        0.0
    } else {
        v
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Bool(v) => write!(f, "{v}"),
            Self::I32(v) => write!(f, "{v}"),
            Self::I64(v) => write!(f, "{v}"),
            Self::U64(v) => write!(f, "{v}"),
            Self::F64(v) => write!(f, "{v:?}"),
            Self::Text(v) => write!(f, "{v:?}"),
            Self::Bytes(v) => write!(f, "b\"{}\"", v.escape_ascii()),
            Self::Timestamp(v) => write!(f, "{} us", v.0),
        }
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::I32(a), Self::I32(b)) => a.cmp(b),
            (Self::I64(a), Self::I64(b)) => a.cmp(b),
            (Self::U64(a), Self::U64(b)) => a.cmp(b),
            (Self::F64(a), Self::F64(b)) => normal(*a).total_cmp(&normal(*b)),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            (Self::Timestamp(a), Self::Timestamp(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

macro_rules! from {
    ($($from:ty => $variant:ident),* $(,)?) => {
        $(impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

from! {
    bool => Bool,
    i8 => I32, i16 => I32, i32 => I32, u8 => I32, u16 => I32,
    i64 => I64, u32 => I64,
    u64 => U64,
    f32 => F64, f64 => F64,
    &str => Text, String => Text, &String => Text,
    &[u8] => Bytes, Vec<u8> => Bytes,
    Timestamp => Timestamp, std::time::SystemTime => Timestamp,
}

impl<const N: usize> From<&[u8; N]> for Value {
    fn from(value: &[u8; N]) -> Self {
        Self::Bytes(value.to_vec())
    }
}

impl<V: Into<Self>> From<Option<V>> for Value {
    fn from(value: Option<V>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl From<&Self> for Value {
    fn from(value: &Self) -> Self {
        value.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_fit_where_they_are_exact() {
        let fits = |value: Value, ty| value.fit(ty).ok();
        assert_eq!(fits(1.into(), Type::U64), Some(Value::U64(1)));
        assert_eq!(fits(1u64.into(), Type::I32), Some(Value::I32(1)));
        assert_eq!(fits((-1).into(), Type::U64), None);
        assert_eq!(fits(i64::MAX.into(), Type::I32), None);
        assert_eq!(fits(3.into(), Type::F64), Some(Value::F64(3.0)));
        assert_eq!(fits(i64::MAX.into(), Type::F64), None);
        assert_eq!(fits(1.into(), Type::Text), None);
        assert_eq!(fits(Value::Null, Type::Text), Some(Value::Null));
        assert_eq!(fits(1.into(), Type::Timestamp), None);
    }

    #[test]
    fn there_is_one_zero_and_one_nan() {
        let Ok(Value::F64(zero)) = Value::F64(-0.0).fit(Type::F64) else {
            panic!("a number does not fit");
        };
        assert!(zero.is_sign_positive());
        assert_eq!(Value::F64(-f64::NAN), Value::F64(f64::NAN));
        assert!(Value::F64(-f64::NAN) > Value::F64(f64::INFINITY));
    }
}
