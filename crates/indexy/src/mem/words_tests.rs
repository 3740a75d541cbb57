//! Words against a plain array of bytes.

use super::*;
use proptest::{collection::vec, prelude::*};

const WORDS: usize = 12;
const BYTES: usize = WORDS * 8;

/// A block and its view. Built from atomics, as the view's memory must be.
struct Owned(Vec<AtomicU64>);

impl Owned {
    fn of(bytes: &[u8]) -> Self {
        Self(
            bytes
                .chunks_exact(8)
                .map(|b| AtomicU64::new(load_le(b)))
                .collect(),
        )
    }

    fn words(&self) -> Words<'_> {
        // SAFETY: the vector lives and does not move while it is borrowed; atomics are initialized
        // and aligned.
        unsafe { Words::new(NonNull::from(&self.0[0]).cast(), self.0.len() * 8) }
    }

    fn bytes(&self) -> Vec<u8> {
        self.0
            .iter()
            .flat_map(|w| w.load(Relaxed).to_le_bytes())
            .collect()
    }
}

fn block() -> impl Strategy<Value = Vec<u8>> {
    // Few different bytes, so that comparisons find equal parts.
    vec(prop_oneof![0..3u8, 0x7f..0x82u8, 0xfe..=0xffu8], BYTES)
}

/// A range inside a block, as start and length.
fn range() -> impl Strategy<Value = (usize, usize)> {
    (0..=BYTES).prop_flat_map(|at| (Just(at), 0..=BYTES - at))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn reads_are_those_of_the_bytes(bytes in block(), (at, len) in range()) {
        let owned = Owned::of(&bytes);
        let w = owned.words();
        prop_assert_eq!(w.len_bytes(), BYTES);
        let part = &bytes[at..at + len];
        let mut out = vec![0; len];
        w.copy_out(at, &mut out);
        prop_assert_eq!(&out, part);
        if len >= 8 {
            prop_assert_eq!(&w.read_u64(at).to_le_bytes()[..], &part[..8]);
        }
        if len >= 4 {
            prop_assert_eq!(&w.read_u32(at).to_le_bytes()[..], &part[..4]);
            let at4 = at / 4 * 4;
            prop_assert_eq!(&w.aligned_u32(at4).to_le_bytes()[..], &bytes[at4..][..4]);
        }
        if len >= 2 {
            prop_assert_eq!(&w.read_u16(at).to_le_bytes()[..], &part[..2]);
            let at2 = at / 2 * 2;
            prop_assert_eq!(&w.aligned_u16(at2).to_le_bytes()[..], &bytes[at2..][..2]);
        }
        if len >= 1 {
            prop_assert_eq!(w.read_u8(at), part[0]);
        }
    }

    #[test]
    fn comparisons_are_those_of_the_bytes(
        bytes in block(),
        (at, len) in range(),
        other in vec(0..3u8, 0..20),
        take in 0..20usize,
        flip in any::<(usize, u8)>(),
    ) {
        let owned = Owned::of(&bytes);
        let w = owned.words();
        let part = &bytes[at..at + len];
        prop_assert_eq!(w.cmp(at, len, &other), part.cmp(&other[..]));
        // A prefix of the part itself, then with one byte changed, is the near miss.
        let mut near = part[..take.min(len)].to_vec();
        prop_assert_eq!(w.cmp(at, len, &near), part.cmp(&near[..]));
        if !near.is_empty() {
            let i = flip.0 % near.len();
            near[i] = flip.1;
            prop_assert_eq!(w.cmp(at, len, &near), part.cmp(&near[..]));
        }
    }

    #[test]
    fn writes_change_their_bytes_only(
        bytes in block(),
        (at, len) in range(),
        data in vec(any::<u8>(), BYTES),
    ) {
        let mut model = bytes.clone();
        let owned = Owned::of(&bytes);
        owned.words().write(at, &data[..len]);
        model[at..at + len].copy_from_slice(&data[..len]);
        prop_assert_eq!(owned.bytes(), &model[..]);
        owned.words().fill_zero(at / 2, len);
        model[at / 2..][..len].fill(0);
        prop_assert_eq!(owned.bytes(), model);
    }

    #[test]
    fn copies_change_their_bytes_only(
        bytes in block(),
        source in block(),
        (from, len) in range(),
        to in 0..=BYTES,
    ) {
        let len = len.min(BYTES - to);
        let mut model = bytes.clone();
        let owned = Owned::of(&bytes);
        owned.words().copy_within(from, to, len);
        model.copy_within(from..from + len, to);
        prop_assert_eq!(owned.bytes(), &model[..]);
        owned.words().copy_from(&Owned::of(&source).words(), from, to, len);
        model[to..to + len].copy_from_slice(&source[from..from + len]);
        prop_assert_eq!(owned.bytes(), model);
    }

    #[test]
    fn an_insert_moves_what_is_behind_it(
        bytes in block(),
        (at, len) in range(),
        new in any::<u64>(),
        size in 1..8usize,
    ) {
        prop_assume!(at + len + size <= BYTES);
        let owned = Owned::of(&bytes);
        owned.words().insert(at, len, new & low_bytes(size), size);
        let mut model = bytes.clone();
        model.copy_within(at..at + len, at + size);
        model[at..at + size].copy_from_slice(&new.to_le_bytes()[..size]);
        prop_assert_eq!(owned.bytes(), model);
    }

    #[test]
    fn a_stream_writes_piece_by_piece(
        bytes in block(),
        source in block(),
        at in 0..BYTES,
        lens in vec(0..20usize, 0..8),
    ) {
        let (owned, source_words) = (Owned::of(&bytes), Owned::of(&source));
        let mut model = bytes.clone();
        let mut stream = owned.words().stream(at);
        let mut end = at;
        for len in lens {
            let len = len.min(BYTES - end);
            stream.copy(&source_words.words(), BYTES - len, len);
            model[end..end + len].copy_from_slice(&source[BYTES - len..]);
            end += len;
        }
        stream.finish();
        prop_assert_eq!(owned.bytes(), model);
    }

    #[test]
    fn reads_beyond_the_end_are_harmless(
        bytes in block(),
        at in prop_oneof![0..2 * BYTES, any::<usize>()],
        len in 0..40usize,
    ) {
        let owned = Owned::of(&bytes);
        let w = owned.words();
        let mut out = vec![0; len];
        w.copy_out(at, &mut out);
        let _ = (w.word(at), w.read_u64(at), w.read_u32(at), w.read_u16(at), w.read_u8(at));
        let _ = (w.cmp(at, len, &out), w.cmp(at, usize::MAX, &out));
        prop_assert_eq!(owned.bytes(), bytes);
    }
}

#[test]
fn writes_beyond_the_end_panic_and_change_nothing() {
    let owned = Owned::of(&[7; BYTES]);
    let before = owned.bytes();
    let calls: [fn(Words<'_>); 6] = [
        |w| w.set_word(WORDS, 1),
        |w| w.write(BYTES - 3, &[1; 4]),
        |w| w.write(usize::MAX, &[1; 4]),
        |w| w.fill_zero(1, BYTES),
        |w| w.copy_within(1, 0, BYTES),
        |w| w.copy_within(0, 1, BYTES),
    ];
    for call in calls {
        let words = owned.words();
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| call(words))).is_err());
        assert_eq!(owned.bytes(), before);
    }
}
