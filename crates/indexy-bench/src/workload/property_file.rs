//! The text of a property file, as Java reads it.
//!
//! `name=value`, `name: value` or `name value` a line; `#` and `!` begin comments. An odd number of
//! backslashes at the end joins lines. `\t`, `\n`, `\r`, `\f` and `\u0066` stand for a character;
//! before any other one a backslash takes away its meaning. Not as in Java: a line needs a value.
//!
//! The tests are those of `properties.rs`.

/// White space between names and values.
const BLANKS: [char; 3] = [' ', '\t', '\u{c}'];

/// The lines that say something, each joined with those that go on with it.
pub(super) fn logical_lines(text: &str) -> Vec<String> {
    let text = text.replace("\r\n", "\n");
    let (mut lines, mut logical, mut goes_on) = (Vec::new(), String::new(), false);
    for line in text.split(['\n', '\r']) {
        let line = line.trim_start_matches(BLANKS);
        if !goes_on && (line.is_empty() || line.starts_with(['#', '!'])) {
            continue;
        }
        // Of an even number each second one is escaped.
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        goes_on = !backslashes.is_multiple_of(2);
        logical.push_str(&line[..line.len() - usize::from(goes_on)]);
        if !goes_on {
            lines.push(std::mem::take(&mut logical));
        }
    }
    lines.push(logical);
    lines.retain(|line| !line.is_empty());
    lines
}

/// Name and value of a line, with their escapes; `None` if it has no name.
pub(super) fn split(line: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    let separates = |&(_, c): &(usize, char)| {
        let found = !escaped && (BLANKS.contains(&c) || c == '=' || c == ':');
        escaped = !escaped && c == '\\';
        found
    };
    let (at, _) = line
        .char_indices()
        .find(separates)
        .filter(|(at, _)| *at > 0)?;
    let (name, rest) = line.split_at(at);
    let rest = rest.trim_start_matches(BLANKS);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    Some((name, value.trim_start_matches(BLANKS)))
}

/// `text` with its escapes replaced by what they stand for; `None` if there is half a
/// character.
pub(super) fn decoded(text: &str) -> Option<String> {
    let mut units = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let c = if c == '\\' {
            match chars.next() {
                Some('u') => {
                    let mut unit = 0;
                    for _ in 0..4 {
                        unit = unit * 16 + chars.next()?.to_digit(16)?;
                    }
                    units.push(unit as u16);
                    continue;
                }
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\u{c}',
                Some(other) => other,
                None => break,
            }
        } else {
            c
        };
        units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
    }
    // Java's characters are units of UTF-16, so one beyond 16 bits is two escapes.
    String::from_utf16(&units).ok()
}
