//! Lossless text for any bytes.
//!
//! `\\` `\t` `\n` `\r` and `\xHH` (two hex digits) stand for bytes that are not printable text;
//! everything else stands for itself. Printable is: valid UTF-8 without control characters, and
//! without the few invisible ones that would change how the line is read or shown (line separators,
//! writing direction, byte order mark). Also here: plain hexadecimal, for `--hex`.

use std::borrow::Cow;

const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

/// True for characters that are written as they are.
fn is_printable(c: char) -> bool {
    let misleading = matches!(
        c,
        '\u{2028}' | '\u{2029}' // separators of lines and paragraphs
        | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' // writing direction
        | '\u{2066}'..='\u{2069}'
        | '\u{feff}' // byte order mark
    );
    !c.is_control() && !misleading
}

fn is_plain_ascii(b: u8) -> bool {
    (0x20..0x7f).contains(&b)
}

/// True if all of `bytes` is printable text. A backslash is.
pub fn is_printable_text(bytes: &[u8]) -> bool {
    bytes.iter().copied().all(is_plain_ascii)
        || std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(is_printable))
}

/// Appends `bytes` to `out` in escaped form.
pub fn escape_into(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.iter().all(|&b| is_plain_ascii(b) && b != b'\\') {
        out.extend_from_slice(bytes);
        return;
    }
    for chunk in bytes.utf8_chunks() {
        let mut utf8 = [0; 4];
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.extend_from_slice(b"\\\\"),
                '\t' => out.extend_from_slice(b"\\t"),
                '\n' => out.extend_from_slice(b"\\n"),
                '\r' => out.extend_from_slice(b"\\r"),
                c if is_printable(c) => out.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes()),
                c => hex_escapes(out, c.encode_utf8(&mut utf8).as_bytes()),
            }
        }
        hex_escapes(out, chunk.invalid());
    }
}

fn hex_escapes(out: &mut Vec<u8>, bytes: &[u8]) {
    for b in bytes {
        out.extend_from_slice(b"\\x");
        hex_into(out, &[*b]);
    }
}

/// `bytes` in escaped form, for messages.
pub fn escaped(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    escape_into(&mut out, bytes);
    String::from_utf8_lossy(&out).into_owned()
}

/// Reads the escaped form. `Err` says what is wrong with it.
pub fn unescape(text: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    let Some(first) = memchr::memchr(b'\\', text) else {
        return Ok(Cow::Borrowed(text));
    };
    let mut out = Vec::with_capacity(text.len());
    out.extend_from_slice(&text[..first]);
    let mut rest = &text[first..];
    while let Some((&b, after)) = rest.split_first() {
        if b != b'\\' {
            let run = memchr::memchr(b'\\', rest).unwrap_or(rest.len());
            out.extend_from_slice(&rest[..run]);
            rest = &rest[run..];
            continue;
        }
        let (byte, after) = match after {
            [b'\\', after @ ..] => (b'\\', after),
            [b't', after @ ..] => (b'\t', after),
            [b'n', after @ ..] => (b'\n', after),
            [b'r', after @ ..] => (b'\r', after),
            [b'x', high, low, after @ ..] => match (hex_digit(*high), hex_digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, after),
                _ => return Err("\\x needs two hex digits".into()),
            },
            [b'x', ..] => return Err("\\x needs two hex digits".into()),
            [] => return Err("a lone backslash at the end".into()),
            [other, ..] => return Err(format!("unknown escape \\{}", escaped(&[*other]))),
        };
        out.push(byte);
        rest = after;
    }
    Ok(Cow::Owned(out))
}

/// Appends `bytes` in lower-case hex.
pub fn hex_into(out: &mut Vec<u8>, bytes: &[u8]) {
    for b in bytes {
        out.push(HEX_DIGITS[usize::from(b >> 4)]);
        out.push(HEX_DIGITS[usize::from(b & 15)]);
    }
}

/// Reads hex of either case. `Err` says what is wrong with it.
pub fn unhex(text: &[u8]) -> Result<Vec<u8>, String> {
    if !text.len().is_multiple_of(2) {
        return Err(format!("{} hex digits: not an even number", text.len()));
    }
    text.chunks_exact(2)
        .map(|pair| match (hex_digit(pair[0]), hex_digit(pair[1])) {
            (Some(high), Some(low)) => Ok(high << 4 | low),
            _ => Err(format!("{:?} is not hex", escaped(pair))),
        })
        .collect()
}

fn hex_digit(b: u8) -> Option<u8> {
    char::from(b).to_digit(16).map(|d| d as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shown_as_documented() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"plain", "plain"),
            (b"a\tb\nc\rd\\e", "a\\tb\\nc\\rd\\\\e"),
            (b"\x00\x1b[31m\xff", "\\x00\\x1b[31m\\xff"),
            ("Zürich 東京 🦀".as_bytes(), "Zürich 東京 🦀"),
            (
                "\u{85}\u{202e}\u{feff}".as_bytes(),
                "\\xc2\\x85\\xe2\\x80\\xae\\xef\\xbb\\xbf",
            ),
        ] {
            assert_eq!(escaped(bytes), text);
            assert_eq!(unescape(text.as_bytes()).unwrap(), bytes);
        }
    }

    #[test]
    fn wrong_escapes_are_named() {
        for text in ["\\", "a\\q", "\\x", "\\x1", "\\xg0", "\\\\\\"] {
            assert!(unescape(text.as_bytes()).is_err(), "{text}");
        }
        assert!(unhex(b"abc").is_err());
        assert!(unhex(b"zz").is_err());
        assert_eq!(unhex(b"00fFAb").unwrap(), [0, 255, 0xab]);
    }

    proptest! {
        #[test]
        fn any_bytes_survive(bytes: Vec<u8>) {
            let mut text = Vec::new();
            escape_into(&mut text, &bytes);
            prop_assert!(is_printable_text(&text));
            prop_assert_eq!(unescape(&text).unwrap().into_owned(), bytes.clone());
            let mut hex = Vec::new();
            hex_into(&mut hex, &bytes);
            prop_assert_eq!(unhex(&hex).unwrap(), bytes);
        }

        #[test]
        fn any_text_survives(text: String) {
            let out = escaped(text.as_bytes());
            prop_assert_eq!(unescape(out.as_bytes()).unwrap().into_owned(), text.into_bytes());
        }

        #[test]
        fn no_input_panics(text: Vec<u8>) {
            let _ = unescape(&text);
            let _ = unhex(&text);
        }
    }
}
