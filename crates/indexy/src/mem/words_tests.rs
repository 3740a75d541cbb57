use super::*;

fn block(words: usize) -> Vec<u64> {
    vec![0; words]
}

fn over(block: &mut [u64]) -> Words<'_> {
    // SAFETY: the vector is borrowed during the life of the result, initialized and aligned.
    unsafe { Words::new(NonNull::from(&mut block[0]), block.len() * 8) }
}

#[test]
fn unaligned_reads_and_the_end() {
    let mut b = block(4);
    let w = over(&mut b);
    let bytes: Vec<u8> = (1..=32).collect();
    w.write(0, &bytes);
    for at in 0..=24 {
        let expect = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!(w.read_u64(at), expect);
        assert_eq!(w.read_u32(at), expect as u32);
        assert_eq!(w.read_u16(at), expect as u16);
        assert_eq!(w.read_u8(at), expect as u8);
    }
    for at in [25, 31, 32, 1 << 20, usize::MAX - 8, usize::MAX] {
        let _ = (
            w.read_u64(at),
            w.read_u8(at),
            w.eq(at, &[1; 20]),
            w.cmp(at, 20, &[1; 20]),
        );
        w.copy_out(at, &mut [0; 20]);
    }
}
