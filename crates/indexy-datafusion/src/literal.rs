//! Constants of a query as values of a column.
//!
//! A constant is a value only if DataFusion compares it with the column exactly as keys are
//! compared. It compares numbers of one type; so a constant of another type is none here, and the
//! filter is left to DataFusion. Floats: stored are one zero and one NaN, which is above all
//! others, as DataFusion has it. A constant of -0.0, or another NaN, is no value.

use datafusion::{arrow::datatypes::TimeUnit, common::ScalarValue};
use indexy_table::{Timestamp, Type, Value};

/// The one NaN that is stored.
const NAN_BITS: u64 = f64::NAN.to_bits();

/// `literal` as a value of a column of type `ty`; `None` if it is NULL, or not one exactly.
pub(crate) fn value(literal: &ScalarValue, ty: Type) -> Option<Value> {
    Some(match (ty, literal) {
        (Type::Bool, ScalarValue::Boolean(Some(v))) => Value::Bool(*v),
        (Type::I32, ScalarValue::Int32(Some(v))) => Value::I32(*v),
        (Type::I64, ScalarValue::Int64(Some(v))) => Value::I64(*v),
        (Type::U64, ScalarValue::UInt64(Some(v))) => Value::U64(*v),
        (Type::F64, ScalarValue::Float64(Some(v))) if is_stored(*v) => Value::F64(*v),
        (
            Type::Text,
            ScalarValue::Utf8(Some(v))
            | ScalarValue::LargeUtf8(Some(v))
            | ScalarValue::Utf8View(Some(v)),
        ) => Value::Text(v.clone()),
        (
            Type::Bytes,
            ScalarValue::Binary(Some(v))
            | ScalarValue::LargeBinary(Some(v))
            | ScalarValue::BinaryView(Some(v)),
        ) => Value::Bytes(v.clone()),
        (Type::Timestamp, literal) => Value::Timestamp(Timestamp(microseconds(literal)?)),
        _ => return None,
    })
}

fn is_stored(v: f64) -> bool {
    match v.is_nan() {
        true => v.to_bits() == NAN_BITS,
        false => v.to_bits() != (-0.0f64).to_bits(),
    }
}

/// Of an instant; one without a time zone is none, because DataFusion says what it would be.
fn microseconds(literal: &ScalarValue) -> Option<i64> {
    let (unit, v) = match literal {
        ScalarValue::TimestampSecond(Some(v), Some(_)) => (TimeUnit::Second, *v),
        ScalarValue::TimestampMillisecond(Some(v), Some(_)) => (TimeUnit::Millisecond, *v),
        ScalarValue::TimestampMicrosecond(Some(v), Some(_)) => (TimeUnit::Microsecond, *v),
        ScalarValue::TimestampNanosecond(Some(v), Some(_)) => (TimeUnit::Nanosecond, *v),
        _ => return None,
    };
    match unit {
        TimeUnit::Second => v.checked_mul(1_000_000),
        TimeUnit::Millisecond => v.checked_mul(1_000),
        TimeUnit::Microsecond => Some(v),
        TimeUnit::Nanosecond => (v % 1_000 == 0).then_some(v / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_stored_is_a_value() {
        let float = |v: f64| value(&ScalarValue::Float64(Some(v)), Type::F64);
        assert_eq!(float(1.5), Some(Value::F64(1.5)));
        assert_eq!(float(0.0), Some(Value::F64(0.0)));
        assert_eq!(float(f64::NAN), Some(Value::F64(f64::NAN)));
        assert_eq!(float(-0.0), None);
        assert_eq!(float(-f64::NAN), None);
        assert_eq!(value(&ScalarValue::Int64(Some(1)), Type::I32), None);
        assert_eq!(value(&ScalarValue::Int64(None), Type::I64), None);
        let text = ScalarValue::Utf8View(Some("a".into()));
        assert_eq!(value(&text, Type::Text), Some("a".into()));
        assert_eq!(value(&text, Type::Bytes), None);
    }

    #[test]
    fn instants_are_exact_microseconds() {
        let zone = || Some("UTC".into());
        let read = |literal| value(&literal, Type::Timestamp);
        let five = Some(Value::Timestamp(Timestamp(5_000_000)));
        assert_eq!(read(ScalarValue::TimestampSecond(Some(5), zone())), five);
        let nanos = |v| ScalarValue::TimestampNanosecond(Some(v), zone());
        assert_eq!(read(nanos(5_000_000_000)), five);
        assert_eq!(read(nanos(5_000_000_001)), None);
        assert_eq!(read(ScalarValue::TimestampSecond(Some(5), None)), None);
        assert_eq!(
            read(ScalarValue::TimestampSecond(Some(i64::MAX), zone())),
            None
        );
    }
}
