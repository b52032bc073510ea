//! The key by which a line is compared if case is ignored.
//!
//! In a line of UTF-8, each character is replaced by its lower case, as Unicode defines it for a
//! character by itself: `Σ` equals `σ`, and differs from `ς` at the end of a word. `ß` differs from
//! `SS`. In other lines, only the letters of ASCII are replaced, so the key of such a line is not
//! UTF-8 either.

/// Returns the key of a line, a part of either the line or the scratch space.
#[inline]
pub fn key<'a>(line: &'a [u8], text: &'a mut String, bytes: &'a mut Vec<u8>) -> &'a [u8] {
    if is_own_key(line) {
        return line;
    }
    if !line.is_ascii()
        && let Ok(line) = str::from_utf8(line)
    {
        text.clear();
        text.extend(line.chars().flat_map(char::to_lowercase));
        return text.as_bytes();
    }
    bytes.clear();
    bytes.extend_from_slice(line);
    bytes.make_ascii_lowercase();
    bytes
}

/// Returns `true` if a line has only characters of ASCII, and no capitals. There are no branches, so
/// that the compiler can vectorise the test.
#[inline]
fn is_own_key(line: &[u8]) -> bool {
    !line.iter().fold(false, |other, byte| other | !byte.is_ascii() | byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_equal_in_either_case() {
        for (line, expected) in [
            (&b""[..], &b""[..]),
            (b"a line, 1", b"a line, 1"),
            (b"A Line[\\]^_`@{", b"a line[\\]^_`@{"),
            ("\u{c4}\u{d6}\u{dc} \u{416}".as_bytes(), "\u{e4}\u{f6}\u{fc} \u{436}".as_bytes()),
            // Each character by itself, in whatever place.
            ("\u{39f}\u{3a3}".as_bytes(), "\u{3bf}\u{3c3}".as_bytes()),
            ("\u{3c2}".as_bytes(), "\u{3c2}".as_bytes()),
            ("\u{130}".as_bytes(), "i\u{307}".as_bytes()),
            ("STRASSE stra\u{df}e".as_bytes(), "strasse stra\u{df}e".as_bytes()),
            // Latin 1 is not UTF-8, and only its letters of ASCII have a lower case.
            (b"\xC4B\xE4", b"\xC4b\xE4"),
            (b"\xC3\x84\xFFB", b"\xC3\x84\xFFb"),
        ] {
            let (mut text, mut bytes) = (String::from("left"), b"over".to_vec());
            let key = key(line, &mut text, &mut bytes).to_vec();
            assert_eq!(key, expected, "{}", line.escape_ascii());
            assert_eq!(super::key(&key, &mut text, &mut bytes), key, "its own key");
        }
    }
}
