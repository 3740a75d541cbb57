//! Tables, their keys and their rows.
//!
//! Keys are the primary keys, big-endian: a subscriber 4 bytes, a type 1, a start time 1. The
//! number of a subscriber, fifteen digits, is an index of its own.

use crate::application::{TableId, rows::row};

/// A table or index; the number is its index for [`Tables`](crate::contender::Tables).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Table {
    /// SUBSCRIBER.
    Subscriber,
    /// Subscribers by their number.
    SubscriberByNumber,
    /// ACCESS_INFO.
    AccessInfo,
    /// SPECIAL_FACILITY.
    SpecialFacility,
    /// CALL_FORWARDING.
    CallForwarding,
}

const TABLES: [Table; 5] = [
    Table::Subscriber,
    Table::SubscriberByNumber,
    Table::AccessInfo,
    Table::SpecialFacility,
    Table::CallForwarding,
];

impl TableId for Table {
    fn index(self) -> usize {
        self as usize
    }

    fn name(self) -> &'static str {
        match self {
            Self::Subscriber => "subscriber",
            Self::SubscriberByNumber => "subscriber_by_number",
            Self::AccessInfo => "access_info",
            Self::SpecialFacility => "special_facility",
            Self::CallForwarding => "call_forwarding",
        }
    }
}

/// Names of all tables, by number.
pub fn names() -> [&'static str; TABLES.len()] {
    TABLES.map(Table::name)
}

/// SUBSCRIBER, and the prefix of all that belongs to it.
pub(super) fn subscriber(s: u32) -> [u8; 4] {
    s.to_be_bytes()
}

/// ACCESS_INFO and SPECIAL_FACILITY; types from 1 on.
pub(super) fn of_type(s: u32, kind: u8) -> [u8; 5] {
    let [a, b, c, d] = s.to_be_bytes();
    [a, b, c, d, kind]
}

/// CALL_FORWARDING.
pub(super) fn forwarding(s: u32, kind: u8, start: u8) -> [u8; 6] {
    let [a, b, c, d] = s.to_be_bytes();
    [a, b, c, d, kind, start]
}

/// Digits of a number.
pub(super) const NUMBER_BYTES: usize = 15;

/// The number of subscriber `s`: itself, with leading zeros.
pub(super) fn number(s: u32) -> [u8; NUMBER_BYTES] {
    let mut digits = [b'0'; NUMBER_BYTES];
    let mut left = s;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    digits
}

row! {
    /// SUBSCRIBER: ten bits, ten half bytes (a byte each), ten bytes, two locations.
    Subscriber {
        bits: u16,
        msc_location: u32,
        vlr_location: u32,
        number: &'a [u8; NUMBER_BYTES],
        hexes: &'a [u8; 10],
        bytes: &'a [u8; 10],
    }
}
row! {
    /// ACCESS_INFO.
    AccessInfo {
        data1: u8,
        data2: u8,
        data3: &'a [u8; 3],
        data4: &'a [u8; 5],
    }
}
row! {
    /// SPECIAL_FACILITY.
    SpecialFacility {
        active: u8,
        error_control: u8,
        data_a: u8,
        data_b: &'a [u8; 5],
    }
}
row! {
    /// CALL_FORWARDING.
    CallForwarding {
        end: u8,
        number: &'a [u8; NUMBER_BYTES],
    }
}
