//! Tab-separated lines: `key TAB value`; further tabs belong to the value.
//!
//! A plain line is taken byte for byte. From the marker line [`ESCAPED_MARKER`] on, keys and values
//! are in the escaped form of `escape.rs`. A line without a tab is never a record, so the marker
//! cannot be mistaken for one. A dump writes it only before the first record that needs it: data
//! that are text come out as they went in.

use super::escape::is_printable_text;

/// From this line on, keys and values are escaped.
pub const ESCAPED_MARKER: &[u8] = b"#indexy:escaped";

/// From this line on, they are as they were in the beginning. It ends a dump that has the other
/// marker, so that another dump may follow it.
pub const PLAIN_MARKER: &[u8] = b"#indexy:plain";

/// Splits a line at its first tab.
pub fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let tab = memchr::memchr(b'\t', line)?;
    Some((&line[..tab], &line[tab + 1..]))
}

/// True if the record can stand in a plain line: all text, no tab in the key.
pub fn is_plain(key: &[u8], value: &[u8]) -> bool {
    is_printable_text(key) && value.split(|&b| b == b'\t').all(is_printable_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_tab_splits() {
        assert_eq!(split(b"k\tv\tw"), Some((&b"k"[..], &b"v\tw"[..])));
        assert_eq!(split(b"\t"), Some((&b""[..], &b""[..])));
        assert_eq!(split(b"no tab"), None);
        assert_eq!(split(b""), None);
    }

    #[test]
    fn what_a_plain_line_can_hold() {
        assert!(is_plain(b"C:\\new", b"a\tb"));
        assert!(!is_plain(b"a\tb", b""));
        assert!(!is_plain(b"k", b"two\nlines"));
        assert!(!is_plain(b"k", b"\xff"));
        assert!(!is_plain(b"k", b"ends in CR\r"));
    }
}
