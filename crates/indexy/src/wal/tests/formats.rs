//! Decoders meet any bytes: they return what was written, or nothing, and never panic.

use super::{
    segment::{
        GROUP_HEADER_BYTES, GroupHeader, GroupKind, SEGMENT_HEADER_BYTES, SegmentHeader,
        decode_group,
    },
    *,
};
use proptest::prelude::*;
use record::decode_record;

fn header(nonce: u64) -> SegmentHeader {
    SegmentHeader {
        database_id: 7,
        sequence: 3,
        first_lsn: Lsn(100),
        nonce,
    }
}

fn records() -> impl Strategy<Value = Vec<Owned>> {
    let key = || prop::collection::vec(any::<u8>(), 0..300);
    let one = prop_oneof![
        (any::<u32>(), key(), key()).prop_map(|(t, k, v)| Owned::Put(t, k, v)),
        (any::<u32>(), key()).prop_map(|(t, k)| Owned::Remove(t, k)),
        (any::<u32>(), key(), prop::option::of(key()))
            .prop_map(|(t, from, to)| Owned::RemoveRange(t, from, to)),
        (any::<u32>(), key()).prop_map(|(c, ops)| Owned::Batch(c, ops)),
    ];
    prop::collection::vec(one, 0..20)
}

fn encode(records: &[Owned]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        let borrowed = record.borrowed();
        let (head, a, b) = borrowed.parts();
        assert_eq!(
            head.as_slice().len() + a.len() + b.len(),
            borrowed.encoded_len()
        );
        bytes.extend([head.as_slice(), a, b].concat());
    }
    bytes
}

proptest! {
    #[test]
    fn records_come_back(records in records()) {
        let bytes = encode(&records);
        let mut rest = &bytes[..];
        for want in &records {
            let (got, len) = decode_record(rest).unwrap();
            prop_assert_eq!(&own(got), want);
            // No proper prefix is a record.
            for cut in 0..len.min(40) {
                prop_assert_eq!(decode_record(&rest[..cut]), Err(Malformed::Incomplete));
            }
            rest = &rest[len..];
        }
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn any_bytes_decode_to_something_or_nothing(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        offset: u64,
    ) {
        let (_, identity) = header(1).encode();
        let _ = decode_record(&bytes);
        for op in batch_ops(&bytes) {
            let _ = op;
        }
        prop_assert_eq!(decode_group(&bytes, identity, offset), None);
        if let Some(head) = bytes.first_chunk::<SEGMENT_HEADER_BYTES>() {
            prop_assert!(SegmentHeader::decode(head, Path::new("x")).is_err());
        }
    }

    #[test]
    fn a_group_comes_back_only_whole_and_only_in_its_place(
        records in records(), first: u32, flip: prop::sample::Index, offset in 0u64..1 << 40,
    ) {
        let payload = encode(&records);
        let (_, identity) = header(1).encode();
        let first_lsn = Lsn(u64::from(first));
        let group = GroupHeader::for_payload(GroupKind::Whole, &payload, first_lsn, Lsn(0));
        let mut bytes = group.encode(identity, offset).to_vec();
        bytes.extend_from_slice(&payload);
        prop_assert_eq!(decode_group(&bytes, identity, offset), Some((group, &payload[..])));
        prop_assert_eq!(decode_group(&bytes, identity, offset + 8), None);
        prop_assert_eq!(decode_group(&bytes, header(2).encode().1, offset), None);
        let cut = flip.index(bytes.len());
        prop_assert_eq!(decode_group(&bytes[..cut], identity, offset), None);
        bytes[cut] ^= 1 << (first % 8);
        prop_assert_eq!(decode_group(&bytes, identity, offset), None);
    }

    #[test]
    fn batches_come_back(ops in records()) {
        let mut batch = BatchEncoder::default();
        let mut want = Vec::new();
        for op in &ops {
            let pushed = batch.push(op.borrowed());
            prop_assert_eq!(pushed.is_err(), matches!(op, Owned::Batch(..)));
            if pushed.is_ok() {
                want.push(op.clone());
            }
        }
        prop_assert_eq!(batch.count() as usize, want.len());
        let Owned::Batch(_, bytes) = own(batch.record()) else { unreachable!() };
        prop_assert_eq!(bytes.len(), batch.bytes());
        let got: Vec<_> = batch_ops(&bytes).map(|op| own(op.unwrap())).collect();
        prop_assert_eq!(got, want);
    }
}

#[test]
fn limits_are_kept_by_encoder_and_decoder() {
    let long = vec![0; crate::limits::MAX_KEY_BYTES + 1];
    assert!(matches!(
        RecordRef::Remove {
            tree: 0,
            key: &long
        }
        .check(),
        Err(Error::KeyTooLong { .. })
    ));
    let put = RecordRef::Put {
        tree: u32::MAX,
        key: &long[1..],
        value: b"",
    };
    put.check().unwrap();
    let bytes = encode(&[own(put)]);
    assert_eq!(decode_record(&bytes), Ok((put, bytes.len())));
    // A key length of 65,535; a number of six bytes; one over 32 bits; an unknown kind.
    for bad in [
        &[2, 0, 0xFF, 0xFF, 0x03][..],
        &[2, 0x80, 0x80, 0x80, 0x80, 0x80, 0][..],
        &[2, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F][..],
        &[9][..],
    ] {
        assert!(
            matches!(decode_record(bad), Err(Malformed::Invalid(_))),
            "{bad:?}"
        );
    }
}

#[test]
fn a_header_does_not_overlap_its_fields() {
    let all = SegmentHeader {
        database_id: u128::MAX,
        sequence: u64::MAX,
        first_lsn: Lsn(u64::MAX),
        nonce: u64::MAX,
    };
    let (bytes, _) = all.encode();
    assert_eq!(
        SegmentHeader::decode(&bytes, Path::new("x")).unwrap().0,
        all
    );
    assert_eq!(bytes[12..16], [0; 4]);
    assert_eq!(bytes[56..60], [0; 4]);
    assert_eq!(GROUP_HEADER_BYTES, 32);
}
