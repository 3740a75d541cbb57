//! The symbols that select a child: below a node a key goes on with "the key ends here" (0) or
//! with the byte `b` (`b + 1`).

#![forbid(unsafe_code)]

/// What a key goes on with: 0 is its end, `b + 1` the byte `b`.
pub(crate) type Symbol = u16;

/// The key ends here; sorts before every byte.
pub(super) const END: Symbol = 0;

/// The last symbol: byte 255.
pub(super) const LAST: Symbol = 256;

/// How many symbols there are.
pub(super) const SYMBOLS: usize = 257;

/// The symbol of what `rest` starts with.
#[inline]
pub(super) fn first_symbol(rest: &[u8]) -> Symbol {
    rest.first().map_or(END, |&b| Symbol::from(b) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_sort_the_end_before_byte_zero() {
        assert_eq!(first_symbol(b""), END);
        assert_eq!(first_symbol(b"\0"), 1);
        assert_eq!(first_symbol(b"\xff"), LAST);
    }
}
